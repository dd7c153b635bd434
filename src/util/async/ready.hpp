// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Await a descriptor and a deadline at once, whichever comes first.

#include <coroutine>
#include <cstdint>
#include <utility>

#include <sluice/event.hpp>

#include "util/base/clock.hpp"

namespace sluice {

// A deadline in monotonic microseconds that never comes.
inline constexpr int64_t no_deadline = INT64_MAX;

// `now + interval`, and never for an interval < 0.
inline int64_t deadline_after(int64_t interval_usec, int64_t now_usec) noexcept
{
    return interval_usec < 0 || interval_usec > no_deadline - now_usec ? no_deadline : now_usec + interval_usec;
}

// The result is the events that came (as FdAwaiter's), or 0 when the deadline did.
// Awaited and destroyed on the loop's thread.
class [[nodiscard]] ReadyBefore {
public:
    ReadyBefore(const Loop &loop, int fd, int events, int64_t deadline_usec) noexcept
        : loop_(loop.get()), fd_(fd), wanted_(events), deadline_(deadline_usec)
    {}
    ReadyBefore(const ReadyBefore &) = delete;
    ReadyBefore &operator=(const ReadyBefore &) = delete;
    ~ReadyBefore() { disarm(); }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter)
    {
        waiter_ = waiter;
        watch_ = detail::checked(sluice_loop_add_handle(loop_, fd_, wanted_, on_event, this, nullptr), "add_handle");
        if (deadline_ == no_deadline)
            return;
        int64_t left = deadline_ - monotonic_usec();
        int id = sluice_loop_add_timeout_usec(loop_, left < 0 ? 0 : left, on_expiry, this, nullptr);
        timer_ = detail::checked(id, "add_timeout");
    }
    int await_resume() const noexcept { return events_; }

private:
    static void on_event(int, int, int events, void *opaque) noexcept { wake(opaque, events); }
    static void on_expiry(int, void *opaque) noexcept { wake(opaque, 0); }
    static void wake(void *opaque, int events) noexcept
    {
        auto *self = static_cast<ReadyBefore *>(opaque);
        self->events_ = events;
        self->disarm();
        self->waiter_.resume();
    }
    void disarm() noexcept
    {
        if (watch_ > 0)
            sluice_loop_remove_handle(loop_, std::exchange(watch_, 0));
        if (timer_ > 0)
            sluice_loop_remove_timeout(loop_, std::exchange(timer_, 0));
    }

    sluice_loop *loop_;
    int fd_;
    int wanted_;
    int64_t deadline_;
    int events_ = 0;
    int watch_ = 0;
    int timer_ = 0;
    std::coroutine_handle<> waiter_;
};

} // namespace sluice
