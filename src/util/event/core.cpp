// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/core.hpp"

namespace sluice::event {

Core::Core(GMainContext *ctx, ClockFunction clk)
    : context(g_main_context_ref(ctx)), clock(clk), release_strategy(source_release_strategy()),
      releases(std::make_shared<ReleaseCounters>())
{}

Core::~Core()
{
    g_main_context_unref(context);
}

void Core::change(Watch &watch) noexcept
{
    if (watch.changed)
        return;
    watch.changed = true;
    watch.next_changed = changes_.load(std::memory_order_relaxed);
    changes_.store(&watch, std::memory_order_relaxed);
}

Watch *Core::take_changes() noexcept
{
    // newest first in the list; turned round so that watches of one descriptor are
    // looked at in the order of their calls
    Watch *list = changes_.exchange(nullptr, std::memory_order_relaxed);
    Watch *reversed = nullptr;
    while (list) {
        Watch *next = list->next_changed;
        list->next_changed = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

void Core::bury(Registration &dead) noexcept
{
    dead.next_dead = nullptr;
    if (dead_.load(std::memory_order_relaxed))
        last_dead_->next_dead = &dead;
    else
        dead_.store(&dead, std::memory_order_relaxed);
    last_dead_ = &dead;
}

void Core::wake_if_polling() noexcept
{
    // once is enough for one wait
    if (!polling.load(std::memory_order_relaxed))
        return;
    polling.store(false, std::memory_order_relaxed);
    counters.wakeups.add();
    g_main_context_wakeup(context);
}

void Core::fire(Watch &watch, int events)
{
    int wanted = watch.wanted.load(std::memory_order_acquire);
    if (wanted == 0 || watch.removed.load(std::memory_order_acquire) || watch.bad.load(std::memory_order_relaxed))
        return;
    events &= wanted | unasked_events;
    if (events == 0)
        return;
    Frame frame{&watch, frames_};
    frames_ = &frame;
    enter();
    counters.events.add();
    watch.callback(watch.id, watch.fd, events, watch.opaque);
    leave();
    frames_ = frame.outer;
    if (watch.suspended) {
        std::lock_guard lock(mutex);
        watch.suspended = false;
        change(watch);
    }
}

void Core::suspend_running() noexcept
{
    for (Frame *frame = frames_; frame; frame = frame->outer) {
        if (!frame->watch->suspended) {
            frame->watch->suspended = true;
            change(*frame->watch);
        }
    }
}

void Core::fire_bad(Watch &watch)
{
    {
        std::lock_guard lock(mutex);
        if (watch.bad.load(std::memory_order_relaxed) || watch.removed.load(std::memory_order_relaxed) ||
            watch.wanted.load(std::memory_order_relaxed) == 0)
            return;
        watch.bad.store(true, std::memory_order_relaxed);
        change(watch);
    }
    counters.bad_fds.add();
    enter();
    counters.events.add();
    watch.callback(watch.id, watch.fd, SLUICE_EVENT_ERROR, watch.opaque);
    leave();
}

void Core::fire(Timer &timer)
{
    if (timer.running || timer.removed.load(std::memory_order_acquire))
        return;
    timer.running = true;
    enter();
    counters.expirations.add();
    timer.callback(timer.id, timer.opaque);
    leave();
    timer.running = false;
}

void Core::reap()
{
    if (!reap_pending())
        return;
    Registration *list;
    {
        std::lock_guard lock(mutex);
        // what these free functions bury waits for the next turn, which comes at once
        list = dead_.exchange(nullptr, std::memory_order_relaxed);
    }
    enter();
    while (list) {
        std::unique_ptr<Registration> dead(list);
        list = dead->next_dead;
        if (dead->free_opaque)
            dead->free_opaque(dead->opaque);
        counters.frees.add();
    }
    leave();
}

int64_t next_deadline(int64_t deadline, int64_t interval, int64_t now) noexcept
{
    int64_t missed = now > deadline ? (now - deadline) / interval : 0;
    return deadline_after(deadline + missed * interval, interval);
}

int64_t deadline_after(int64_t now, int64_t interval) noexcept
{
    return interval > INT64_MAX - now ? INT64_MAX : now + interval;
}

} // namespace sluice::event
