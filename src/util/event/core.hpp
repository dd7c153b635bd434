// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The state that a loop's interface (LoopImpl) and its backend share, and the few
// rules that must be the same on every backend: what is reported to a callback, how
// a timer's next deadline follows from its last, when the dead are let go.
//
// "The loop's thread" is whichever thread owns the GMainContext at the moment.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include <glib.h>

#include "util/event/registration.hpp"
#include "util/glib/source_release.hpp"

namespace sluice::event {

// Written by one thread at a time, read by any.
class Counter {
public:
    void add(uint64_t n = 1) noexcept { value_.store(get() + n, std::memory_order_relaxed); }
    uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_{0};
};

struct Counters {
    Counter turns, polls, events, expirations, frees, changes, kernel_changes, bad_fds; // loop's thread
    Counter wakeups;                                                                    // under the mutex
};

using ClockFunction = int64_t (*)();

class Core {
public:
    Core(GMainContext *context, ClockFunction clock);
    ~Core();
    Core(const Core &) = delete;
    Core &operator=(const Core &) = delete;

    GMainContext *const context; // a reference of our own
    const ClockFunction clock;   // microseconds, monotonic
    const SourceRelease release_strategy;
    const std::shared_ptr<ReleaseCounters> releases; // shared with releases that outlive us

    std::mutex mutex;
    Counters counters;

    // --- with the mutex held ---

    // Note that something about a watch changed; the backend looks at it before it polls.
    void change(Watch &watch) noexcept;
    // The watches that changed since the last call, chained by next_changed; their
    // `changed` is still set.
    Watch *take_changes() noexcept;
    // Hand over to be freed. Nothing but the Reaper may refer to it afterwards.
    void bury(Registration &dead) noexcept;
    // Before a nested turn: the watches whose callbacks are on the stack are not to be
    // reported by it. fire() puts them back.
    void suspend_running() noexcept;
    // Interrupt the wait if the loop's thread is in one.
    void wake_if_polling() noexcept;

    // --- on the loop's thread, without the mutex ---

    // Report `events` to a watch if it wants to hear of them now.
    void fire(Watch &watch, int events);
    // Tell a watch, once, that its descriptor is closed, and leave it alone until it is updated.
    void fire_bad(Watch &watch);
    void fire(Timer &timer);
    // Run the free functions that are due; nothing happens inside a callback.
    void reap();
    bool reap_pending() const noexcept { return dead_ != nullptr && depth_.load(std::memory_order_relaxed) == 0; }
    // A callback or free function of this loop is on the stack.
    bool in_callback() const noexcept { return depth_.load(std::memory_order_relaxed) > 0; }

    bool changes_pending() const noexcept { return changes_.load(std::memory_order_relaxed) != nullptr; }

    // The loop's thread is about to wait, or is waiting; set with the mutex held.
    std::atomic<bool> polling{false};
    // No reference to the loop is left: the next turn outside callbacks is its last.
    std::atomic<bool> ending{false};
    // The context has been iterated at least once.
    std::atomic<bool> ran{false};

    // The watches whose callbacks are on the stack, innermost first (loop's thread).
    struct Frame {
        Watch *watch;
        Frame *outer;
    };
    Frame *frames() const noexcept { return frames_; }

private:
    // only the loop's thread writes it, so that no locked instruction is needed
    void enter() noexcept { depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    void leave() noexcept { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed); }

    std::atomic<Watch *> changes_{nullptr};
    std::atomic<Registration *> dead_{nullptr};
    Registration *last_dead_ = nullptr;
    std::atomic<int> depth_{0};
    Frame *frames_ = nullptr;
};

// When a timer is due after having been due at `deadline`: the first of the times
// deadline + n * interval that lies after `now`.
int64_t next_deadline(int64_t deadline, int64_t interval, int64_t now) noexcept;
// now + interval, kept from overflowing.
int64_t deadline_after(int64_t now, int64_t interval) noexcept;

} // namespace sluice::event
