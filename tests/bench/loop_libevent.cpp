// SPDX-License-Identifier: LGPL-2.1-or-later

// libevent 2: persistent events on its epoll backend.

#include "loop_bench.hpp"

#include <cerrno>

#include <event2/event.h>

namespace loop_bench {
namespace {

void checked(int result)
{
    if (result < 0)
        die("libevent", errno);
}

timeval to_timeval(int interval_ms)
{
    return {interval_ms / 1000, (interval_ms % 1000) * 1000};
}

class Libevent final : public Contestant {
public:
    Libevent() : base_(event_base_new())
    {
        if (!base_)
            die("event_base_new", ENOMEM);
    }
    ~Libevent() override { event_base_free(base_); }

    void watch(std::span<Slot> slots) override
    {
        base_of_all_ = base_;
        events_.reserve(slots.size());
        for (Slot &slot : slots) {
            events_.push_back(event_new(base_, slot.fd, EV_READ | EV_PERSIST, on_event, &slot));
            checked(event_add(events_.back(), nullptr));
        }
    }
    void unwatch() override
    {
        for (event *watch : events_)
            event_free(watch);
        events_.clear();
        turn();
    }
    void run() override { checked(event_base_dispatch(base_)); }
    void turn() override { checked(event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK)); }
    void toggle() override
    {
        for (event *watch : events_) {
            event_del(watch);
            event_add(watch, nullptr);
        }
    }

    bool has_timers() const override { return true; }
    void add_timers(std::span<const int> intervals_ms) override
    {
        timers_.reserve(intervals_ms.size());
        for (int interval : intervals_ms) {
            timeval after = to_timeval(interval);
            timers_.push_back(event_new(base_, -1, EV_PERSIST, on_expiry, this));
            checked(event_add(timers_.back(), &after));
        }
    }
    void rearm_timers(std::span<const int> intervals_ms) override
    {
        for (size_t i = 0; i < timers_.size(); i++) {
            timeval after = to_timeval(intervals_ms[i]);
            checked(event_add(timers_[i], &after));
        }
    }
    void expire_timers(uint64_t count) override
    {
        expiries_left_ = count;
        checked(event_base_dispatch(base_));
    }
    void remove_timers() override
    {
        for (event *timer : timers_)
            event_free(timer);
        timers_.clear();
        turn();
    }

private:
    static void on_event(evutil_socket_t, short, void *opaque)
    {
        if (pass_token(static_cast<Slot *>(opaque)))
            event_base_loopbreak(base_of_all_);
    }
    static void on_expiry(evutil_socket_t, short, void *opaque)
    {
        auto *self = static_cast<Libevent *>(opaque);
        if (--self->expiries_left_ == 0)
            event_base_loopbreak(self->base_);
    }

    static inline event_base *base_of_all_ = nullptr;
    event_base *base_;
    std::vector<event *> events_;
    std::vector<event *> timers_;
    uint64_t expiries_left_ = 0;
};

} // namespace

std::unique_ptr<Contestant> make_libevent()
{
    return std::make_unique<Libevent>();
}

} // namespace loop_bench
