// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/loop.hpp"

#include <fcntl.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sluice::event {
namespace {

constexpr int64_t unattended_usec = 5'000'000;

int choose_backend(int backend)
{
    if (backend != SLUICE_BACKEND_AUTO)
        return backend;
    const char *forced = std::getenv("SLUICE_BACKEND");
    return forced && std::string_view(forced) == "gsource" ? SLUICE_BACKEND_GSOURCE : SLUICE_BACKEND_EPOLL;
}

// This thread's right to run a context, for as long as it lives.
class Ownership {
public:
    explicit Ownership(GMainContext *context)
        : context_(g_main_context_ref(context)), owned_(g_main_context_acquire(context))
    {}
    Ownership(const Ownership &) = delete;
    Ownership &operator=(const Ownership &) = delete;
    ~Ownership()
    {
        if (owned_)
            g_main_context_release(context_);
        g_main_context_unref(context_);
    }
    explicit operator bool() const noexcept { return owned_; }

private:
    GMainContext *context_;
    bool owned_;
};

} // namespace

LoopImpl *LoopImpl::create(GMainContext *context, int backend, ClockFunction clock)
{
    std::unique_ptr<LoopImpl, void (*)(LoopImpl *)> loop(
        new LoopImpl(context ? context : g_main_context_default(), clock), [](LoopImpl *l) { delete l; });
    loop->backend_kind_ = choose_backend(backend);
    switch (loop->backend_kind_) {
    case SLUICE_BACKEND_EPOLL:
        loop->backend_ = make_epoll_backend(loop->core_);
        break;
    case SLUICE_BACKEND_GSOURCE:
        loop->backend_ = make_gsource_backend(loop->core_);
        break;
    default:
        errno = EINVAL;
    }
    if (!loop->backend_)
        return nullptr;
    loop->backend_->start(on_turn_end, loop.get());
    return loop.release();
}

LoopImpl::~LoopImpl() = default;

// --- handles and timeouts --------------------------------------------------------

// Ids rise until they wrap; after that those in use are passed over.
template <class T>
int LoopImpl::new_id(const IdTable<T> &table) noexcept
{
    int id;
    do {
        id = next_id_;
        next_id_ = id == INT_MAX ? 1 : id + 1;
    } while (table.find(id));
    return id;
}

// Out of its table and marked, so that nothing is reported to it any more. The mutex is held.
template <class T>
bool LoopImpl::take_off(IdTable<T> &table, int id) noexcept
{
    T *registration = table.erase(id);
    if (!registration)
        return false;
    registration->removed.store(true, std::memory_order_release);
    backend_->removed(*registration);
    return true;
}

int LoopImpl::add_handle(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                         sluice_event_free_callback free_opaque)
{
    if (!callback || (events & ~all_events))
        return -EINVAL;
    if (fd < 0 || fcntl(fd, F_GETFD) < 0)
        return -EBADF;
    auto watch = std::make_unique<Watch>();
    watch->fd = fd;
    watch->callback = callback;
    watch->opaque = opaque;
    watch->free_opaque = free_opaque;
    watch->wanted.store(events, std::memory_order_relaxed);

    std::lock_guard lock(core_.mutex);
    if (closed_)
        return -ESHUTDOWN;
    note_use(0);
    watch->id = new_id(watches_);
    watches_.insert(watch->id, watch.get());
    core_.change(*watch);
    core_.wake_if_polling();
    return watch.release()->id;
}

int LoopImpl::update_handle(int id, int events) noexcept
{
    if (events & ~all_events)
        return -EINVAL;
    std::lock_guard lock(core_.mutex);
    note_use(0);
    Watch *watch = watches_.find(id);
    if (!watch)
        return -ENOENT;
    // an update that changes nothing says: look again, the number may mean another file
    bool bad = watch->bad.exchange(false, std::memory_order_relaxed);
    if (bad || events == watch->wanted.load(std::memory_order_relaxed))
        watch->verify = true;
    watch->wanted.store(events, std::memory_order_release);
    core_.change(*watch);
    core_.wake_if_polling();
    return 0;
}

int LoopImpl::remove_handle(int id) noexcept
{
    std::lock_guard lock(core_.mutex);
    if (!take_off(watches_, id))
        return -ENOENT;
    core_.wake_if_polling();
    return 0;
}

int LoopImpl::add_timeout(int64_t usec, sluice_event_timeout_callback callback, void *opaque,
                          sluice_event_free_callback free_opaque)
{
    if (!callback)
        return -EINVAL;
    auto timer = std::make_unique<Timer>();
    timer->callback = callback;
    timer->opaque = opaque;
    timer->free_opaque = free_opaque;
    timer->interval = usec;

    std::lock_guard lock(core_.mutex);
    if (closed_)
        return -ESHUTDOWN;
    int64_t now = core_.clock();
    note_use(now);
    if (usec > 0)
        timer->deadline = deadline_after(now, usec);
    timer->id = new_id(timers_);
    timers_.insert(timer->id, timer.get());
    try {
        backend_->scheduled(*timer);
    } catch (...) {
        timers_.erase(timer->id);
        throw;
    }
    core_.wake_if_polling();
    return timer.release()->id;
}

