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

std::unique_ptr<Backend> make_epoll_backend(Core &core)
{
    UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll)
        return nullptr;
    return std::make_unique<EpollBackend>(core, std::move(epoll));
}

} // namespace sluice::event
