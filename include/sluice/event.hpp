// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

/// @file
/// The event library for C++20: owners that let go by themselves, lambdas as
/// callbacks, and awaitables. Header only; everything goes through the C ABI of
/// <sluice/event.h>, whose text says what each call promises.
///
/// Owners (`Handle`, `Timeout`) remove what they own when they are destroyed. They
/// may be moved and destroyed inside their own callback: the callable itself lives
/// on until the loop frees it. Destroyed on another thread than the loop's, they may
/// leave the callback running there for a moment. A callable that throws ends the program, since
/// there is no caller to catch it.
///
///     sluice::Loop loop;
///     auto input = loop.watch(0, SLUICE_EVENT_READABLE, [&](int events) { ... });
///     auto limit = loop.every(std::chrono::seconds{5}, [&] { loop.quit(); });
///     loop.run();
///
/// The awaitables resume on the loop's thread, and must be awaited and destroyed
/// there. They work in any coroutine type:
///
///     co_await loop.sleep_for(10ms);
///     int events = co_await loop.readable(fd);

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <sluice/event.h>

namespace sluice {

namespace detail {

/// Throw what a C call reported, or hand its result on.
inline int checked(int result, const char *call)
{
    if (result < 0)
        throw std::system_error(-result, std::generic_category(), call);
    return result;
}

/// An interval as the C ABI takes it: rounded up, so that nothing is early.
template <class Rep, class Period>
int64_t to_usec(std::chrono::duration<Rep, Period> interval)
{
    return std::chrono::ceil<std::chrono::microseconds>(interval).count();
}

struct LoopUnref {
    void operator()(sluice_loop *loop) const noexcept { sluice_loop_unref(loop); }
};
struct ThreadUnref {
    void operator()(sluice_thread *thread) const noexcept { sluice_thread_unref(thread); }
};

} // namespace detail

using LoopRef = std::unique_ptr<sluice_loop, detail::LoopUnref>;

/// What `Handle` and `Timeout` have in common: an id on a loop, removed at the end.
/// `Remove` is the C function that removes it.
template <int (*Remove)(sluice_loop *, int)>
class Registration {
public:
    Registration() noexcept = default;
    Registration(sluice_loop *loop, int id) noexcept : loop_(sluice_loop_ref(loop)), id_(id) {}
    Registration(Registration &&other) noexcept : loop_(std::move(other.loop_)), id_(std::exchange(other.id_, 0)) {}
    Registration &operator=(Registration &&other) noexcept
    {
        if (this != &other) {
            remove();
            loop_ = std::move(other.loop_);
            id_ = std::exchange(other.id_, 0);
        }
        return *this;
    }
    ~Registration() { remove(); }

    /// Let go now; harmless when there is nothing to let go.
    void remove() noexcept
    {
        if (id_ > 0)
            Remove(loop_.get(), std::exchange(id_, 0));
        loop_.reset();
    }

    /// The id, or 0 for an owner that owns nothing.
    int id() const noexcept { return id_; }
    explicit operator bool() const noexcept { return id_ > 0; }

protected:
    sluice_loop *loop() const noexcept { return loop_.get(); }

private:
    LoopRef loop_;
    int id_ = 0;
};

/// Owner of a watch.
class Handle : public Registration<sluice_loop_remove_handle> {
public:
    using Registration::Registration;

    /// Change the wanted events; 0 parks. Throws std::system_error (ENOENT, EINVAL).
    void update(int events) { detail::checked(sluice_loop_update_handle(loop(), id(), events), "update_handle"); }
};

/// Owner of a timer.
class Timeout : public Registration<sluice_loop_remove_timeout> {
public:
    using Registration::Registration;

    /// Start anew from now with another interval.
    template <class Rep, class Period>
    void update(std::chrono::duration<Rep, Period> interval)
    {
        detail::checked(sluice_loop_update_timeout_usec(loop(), id(), detail::to_usec(interval)), "update_timeout");
    }

    /// Stop until the next update.
    void park() { detail::checked(sluice_loop_update_timeout_usec(loop(), id(), -1), "update_timeout"); }
};

/// Awaits one readiness of a descriptor; the result is the events that came.
class FdAwaiter {
public:
    FdAwaiter(sluice_loop *loop, int fd, int events) noexcept : loop_(loop), fd_(fd), wanted_(events) {}
    FdAwaiter(const FdAwaiter &) = delete;
    FdAwaiter &operator=(const FdAwaiter &) = delete;
    ~FdAwaiter() { disarm(); }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter)
    {
        waiter_ = waiter;
        watch_ = detail::checked(sluice_loop_add_handle(loop_, fd_, wanted_, on_event, this, nullptr), "add_handle");
    }
    int await_resume() const noexcept { return events_; }

private:
    static void on_event(int, int, int events, void *opaque) noexcept
    {
        auto *self = static_cast<FdAwaiter *>(opaque);
        self->events_ = events;
        self->disarm();
        self->waiter_.resume();
    }
    void disarm() noexcept
    {
        if (watch_ > 0)
            sluice_loop_remove_handle(loop_, std::exchange(watch_, 0));
    }

    sluice_loop *loop_;
    int fd_;
    int wanted_;
    int events_ = 0;
    int watch_ = 0;
    std::coroutine_handle<> waiter_;
};

/// Awaits the end of an interval.
class SleepAwaiter {
public:
    SleepAwaiter(sluice_loop *loop, int64_t usec) noexcept : loop_(loop), usec_(usec) {}
    SleepAwaiter(const SleepAwaiter &) = delete;
    SleepAwaiter &operator=(const SleepAwaiter &) = delete;
    ~SleepAwaiter() { disarm(); }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter)
    {
        waiter_ = waiter;
        int64_t interval = usec_ < 0 ? 0 : usec_;
        timer_ =
            detail::checked(sluice_loop_add_timeout_usec(loop_, interval, on_expiry, this, nullptr), "add_timeout");
    }
    void await_resume() const noexcept {}

