// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a loop keeps for a watch and for a timer. Made by an add, marked by a
// remove, destroyed by the Reaper on the loop's thread, so that a pointer that the
// loop's thread holds during a turn stays good for that turn.
//
// Fields are guarded by the core's mutex except: atomics; those marked "loop",
// which only the loop's thread touches; and what never changes after the add.

#include <atomic>
#include <cstdint>

#include <glib.h>

#include <sluice/event.h>

#include "util/event/timer_heap.hpp"

namespace sluice::event {

inline constexpr int all_events =
    SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE | SLUICE_EVENT_ERROR | SLUICE_EVENT_HANGUP;
// reported whether asked for or not
inline constexpr int unasked_events = SLUICE_EVENT_ERROR | SLUICE_EVENT_HANGUP;

struct Registration {
    Registration() = default;
    Registration(const Registration &) = delete;
    Registration &operator=(const Registration &) = delete;
    virtual ~Registration() = default;

    void *opaque = nullptr;
    sluice_event_free_callback free_opaque = nullptr;
    Registration *next_dead = nullptr;
    int id = 0;
    std::atomic<bool> removed{false};
};

// What an event needs comes first, and fits into one cache line: with thousands of
// watches each further line is a miss.
struct alignas(64) Watch final : Registration {
    std::atomic<bool> bad{false}; // on a closed descriptor, until the next update
    bool suspended = false;       // loop: its callback runs a nested turn
    uint8_t hits = 0;             // loop: events since its descriptor was last looked at (epoll)
    int fd = -1;
    std::atomic<int> wanted{0};
    sluice_event_handle_callback callback = nullptr;
    Watch *next_on_fd = nullptr; // loop: (epoll)

    bool changed = false; // is in the core's list of changes
    bool verify = false;  // the kernel's idea of this descriptor may be out of date
    bool linked = false;  // loop: is in its descriptor's list (epoll)
    Watch *next_changed = nullptr;
    GSource *source = nullptr;   // (gsource)
    GPollFD polled = {-1, 0, 0}; // loop: what GLib polls; events 0: not now (gsource)

    // What it is to be armed with at this moment.
    int effective() const noexcept
    {
        return suspended || bad.load(std::memory_order_relaxed) ? 0 : wanted.load(std::memory_order_relaxed);
    }
};

struct Timer final : Registration {
    sluice_event_timeout_callback callback = nullptr;
    int64_t interval = -1; // microseconds; < 0 parked, 0 every turn
    int64_t deadline = 0;  // microseconds, monotonic; meaningless while parked or 0

    bool running = false;                    // loop: its callback is on the stack
    uint32_t heap_index = not_in_heap;       // (epoll)
    uint32_t every_turn_index = not_in_heap; // (epoll)
    bool changed = false;                    // is in the backend's list of changes (gsource)
    Timer *next_changed = nullptr;           // (gsource)
    GSource *source = nullptr;               // (gsource)
    int64_t armed = -1;                      // loop: ready time of its source (gsource)
};

} // namespace sluice::event
