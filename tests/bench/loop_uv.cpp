// SPDX-License-Identifier: LGPL-2.1-or-later

// libuv: one uv_poll_t or uv_timer_t on the heap for each handle, closed and freed
// in its close callback.

#include "loop_bench.hpp"

#include <cerrno>

#include <uv.h>

namespace loop_bench {
namespace {

void checked(int result)
{
    if (result < 0)
        die("libuv", -result);
}

class Uv final : public Contestant {
public:
    Uv() { checked(uv_loop_init(&loop_)); }
    ~Uv() override { checked(uv_loop_close(&loop_)); }

    void watch(std::span<Slot> slots) override
    {
        polls_.reserve(slots.size());
        for (Slot &slot : slots) {
            auto *poll = new uv_poll_t;
            checked(uv_poll_init(&loop_, poll, slot.fd));
            poll->data = &slot;
            checked(uv_poll_start(poll, UV_READABLE, on_event));
            polls_.push_back(poll);
        }
    }
    void unwatch() override
    {
        for (uv_poll_t *poll : polls_)
            uv_close(reinterpret_cast<uv_handle_t *>(poll),
                     [](uv_handle_t *handle) { delete reinterpret_cast<uv_poll_t *>(handle); });
        polls_.clear();
        uv_run(&loop_, UV_RUN_NOWAIT);
    }
    void run() override { uv_run(&loop_, UV_RUN_DEFAULT); }
    void turn() override { uv_run(&loop_, UV_RUN_NOWAIT); }
    void toggle() override
    {
        for (uv_poll_t *poll : polls_) {
            uv_poll_stop(poll);
            uv_poll_start(poll, UV_READABLE, on_event);
        }
    }

    bool has_timers() const override { return true; }
    void add_timers(std::span<const int> intervals_ms) override
    {
        timers_.reserve(intervals_ms.size());
        uv_update_time(&loop_);
        for (int interval : intervals_ms) {
            auto *timer = new uv_timer_t;
            checked(uv_timer_init(&loop_, timer));
            timer->data = this;
            checked(uv_timer_start(timer, on_expiry, static_cast<uint64_t>(interval), static_cast<uint64_t>(interval)));
            timers_.push_back(timer);
        }
    }
    void rearm_timers(std::span<const int> intervals_ms) override
    {
        uv_update_time(&loop_);
        for (size_t i = 0; i < timers_.size(); i++) {
            auto interval = static_cast<uint64_t>(intervals_ms[i]);
            checked(uv_timer_start(timers_[i], on_expiry, interval, interval));
        }
    }
    void expire_timers(uint64_t count) override
    {
        expiries_left_ = count;
        uv_run(&loop_, UV_RUN_DEFAULT);
    }
    void remove_timers() override
    {
        for (uv_timer_t *timer : timers_)
            uv_close(reinterpret_cast<uv_handle_t *>(timer),
                     [](uv_handle_t *handle) { delete reinterpret_cast<uv_timer_t *>(handle); });
        timers_.clear();
        uv_run(&loop_, UV_RUN_NOWAIT);
    }

private:
    static void on_event(uv_poll_t *poll, int, int)
    {
        if (pass_token(static_cast<Slot *>(poll->data)))
            uv_stop(poll->loop);
    }
    static void on_expiry(uv_timer_t *timer)
    {
        if (--static_cast<Uv *>(timer->data)->expiries_left_ == 0)
            uv_stop(timer->loop);
    }

    uv_loop_t loop_;
    std::vector<uv_poll_t *> polls_;
    std::vector<uv_timer_t *> timers_;
    uint64_t expiries_left_ = 0;
};

} // namespace

std::unique_ptr<Contestant> make_uv()
{
    return std::make_unique<Uv>();
}

} // namespace loop_bench
