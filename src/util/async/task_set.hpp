// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Owner of tasks that nobody awaits. Each runs at once up to its first suspension,
// and is let go when it ends; those still suspended are destroyed with the set. An
// exception that leaves such a task ends the program, since nobody is there to
// catch it. Not to be destroyed from inside one of its own tasks.

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "util/async/task.hpp"

namespace sluice {

class TaskSet {
public:
    TaskSet() noexcept = default;
    TaskSet(const TaskSet &) = delete;
    TaskSet &operator=(const TaskSet &) = delete;
    ~TaskSet() { clear(); }

    void spawn(Task<void> task)
    {
        Runner runner = hold(*this, std::move(task));
        runner.frame.resume();
    }

    // Destroy all that are suspended, newest first.
    void clear() noexcept
    {
        while (first_ != nullptr)
            std::coroutine_handle<Promise>::from_promise(*first_).destroy();
    }

    size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

private:
    struct Runner;

    // A frame that destroys itself at its end, and is in the set's list until then.
    struct Promise {
        Promise(TaskSet &owner, Task<void> &) noexcept : set(owner), next(owner.first_)
        {
            if (next != nullptr)
                next->previous = this;
            set.first_ = this;
            ++set.size_;
        }
        Promise(const Promise &) = delete;
        Promise &operator=(const Promise &) = delete;
        ~Promise()
        {
            if (next != nullptr)
                next->previous = previous;
            if (previous != nullptr)
                previous->next = next;
            else
                set.first_ = next;
            --set.size_;
        }

        Runner get_return_object() noexcept { return {std::coroutine_handle<Promise>::from_promise(*this)}; }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }

        TaskSet &set;
        Promise *next;
        Promise *previous = nullptr;
    };
    struct Runner {
        using promise_type = Promise;
        std::coroutine_handle<Promise> frame;
    };

    static Runner hold(TaskSet &, Task<void> task) { co_await std::move(task); }

    Promise *first_ = nullptr;
    size_t size_ = 0;
};

} // namespace sluice
