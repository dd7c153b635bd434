// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The epoll backend: the driver is the only GSource, and holds one epoll descriptor
// and the nearest deadline. GLib polls that one descriptor, so the cost of an event
// does not depend on how many are watched; a turn takes events in batches, with
// bounds in number and time, so that GLib's own cost is paid once for many events.
// Within a turn a descriptor is reported again only after a poll has seen it not
// ready: a callback that leaves data behind runs once a turn, as with any loop.
//
// epoll knows one registration for each descriptor, and drops it silently when the
// file is closed for good. `Entry` is what we believe the kernel has; `Watch::verify`
// marks where that belief may be wrong. An event that contradicts it (the file lives
// on elsewhere under another number) rebuilds the epoll set, since a registration
// whose number is gone cannot be deleted one by one.

#include <sys/epoll.h>

#include <cstdint>
#include <vector>

#include "util/base/unique_fd.hpp"
#include "util/event/backend.hpp"
#include "util/event/timer_heap.hpp"

namespace sluice::event {

class EpollBackend final : public Backend {
public:
    EpollBackend(Core &core, UniqueFd epoll);

    void removed(Watch &watch) override;
    void scheduled(Timer &timer) override;
    void removed(Timer &timer) override;
    void flush() override;

protected:
    bool prepare(int &timeout_ms) override;
    bool check() override;
    void dispatch() override;

private:
    // The watches of one descriptor and what the kernel was told about it.
    struct Entry {
        Watch *watches = nullptr;
        uint32_t armed = 0;      // epoll events, 0: not registered
        uint32_t generation = 0; // of the registration; comes back with each event
        uint64_t reported = 0;   // poll_serial_ of the last poll that found it ready
        bool unpollable = false; // epoll refuses it: always ready
        bool verify = false;
        bool queued = false; // in sync_queue_
    };

    // Does polling once more within a turn pay? Only where the last attempts found
    // something; where they did not, it is tried ever more rarely.
    class Repoll {
    public:
        bool worthwhile() noexcept { return skip_ == 0 || --skip_ == 0; }
        void found(bool something) noexcept
        {
            skip_ = backoff_ = something ? 0 : (backoff_ < 16 ? 2 * backoff_ + 1 : backoff_);
        }

    private:
        unsigned skip_ = 0, backoff_ = 0;
    };

    static constexpr int batch_max = 256;
    static constexpr int turn_events_max = 1024;
    static constexpr int64_t turn_usec_max = 1000;
    static constexpr uint8_t hits_between_looks = 64;

    Entry &entry(int fd);
    void apply(Watch &watch);
    void unlink(Entry &entry, Watch &watch);
    void sync(int fd, Entry &entry);
    bool control(int op, int fd, Entry &entry, uint32_t events);
    void list_unpollable(int fd, uint32_t desired);
    void forget_unpollable(int fd, Entry &entry);
    void report_bad_later(Entry &entry);
    void rebuild();

    void dispatch_bad();
    void dispatch_unpollable();
    void dispatch_polled();
    void dispatch_timers();
    int poll(epoll_event *events);
    enum class Delivery { done, repeated, void_batch };
    Delivery deliver(const epoll_event &event);
    bool fire(Watch &watch, int events);

    bool timers_due() const noexcept;

    UniqueFd epoll_;
    gpointer epoll_tag_;
    std::vector<Entry> entries_;  // by descriptor; loop's thread
    std::vector<int> sync_queue_; // descriptors to look at in this flush
    std::vector<int> unpollable_; // descriptors that are always ready for what is wanted
    std::vector<Watch *> to_report_bad_;
    std::vector<Watch *> reporting_bad_;
    uint64_t poll_serial_ = 0; // a callback that ran a nested turn has changed it
    int64_t turn_time_ = 0;    // microseconds; constant within a turn
    Repoll repoll_;

    // guarded by the core's mutex
    TimerHeap<Timer> heap_;
    std::vector<Timer *> every_turn_; // timers with interval 0; a removed one leaves a nullptr
    size_t every_turn_count_ = 0;
    std::atomic<bool> timers_running_{false}; // read without the mutex, to pass over all of this
};

} // namespace sluice::event
