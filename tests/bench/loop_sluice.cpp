// SPDX-License-Identifier: LGPL-2.1-or-later

// libsluice through its C ABI, on a private context, with either backend.

#include "loop_bench.hpp"

#include <cerrno>

#include <glib.h>
#include <sluice/event.h>

namespace loop_bench {
namespace {

class Sluice final : public Contestant {
public:
    explicit Sluice(int backend) : context_(g_main_context_new())
    {
        loop_ = sluice_loop_new_with_backend(context_, backend);
        if (!loop_)
            die("sluice_loop_new_with_backend", errno);
    }
    ~Sluice() override
    {
        sluice_loop_unref(loop_);
        g_main_context_unref(context_);
    }

    void watch(std::span<Slot> slots) override
    {
        current_ = loop_;
        watches_.reserve(slots.size());
        for (Slot &slot : slots)
            watches_.push_back(
                checked(sluice_loop_add_handle(loop_, slot.fd, SLUICE_EVENT_READABLE, on_event, &slot, nullptr)));
    }
    void unwatch() override
    {
        for (int watch : watches_)
            checked(sluice_loop_remove_handle(loop_, watch));
        watches_.clear();
        checked(sluice_loop_drain(loop_));
    }
    void run() override { checked(sluice_loop_run(loop_)); }
    void turn() override { checked(sluice_loop_iterate(loop_, 0)); }
    void toggle() override
    {
        for (int watch : watches_) {
            sluice_loop_update_handle(loop_, watch, 0);
            sluice_loop_update_handle(loop_, watch, SLUICE_EVENT_READABLE);
        }
    }

    bool has_timers() const override { return true; }
    void add_timers(std::span<const int> intervals_ms) override
    {
        timers_.reserve(intervals_ms.size());
        for (int interval : intervals_ms)
            timers_.push_back(checked(sluice_loop_add_timeout(loop_, interval, on_expiry, this, nullptr)));
    }
    void rearm_timers(std::span<const int> intervals_ms) override
    {
        for (size_t i = 0; i < timers_.size(); i++)
            checked(sluice_loop_update_timeout(loop_, timers_[i], intervals_ms[i]));
    }
    void expire_timers(uint64_t count) override
    {
        expiries_left_ = count;
        checked(sluice_loop_run(loop_));
    }
    void remove_timers() override
    {
        for (int timer : timers_)
            checked(sluice_loop_remove_timeout(loop_, timer));
        timers_.clear();
        checked(sluice_loop_drain(loop_));
    }

    int64_t kernel_changes() const override
    {
        sluice_loop_stats stats;
        sluice_loop_get_stats(loop_, &stats, sizeof stats);
        return static_cast<int64_t>(stats.kernel_changes);
    }

private:
    static int checked(int result)
    {
        if (result < 0)
            die("libsluice", -result);
        return result;
    }
    static void on_event(int, int, int, void *opaque)
    {
        if (pass_token(static_cast<Slot *>(opaque)))
            sluice_loop_quit(current_);
    }
    static void on_expiry(int, void *opaque)
    {
        auto *self = static_cast<Sluice *>(opaque);
        if (--self->expiries_left_ == 0)
            sluice_loop_quit(self->loop_);
    }

    static inline sluice_loop *current_ = nullptr;
    GMainContext *context_;
    sluice_loop *loop_;
    std::vector<int> watches_;
    std::vector<int> timers_;
    uint64_t expiries_left_ = 0;
};

} // namespace

std::unique_ptr<Contestant> make_sluice_epoll()
{
    return std::make_unique<Sluice>(SLUICE_BACKEND_EPOLL);
}

std::unique_ptr<Contestant> make_sluice_gsource()
{
    return std::make_unique<Sluice>(SLUICE_BACKEND_GSOURCE);
}

} // namespace loop_bench
