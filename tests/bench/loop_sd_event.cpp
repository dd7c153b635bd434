// SPDX-License-Identifier: LGPL-2.1-or-later

// sd-event: one source for each handle and timer. Its timers fire once, so that a
// periodic one re-arms itself in its handler. The accuracy is set to 1 us, since by
// default sd-event coalesces over 250 ms, which is another job.

#include "loop_bench.hpp"

#include <cerrno>
#include <sys/epoll.h>

#include <systemd/sd-event.h>

namespace loop_bench {
namespace {

int checked(int result)
{
    if (result < 0)
        die("sd-event", -result);
    return result;
}

uint64_t usec(int interval_ms)
{
    return static_cast<uint64_t>(interval_ms) * 1000;
}

class SdEvent final : public Contestant {
public:
    SdEvent() { checked(sd_event_new(&event_)); }
    ~SdEvent() override { sd_event_unref(event_); }

    void watch(std::span<Slot> slots) override
    {
        sources_.reserve(slots.size());
        for (Slot &slot : slots) {
            sd_event_source *source;
            checked(sd_event_add_io(event_, &source, slot.fd, EPOLLIN, on_event, &slot));
            sources_.push_back(source);
        }
    }
    void unwatch() override
    {
        for (sd_event_source *source : sources_)
            sd_event_source_disable_unref(source);
        sources_.clear();
        turn();
    }
    // sd_event_exit() is for good, so run turn by turn
    void run() override
    {
        for (stop_ = false; !stop_;)
            checked(sd_event_run(event_, UINT64_MAX));
    }
    void turn() override { checked(sd_event_run(event_, 0)); }
    void toggle() override
    {
        for (sd_event_source *source : sources_) {
            sd_event_source_set_enabled(source, SD_EVENT_OFF);
            sd_event_source_set_enabled(source, SD_EVENT_ON);
        }
    }

    bool has_timers() const override { return true; }
    void add_timers(std::span<const int> intervals_ms) override
    {
        timers_.resize(intervals_ms.size());
        for (size_t i = 0; i < timers_.size(); i++) {
            Timer &timer = timers_[i];
            timer.interval_usec = usec(intervals_ms[i]);
            timer.owner = this;
            checked(sd_event_add_time_relative(event_, &timer.source, CLOCK_MONOTONIC, timer.interval_usec, 1,
                                               on_expiry, &timer));
            checked(sd_event_source_set_enabled(timer.source, SD_EVENT_ON));
        }
    }
    void rearm_timers(std::span<const int> intervals_ms) override
    {
        for (size_t i = 0; i < timers_.size(); i++) {
            timers_[i].interval_usec = usec(intervals_ms[i]);
            checked(sd_event_source_set_time_relative(timers_[i].source, timers_[i].interval_usec));
        }
    }
    void expire_timers(uint64_t count) override
    {
        expiries_left_ = count;
        run();
    }
    void remove_timers() override
    {
        for (Timer &timer : timers_)
            sd_event_source_disable_unref(timer.source);
        timers_.clear();
        turn();
    }

private:
    struct Timer {
        sd_event_source *source = nullptr;
        uint64_t interval_usec = 0;
        SdEvent *owner = nullptr;
    };

    static int on_event(sd_event_source *, int, uint32_t, void *opaque)
    {
        if (pass_token(static_cast<Slot *>(opaque)))
            stop_ = true;
        return 0;
    }
    static int on_expiry(sd_event_source *source, uint64_t deadline_usec, void *opaque)
    {
        auto *timer = static_cast<Timer *>(opaque);
        sd_event_source_set_time(source, deadline_usec + timer->interval_usec);
        if (--timer->owner->expiries_left_ == 0)
            stop_ = true;
        return 0;
    }

    static inline bool stop_ = false;
    sd_event *event_ = nullptr;
    std::vector<sd_event_source *> sources_;
    std::vector<Timer> timers_;
    uint64_t expiries_left_ = 0;
};

} // namespace

std::unique_ptr<Contestant> make_sd_event()
{
    return std::make_unique<SdEvent>();
}

} // namespace loop_bench