private:
    static void on_expiry(int, void *opaque) noexcept
    {
        auto *self = static_cast<SleepAwaiter *>(opaque);
        self->disarm();
        self->waiter_.resume();
    }
    void disarm() noexcept
    {
        if (timer_ > 0)
            sluice_loop_remove_timeout(loop_, std::exchange(timer_, 0));
    }

    sluice_loop *loop_;
    int64_t usec_;
    int timer_ = 0;
    std::coroutine_handle<> waiter_;
};

/// A reference to a loop; copies refer to the same one.
class Loop {
public:
    /// A new loop on @p context (nullptr: GLib's default context). Throws std::system_error.
    explicit Loop(struct _GMainContext *context = nullptr, int backend = SLUICE_BACKEND_AUTO)
        : loop_(sluice_loop_new_with_backend(context, backend))
    {
        if (!loop_)
            throw std::system_error(errno, std::generic_category(), "sluice_loop_new");
    }
    Loop(const Loop &other) noexcept : loop_(sluice_loop_ref(other.get())) {}
    Loop(Loop &&) noexcept = default;
    Loop &operator=(const Loop &other) noexcept
    {
        loop_.reset(sluice_loop_ref(other.get()));
        return *this;
    }
    Loop &operator=(Loop &&) noexcept = default;

    /// Another reference to a loop of the C ABI.
    static Loop share(sluice_loop *loop) noexcept { return Loop(LoopRef(sluice_loop_ref(loop))); }
    static Loop default_loop() noexcept { return share(sluice_loop_default()); }

    sluice_loop *get() const noexcept { return loop_.get(); }
    struct _GMainContext *context() const noexcept { return sluice_loop_get_context(get()); }

    /// Watch @p fd; @p callback is called as `callback(int events)`.
    template <class F>
    [[nodiscard]] Handle watch(int fd, int events, F &&callback)
    {
        using Fn = std::decay_t<F>;
        auto box = std::make_unique<Fn>(std::forward<F>(callback));
        auto run = [](int, int, int got, void *opaque) noexcept { (*static_cast<Fn *>(opaque))(got); };
        int id = sluice_loop_add_handle(get(), fd, events, run, box.get(), drop<Fn>);
        detail::checked(id, "add_handle");
        box.release(); // the loop frees it
        return Handle(get(), id);
    }

    /// Call `callback()` after each @p interval: < 0 parked, 0 on every turn.
    template <class Rep, class Period, class F>
    [[nodiscard]] Timeout every(std::chrono::duration<Rep, Period> interval, F &&callback)
    {
        using Fn = std::decay_t<F>;
        auto box = std::make_unique<Fn>(std::forward<F>(callback));
        auto run = [](int, void *opaque) noexcept { (*static_cast<Fn *>(opaque))(); };
        int id = sluice_loop_add_timeout_usec(get(), detail::to_usec(interval), run, box.get(), drop<Fn>);
        detail::checked(id, "add_timeout");
        box.release(); // the loop frees it
        return Timeout(get(), id);
    }

    /// Await until @p fd has one of @p events, an error or a hang-up.
    [[nodiscard]] FdAwaiter ready(int fd, int events) const noexcept { return FdAwaiter(get(), fd, events); }
    [[nodiscard]] FdAwaiter readable(int fd) const noexcept { return ready(fd, SLUICE_EVENT_READABLE); }
    [[nodiscard]] FdAwaiter writable(int fd) const noexcept { return ready(fd, SLUICE_EVENT_WRITABLE); }
    /// Await the end of @p interval.
    template <class Rep, class Period>
    [[nodiscard]] SleepAwaiter sleep_for(std::chrono::duration<Rep, Period> interval) const noexcept
    {
        return SleepAwaiter(get(), detail::to_usec(interval));
    }

    /// One turn; true if anything was dispatched.
    bool iterate(bool may_block = true)
    {
        return detail::checked(sluice_loop_iterate(get(), may_block), "iterate") > 0;
    }
    void run() { detail::checked(sluice_loop_run(get()), "run"); }
    void quit() noexcept { sluice_loop_quit(get()); }
    void wake() noexcept { sluice_loop_wake(get()); }
    void drain() { detail::checked(sluice_loop_drain(get()), "drain"); }

    sluice_loop_stats stats() const noexcept
    {
        sluice_loop_stats stats;
        sluice_loop_get_stats(get(), &stats, sizeof stats);
        return stats;
    }

private:
    explicit Loop(LoopRef loop) noexcept : loop_(std::move(loop)) {}

    template <class Fn>
    static void drop(void *opaque) noexcept
    {
        delete static_cast<Fn *>(opaque);
    }

    LoopRef loop_;
};

/// Owner of a thread that runs a loop of its own.
class EventThread {
public:
    /// Throws std::system_error if no thread can be had.
    explicit EventThread(const char *name) : thread_(sluice_thread_new(name))
    {
        if (!thread_)
            throw std::system_error(errno, std::generic_category(), "sluice_thread_new");
    }

    Loop loop() const noexcept { return Loop::share(sluice_thread_get_loop(thread_.get())); }
    struct _GMainContext *context() const noexcept { return sluice_thread_get_context(thread_.get()); }

private:
    std::unique_ptr<sluice_thread, detail::ThreadUnref> thread_;
};

} // namespace sluice
