// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Coroutines for flows of several steps on one loop. A `Task<T>` is lazy: it runs
// when it is awaited, or handed to `run()` or a `TaskSet`, and hands its T (or the
// exception that ended it) to whoever awaits it. A task owns its frame: destroying
// one that is suspended ends it there and destroys what it holds, awaited tasks
// included. Everything happens on the loop's thread.
//
//     Task<int> answer(Loop loop)
//     {
//         co_await loop.sleep_for(10ms);
//         co_return 42;
//     }
//     int value = run(loop, answer(loop));
//
// A coroutine takes its parameters by value, since they live in its frame; and
// co_await stands in a statement or an initialisation of its own, since GCC 12 and
// Clang 14 mishandle it in conditional expressions and braced lists.

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <sluice/event.hpp>

namespace sluice {

template <class T>
class Task;

namespace detail {

struct TaskPromiseBase {
    // Resumes whoever awaits, by symmetric transfer: a long chain of tasks that end
    // at once does not grow the stack.
    struct FinalAwaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept
        {
            return ended.promise().awaiting;
        }
        void await_resume() const noexcept {}
    };

    std::suspend_always initial_suspend() const noexcept { return {}; }
    FinalAwaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { exception = std::current_exception(); }

    void rethrow()
    {
        if (exception)
            std::rethrow_exception(std::exchange(exception, nullptr));
    }

    std::coroutine_handle<> awaiting = std::noop_coroutine();
    std::exception_ptr exception;
};

template <class T>
struct TaskPromise : TaskPromiseBase {
    Task<T> get_return_object() noexcept;
    template <class U = T> // so that `co_return {}` makes a T
    void return_value(U &&result)
    {
        value.emplace(std::forward<U>(result));
    }
    T take()
    {
        rethrow();
        return std::move(*value);
    }

    std::optional<T> value;
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
    Task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() { rethrow(); }
};

} // namespace detail

template <class T = void>
class [[nodiscard]] Task {
    static_assert(!std::is_reference_v<T>, "a task hands on a value; use a pointer");

public:
    using promise_type = detail::TaskPromise<T>;

    Task(Task &&other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    Task &operator=(Task &&other) noexcept
    {
        if (this != &other) {
            destroy();
            frame_ = std::exchange(other.frame_, nullptr);
        }
        return *this;
    }
    ~Task() { destroy(); }

    // Await it once, as an rvalue: `co_await make()` or `co_await std::move(task)`.
    auto operator co_await() &&noexcept
    {
        struct Awaiter {
            std::coroutine_handle<promise_type> frame;

            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept
            {
                frame.promise().awaiting = awaiting;
                return frame;
            }
            T await_resume() const { return frame.promise().take(); }
        };
        return Awaiter{frame_};
    }

    // For those that drive a task from outside a coroutine.
    void start() { frame_.resume(); }
    bool done() const noexcept { return frame_.done(); }
    T take() { return frame_.promise().take(); }

private:
    friend promise_type;
    explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    void destroy() noexcept
    {
        if (frame_)
            frame_.destroy();
    }

    std::coroutine_handle<promise_type> frame_;
};

template <class T>
Task<T> detail::TaskPromise<T>::get_return_object() noexcept
{
    return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

inline Task<void> detail::TaskPromise<void>::get_return_object() noexcept
{
    return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

// Run turns of `loop` until `task` has ended; its result, or its exception. Other
// sources of the loop's context run meanwhile.
template <class T>
T run(Loop &loop, Task<T> task)
{
    task.start();
    while (!task.done())
        loop.iterate();
    return task.take();
}

} // namespace sluice
