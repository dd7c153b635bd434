// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A named thread that runs a context of its own: what is behind a `sluice_thread`.
// The last reference may be dropped on any thread, its own included; the thread then
// ends after its current turn, and what its loop still held is let go on it.

#include <atomic>
#include <string>
#include <thread>

#include "util/event/loop.hpp"

namespace sluice::event {

class EventThread {
public:
    // nullptr with errno set. The caller has the one reference.
    static EventThread *create(const char *name);
    EventThread(const EventThread &) = delete;
    EventThread &operator=(const EventThread &) = delete;

    void ref() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void unref() noexcept;

    LoopImpl *loop() const noexcept { return loop_; }
    GMainContext *context() const noexcept { return loop_->context(); }

private:
    EventThread(const char *name, LoopImpl *loop) : name_(name ? name : ""), loop_(loop) {}
    ~EventThread() { loop_->unref(); }

    void main();

    std::string name_;
    LoopImpl *loop_; // a reference of our own
    std::thread thread_;
    std::atomic<int> references_{1};
    bool delete_at_end_ = false; // the last reference was dropped on the thread itself
};

} // namespace sluice::event