int LoopImpl::update_timeout(int id, int64_t usec)
{
    std::lock_guard lock(core_.mutex);
    Timer *timer = timers_.find(id);
    if (!timer)
        return -ENOENT;
    timer->interval = usec;
    if (usec > 0)
        timer->deadline = deadline_after(core_.clock(), usec);
    backend_->scheduled(*timer);
    core_.wake_if_polling();
    return 0;
}

int LoopImpl::remove_timeout(int id) noexcept
{
    std::lock_guard lock(core_.mutex);
    if (!take_off(timers_, id))
        return -ENOENT;
    core_.wake_if_polling();
    return 0;
}

// Says, once, that the loop has work and has never been run. Seen at the calls that
// a library makes while it waits in vain, since nothing else would run here.
void LoopImpl::note_use(int64_t now) noexcept
{
    if (core_.ran.load(std::memory_order_relaxed) || idle_reported_)
        return;
    if (now == 0)
        now = core_.clock();
    if (first_use_ == 0) {
        first_use_ = now;
    } else if (now - first_use_ >= unattended_usec) {
        idle_reported_ = true;
        g_log("sluice", G_LOG_LEVEL_WARNING,
              "%zu handles and %zu timeouts are registered, but nothing has run their main context for %d seconds: "
              "call sluice_loop_run(), sluice_event_run_default_impl() or run a GMainLoop",
              watches_.size(), timers_.size(), static_cast<int>((now - first_use_) / 1'000'000));
    }
}

// --- running ---------------------------------------------------------------------

int LoopImpl::iterate(bool may_block)
{
    Ownership ownership(core_.context);
    if (!ownership)
        return -EBUSY;
    return g_main_context_iteration(core_.context, may_block) ? 1 : 0;
}

int LoopImpl::run()
{
    Ownership ownership(core_.context);
    if (!ownership)
        return -EBUSY;
    ref(); // a callback may drop the last reference
    while (!quit_.load())
        g_main_context_iteration(core_.context, TRUE);
    quit_.store(false);
    unref();
    return 0;
}

void LoopImpl::quit() noexcept
{
    quit_.store(true);
    wake();
}

void LoopImpl::wake() noexcept
{
    g_main_context_wakeup(core_.context);
}

bool LoopImpl::pending()
{
    std::lock_guard lock(core_.mutex);
    return backend_->changes_pending() || core_.reap_pending() || core_.releases->pending.load() > 0;
}

int LoopImpl::drain()
{
    Ownership ownership(core_.context);
    if (!ownership)
        return -EBUSY;
    if (core_.in_callback())
        return -EDEADLK;
    ref();
    while (pending())
        g_main_context_iteration(core_.context, FALSE);
    unref();
    return 0;
}

void LoopImpl::read_stats(sluice_loop_stats &stats) noexcept
{
    std::lock_guard lock(core_.mutex);
    const Counters &counters = core_.counters;
    stats.handles = watches_.size();
    stats.timeouts = timers_.size();
    stats.turns = counters.turns.get();
    stats.polls = counters.polls.get();
    stats.events = counters.events.get();
    stats.expirations = counters.expirations.get();
    stats.frees = counters.frees.get();
    stats.changes = counters.changes.get();
    stats.kernel_changes = counters.kernel_changes.get();
    stats.wakeups = counters.wakeups.get();
    stats.bad_fds = counters.bad_fds.get();
    stats.releases_immediate = core_.releases->immediate.load();
    stats.releases_deferred = core_.releases->deferred.load();
}

// --- the end ---------------------------------------------------------------------

void LoopImpl::close() noexcept
{
    {
        std::lock_guard lock(core_.mutex);
        closed_ = true;
        std::vector<int> ids;
        watches_.for_each([&](Watch &watch) { ids.push_back(watch.id); });
        for (int id : ids)
            take_off(watches_, id);
        ids.clear();
        timers_.for_each([&](Timer &timer) { ids.push_back(timer.id); });
        for (int id : ids)
            take_off(timers_, id);
        core_.wake_if_polling();
    }
    settle();
}

// Let go of the removed here and now, where this thread may.
void LoopImpl::settle()
{
    Ownership ownership(core_.context);
    if (!ownership || core_.in_callback())
        return;
    do {
        std::lock_guard lock(core_.mutex);
        backend_->flush();
    } while (core_.reap_pending() && (core_.reap(), true));
}

void LoopImpl::unref() noexcept
{
    if (references_.fetch_sub(1, std::memory_order_acq_rel) > 1)
        return;
    close();
    {
        // whoever may run the context ends the loop here; else its thread does, in a turn
        Ownership ownership(core_.context);
        if (ownership && !core_.in_callback()) {
            backend_->stop();
        } else {
            std::lock_guard lock(core_.mutex);
            core_.ending.store(true);
            wake();
            return;
        }
    }
    delete this;
}

bool LoopImpl::on_turn_end(void *opaque)
{
    auto *loop = static_cast<LoopImpl *>(opaque);
    if (!loop->core_.ending.load() || loop->core_.in_callback())
        return false;
    // whoever dropped the last reference may still hold the mutex
    {
        std::lock_guard lock(loop->core_.mutex);
    }
    loop->settle();
    loop->backend_->stop();
    delete loop;
    return true;
}

} // namespace sluice::event
