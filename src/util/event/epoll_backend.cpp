// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/epoll_backend.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sluice::event {
namespace {

uint32_t to_epoll(int events)
{
    // errors and hang-ups come unasked
    return ((events & SLUICE_EVENT_READABLE) ? EPOLLIN : 0u) | ((events & SLUICE_EVENT_WRITABLE) ? EPOLLOUT : 0u) |
           ((events & unasked_events) ? EPOLLERR | EPOLLHUP : 0u);
}

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

EpollBackend::EpollBackend(Core &core, UniqueFd epoll) : Backend(core), epoll_(std::move(epoll))
{
    epoll_tag_ = g_source_add_unix_fd(driver(), epoll_.get(), G_IO_IN);
}

// --- changes -------------------------------------------------------------------

void EpollBackend::removed(Watch &watch)
{
    core().change(watch);
}

EpollBackend::Entry &EpollBackend::entry(int fd)
{
    auto at = static_cast<size_t>(fd);
    if (at >= entries_.size())
        entries_.resize(std::max(at + 1, entries_.size() * 2));
    return entries_[at];
}

void EpollBackend::flush()
{
    if (core().frames()) {
        // a nested turn: those further out must not go on with what they had collected
        core().suspend_running();
        ++poll_serial_;
    }
    if (!core().changes_pending())
        return;
    for (Watch *watch = core().take_changes(); watch;) {
        Watch *next = watch->next_changed;
        watch->changed = false;
        apply(*watch);
        watch = next;
    }
    for (int fd : sync_queue_) {
        Entry &changed = entry(fd);
        changed.queued = false;
        sync(fd, changed);
    }
    sync_queue_.clear();
}

// Bring one changed watch into or out of its descriptor's list.
void EpollBackend::apply(Watch &watch)
{
    core().counters.changes.add();
    Entry &target = entry(watch.fd);
    if (watch.removed.load(std::memory_order_relaxed)) {
        // never linked: it was added and removed between two polls
        if (watch.linked)
            unlink(target, watch);
        core().bury(watch);
    } else if (!watch.linked) {
        watch.linked = true;
        watch.next_on_fd = target.watches;
        target.watches = &watch;
        watch.verify = true;
    }
    target.verify |= watch.verify;
    watch.verify = false;
    if (!target.queued) {
        target.queued = true;
        sync_queue_.push_back(watch.fd);
    }
}

void EpollBackend::unlink(Entry &target, Watch &watch)
{
    Watch **at = &target.watches;
    while (*at != &watch)
        at = &(*at)->next_on_fd;
    *at = watch.next_on_fd;
    // the number may have been closed and opened again since
    target.verify = target.watches != nullptr;
    std::replace(to_report_bad_.begin(), to_report_bad_.end(), &watch, static_cast<Watch *>(nullptr));
}

// Tell the kernel what is wanted of a descriptor now, if it does not know.
void EpollBackend::sync(int fd, Entry &changed)
{
    uint32_t desired = 0;
    for (Watch *watch = changed.watches; watch; watch = watch->next_on_fd)
        desired |= to_epoll(watch->effective());
    bool verify = std::exchange(changed.verify, false);

    if (desired == 0) {
        // parked: the kernel would go on to report hang-ups
        if (changed.armed && !changed.unpollable) {
            core().counters.kernel_changes.add();
            epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); // fails if it was closed: as good
        }
        forget_unpollable(fd, changed);
        changed.armed = 0;
        return;
    }
    if (changed.armed == desired && !verify)
        return;
    if (changed.unpollable && !verify) {
        list_unpollable(fd, desired);
        changed.armed = desired;
        return;
    }
    forget_unpollable(fd, changed);
    int op = changed.armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    bool done = control(op, fd, changed, desired);
    if (!done && op == EPOLL_CTL_MOD && errno == ENOENT) // another file has that number now
        done = control(op = EPOLL_CTL_ADD, fd, changed, desired);
    else if (!done && op == EPOLL_CTL_ADD && errno == EEXIST)
        done = control(op = EPOLL_CTL_MOD, fd, changed, desired);
    if (done) {
        changed.armed = desired;
    } else if (errno == EPERM) {
        changed.unpollable = true;
        list_unpollable(fd, desired);
        changed.armed = desired;
    } else {
        // closed (EBADF), or no room in the kernel (ENOSPC, ENOMEM)
        changed.armed = 0;
        report_bad_later(changed);
    }
}

bool EpollBackend::control(int op, int fd, Entry &changed, uint32_t events)
{
    if (op == EPOLL_CTL_ADD)
        ++changed.generation;
    epoll_event event{};
    event.events = events;
    event.data.u64 = uint64_t{changed.generation} << 32 | static_cast<uint32_t>(fd);
    core().counters.kernel_changes.add();
    return epoll_ctl(epoll_.get(), op, fd, &event) == 0;
}

// It is ready for reading and writing at all times, and has no errors to report.
void EpollBackend::list_unpollable(int fd, uint32_t desired)
{
    std::erase(unpollable_, fd);
    if (desired & (EPOLLIN | EPOLLOUT))
        unpollable_.push_back(fd);
}

void EpollBackend::forget_unpollable(int fd, Entry &changed)
{
    if (std::exchange(changed.unpollable, false))
        std::erase(unpollable_, fd);
}

void EpollBackend::report_bad_later(Entry &changed)
{
    for (Watch *watch = changed.watches; watch; watch = watch->next_on_fd)
        to_report_bad_.push_back(watch);
}

// Start over with an empty epoll set under the same number, which GLib polls.
void EpollBackend::rebuild()
{
    UniqueFd fresh(epoll_create1(EPOLL_CLOEXEC));
    if (!fresh || dup3(fresh.get(), epoll_.get(), O_CLOEXEC) < 0)
        return; // no descriptor left: the next stray event tries again
    std::lock_guard lock(core().mutex);
    for (size_t fd = 0; fd < entries_.size(); ++fd) {
        Entry &known = entries_[fd];
        if (known.armed && !known.unpollable) {
            known.armed = 0;
            sync(static_cast<int>(fd), known);
        }
    }
}

// --- timers --------------------------------------------------------------------

void EpollBackend::scheduled(Timer &timer)
{
    bool every_turn = timer.interval == 0;
    bool was_every_turn = timer.every_turn_index != not_in_heap;
    if (every_turn && !was_every_turn) {
        every_turn_.push_back(&timer);
        timer.every_turn_index = static_cast<uint32_t>(every_turn_.size() - 1);
        ++every_turn_count_;
    } else if (!every_turn && was_every_turn) {
        every_turn_[std::exchange(timer.every_turn_index, not_in_heap)] = nullptr;
        --every_turn_count_;
    }
    if (timer.interval > 0)
        heap_.put(&timer);
    else
        heap_.remove(&timer);
    timers_running_.store(!heap_.empty() || every_turn_count_ > 0, std::memory_order_relaxed);
}

void EpollBackend::removed(Timer &timer)
{
    timer.interval = -1;
    scheduled(timer);
    core().bury(timer);
}

bool EpollBackend::timers_due() const noexcept
{
    return !heap_.empty() && heap_.top_deadline() <= turn_time_;
}

// --- one turn ------------------------------------------------------------------

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

std::unique_ptr<Backend> make_epoll_backend(Core &core)
{
    UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll)
        return nullptr;
    return std::make_unique<EpollBackend>(core, std::move(epoll));
}

} // namespace sluice::event
