// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes libsluice the event loop of libvirt in this process, and runs it: in the
// waits of the test itself, or on another thread. What callbacks write and tests read
// is guarded by the host's mutex. One in a process, made before any connection.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include <sluice/event.h>

namespace sluice::test {

class EventHost {
public:
    explicit EventHost(bool on_thread);
    ~EventHost();
    EventHost(const EventHost &) = delete;
    EventHost &operator=(const EventHost &) = delete;

    // From callbacks, on whichever thread: change what a test may be waiting for.
    void change(const std::function<void()> &action);

    // Let events happen until the condition holds; false if it did not within a minute.
    // The condition is asked with the mutex held.
    bool until(const std::function<bool()> &condition);

    // Let events happen until nothing is registered any more; false if something stays.
    bool until_idle();

private:
    bool holds(const std::function<bool()> &condition);
    bool run_until(const std::function<bool()> &condition);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

} // namespace sluice::test
