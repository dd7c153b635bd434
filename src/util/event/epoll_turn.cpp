// SPDX-License-Identifier: LGPL-2.1-or-later

// One turn of the epoll backend: what it waits for, and what it runs afterwards.

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "util/event/epoll_backend.hpp"

namespace sluice::event {
namespace {

int from_epoll(uint32_t events)
{
    return ((events & EPOLLIN) ? SLUICE_EVENT_READABLE : 0) | ((events & EPOLLOUT) ? SLUICE_EVENT_WRITABLE : 0) |
           ((events & EPOLLERR) ? SLUICE_EVENT_ERROR : 0) | ((events & EPOLLHUP) ? SLUICE_EVENT_HANGUP : 0);
}

// What control() put into an event; the generation is above.
size_t fd_of(const epoll_event &event)
{
    return event.data.u64 & UINT32_MAX;
}

bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

} // namespace

bool EpollBackend::prepare(int &timeout_ms)
{
    bool ready = every_turn_count_ > 0 || !to_report_bad_.empty() || !unpollable_.empty();
    if (!ready && heap_.empty())
        return false;
    turn_time_ = core().clock();
    if (ready)
        return true; // and GLib does not wait
    int64_t left = heap_.top_deadline() - turn_time_;
    if (left <= 0)
        return true;
    // rounded up: a wait that ends early would fire early, or poll twice
    timeout_ms = static_cast<int>(std::min<int64_t>((left - 1) / 1000 + 1, G_MAXINT));
    return false;
}

bool EpollBackend::check()
{
    // all else that is ready without a poll has been found by prepare()
    if (timers_running_.load(std::memory_order_relaxed)) {
        std::lock_guard lock(core().mutex);
        turn_time_ = core().clock();
        if (timers_due())
            return true;
    }
    return g_source_query_unix_fd(driver(), epoll_tag_) != 0;
}

void EpollBackend::dispatch()
{
    uint64_t serial = poll_serial_;
    dispatch_bad();
    if (poll_serial_ == serial)
        dispatch_unpollable();
    if (g_source_query_unix_fd(driver(), epoll_tag_) != 0)
        dispatch_polled();
    dispatch_timers();
}

void EpollBackend::dispatch_bad()
{
    if (to_report_bad_.empty())
        return;
    // a removal during these callbacks marks the watch and does not unlink it, and
    // nothing is reaped before the turn ends: the pointers stay good, unless a nested
    // turn runs, which finds an empty list
    reporting_bad_.clear();
    reporting_bad_.swap(to_report_bad_);
    for (size_t i = 0; i < reporting_bad_.size(); ++i) {
        if (Watch *watch = reporting_bad_[i])
            core().fire_bad(*watch);
    }
    reporting_bad_.clear();
}

void EpollBackend::dispatch_unpollable()
{
    uint64_t serial = poll_serial_;
    for (size_t i = 0; i < unpollable_.size() && poll_serial_ == serial; ++i) {
        int fd = unpollable_[i];
        for (Watch *watch = entry(fd).watches; watch; watch = watch->next_on_fd) {
            if (!is_open(fd))
                core().fire_bad(*watch);
            else if (!fire(*watch, SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE))
                return;
        }
    }
}

void EpollBackend::dispatch_polled()
{
    epoll_event events[batch_max];
    int handled = 0;
    int64_t deadline = 0;
    ++poll_serial_; // no poll of an earlier turn was the one before
    for (bool first = true, again = false;; first = false) {
        if (!first && core().changes_pending()) {
            std::lock_guard lock(core().mutex);
            flush();
        }
        int count = poll(events);
        if (count <= 0) {
            if (again)
                repoll_.found(false);
            return;
        }
        uint64_t serial = poll_serial_;
        bool progress = false;
        for (int i = 0; i < count; ++i) {
            if (i + 1 < count)
                __builtin_prefetch(entries_[fd_of(events[i + 1])].watches);
            Delivery delivery = deliver(events[i]);
            // what a nested turn may have used up is reported again by the next poll
            if (delivery == Delivery::void_batch || poll_serial_ != serial)
                return;
            progress |= delivery == Delivery::done;
        }
        if (again)
            repoll_.found(progress);
        if (!progress)
            return;
        handled += count;
        again = first;
        if (handled >= turn_events_max || (first && count < batch_max && !repoll_.worthwhile()))
            return;
        int64_t now = core().clock();
        if (first)
            deadline = now + turn_usec_max;
        else if (now >= deadline)
            return;
    }
}

int EpollBackend::poll(epoll_event *events)
{
    ++poll_serial_;
    core().counters.polls.add();
    return epoll_wait(epoll_.get(), events, batch_max, 0);
}

EpollBackend::Delivery EpollBackend::deliver(const epoll_event &event)
{
    auto fd = static_cast<int>(fd_of(event));
    Entry &ready = entries_[fd_of(event)];
    if (ready.armed == 0 || ready.generation != event.data.u64 >> 32) {
        rebuild();
        return Delivery::void_batch;
    }
    bool repeated = ready.reported == poll_serial_ - 1;
    ready.reported = poll_serial_;
    if (repeated)
        return Delivery::repeated;
    for (Watch *watch = ready.watches; watch; watch = watch->next_on_fd) {
        // the file may live on under another number after ours was closed, and be
        // reported for ever: look from time to time
        if (++watch->hits % hits_between_looks == 0 && !is_open(fd)) {
            report_bad_later(ready);
            ready.armed = 0;
            rebuild();
            return Delivery::void_batch;
        }
        if (!fire(*watch, from_epoll(event.events)))
            return Delivery::void_batch;
    }
    return Delivery::done;
}

// False if a nested turn ran: lists that the caller walks may have changed.
bool EpollBackend::fire(Watch &watch, int events)
{
    uint64_t serial = poll_serial_;
    core().fire(watch, events);
    return poll_serial_ == serial;
}

void EpollBackend::dispatch_timers()
{
    if (!timers_running_.load(std::memory_order_relaxed))
        return;
    std::unique_lock lock(core().mutex);
    // those added meanwhile wait for the next turn
    size_t count = every_turn_.size();
    for (size_t i = 0; i < count && i < every_turn_.size(); ++i) {
        Timer *timer = every_turn_[i];
        if (!timer || timer->running)
            continue;
        lock.unlock();
        core().fire(*timer);
        lock.lock();
    }
    if (every_turn_.size() > every_turn_count_ && !core().in_callback()) {
        std::erase(every_turn_, nullptr);
        for (size_t i = 0; i < every_turn_.size(); ++i)
            every_turn_[i]->every_turn_index = static_cast<uint32_t>(i);
    }
    for (int fired = 0; fired < turn_events_max && timers_due(); ++fired) {
        Timer *timer = heap_.top();
        timer->deadline = next_deadline(timer->deadline, timer->interval, turn_time_);
        heap_.put(timer);
        lock.unlock();
        core().fire(*timer);
        lock.lock();
    }
}

} // namespace sluice::event
