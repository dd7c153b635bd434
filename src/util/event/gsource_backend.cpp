// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/gsource_backend.hpp"

#include <utility>

#include "util/glib/tsan.hpp"

namespace sluice::event {
namespace {

gushort to_condition(int events)
{
    int condition = ((events & SLUICE_EVENT_READABLE) ? G_IO_IN : 0) |
                    ((events & SLUICE_EVENT_WRITABLE) ? G_IO_OUT : 0) |
                    ((events & unasked_events) ? G_IO_ERR | G_IO_HUP : 0);
    return static_cast<gushort>(condition);
}

int from_condition(gushort condition)
{
    return ((condition & G_IO_IN) ? SLUICE_EVENT_READABLE : 0) | ((condition & G_IO_OUT) ? SLUICE_EVENT_WRITABLE : 0) |
           ((condition & G_IO_ERR) ? SLUICE_EVENT_ERROR : 0) | ((condition & G_IO_HUP) ? SLUICE_EVENT_HANGUP : 0);
}

int64_t ready_time(const Timer &timer)
{
    return timer.interval < 0 ? -1 : timer.interval == 0 ? 0 : timer.deadline;
}

} // namespace

GSourceFuncs GSourceBackend::watch_funcs = {nullptr, on_watch_check, on_watch, source_finalize, nullptr, nullptr};
GSourceFuncs GSourceBackend::timer_funcs = {nullptr, nullptr, on_timer, source_finalize, nullptr, nullptr};

GSourceBackend::GSourceBackend(Core &core) : Backend(core) {}

template <class T>
GSource *GSourceBackend::make_source(GSourceFuncs *funcs, T &registration)
{
    GSource *source = g_source_new(funcs, sizeof(Source<T>));
    reinterpret_cast<Source<T> *>(source)->backend = this;
    reinterpret_cast<Source<T> *>(source)->registration = &registration;
    before_glib_lock(source);
    g_source_attach(source, core().context);
    return source;
}

void GSourceBackend::release(GSource *&source)
{
    if (source)
        release_source(std::exchange(source, nullptr), core().context, core().release_strategy, core().releases);
}

void GSourceBackend::removed(Watch &watch)
{
    // at once, on whichever thread: from here on GLib does not poll the descriptor
    release(watch.source);
    core().change(watch);
}

void GSourceBackend::removed(Timer &timer)
{
    release(timer.source);
    scheduled(timer);
}

void GSourceBackend::scheduled(Timer &timer)
{
    if (timer.changed)
        return;
    timer.changed = true;
    timer.next_changed = changed_timers_;
    changed_timers_ = &timer;
}

void GSourceBackend::flush()
{
    core().suspend_running();
    for (Watch *watch = core().take_changes(); watch;) {
        Watch *next = watch->next_changed;
        watch->changed = false;
        sync(*watch);
        watch = next;
    }
    for (Timer *timer = std::exchange(changed_timers_, nullptr); timer;) {
        Timer *next = timer->next_changed;
        timer->changed = false;
        sync(*timer);
        timer = next;
    }
}

void GSourceBackend::sync(Watch &watch)
{
    core().counters.changes.add();
    if (watch.removed.load(std::memory_order_relaxed)) {
        core().bury(watch);
        return;
    }
    int desired = watch.effective();
    if (!watch.source) {
        watch.source = make_source(&watch_funcs, watch);
        // else GLib takes the descriptor out and puts it back around each dispatch,
        // and writes to its wake-up descriptor both times
        g_source_set_can_recurse(watch.source, TRUE);
    }
    gushort before = watch.polled.events;
    watch.polled.fd = watch.fd;
    watch.polled.events = to_condition(desired);
    if ((before == 0) == (desired == 0))
        return;
    core().counters.kernel_changes.add();
    watch.polled.revents = 0;
    // not merely a mask of 0, with which poll still reports hang-ups
    if (desired == 0)
        g_source_remove_poll(watch.source, &watch.polled);
    else
        g_source_add_poll(watch.source, &watch.polled);
}

void GSourceBackend::sync(Timer &timer)
{
    if (timer.removed.load(std::memory_order_relaxed)) {
        core().bury(timer);
        return;
    }
    if (!timer.source)
        timer.source = make_source(&timer_funcs, timer);
    int64_t ready = ready_time(timer);
    if (ready != timer.armed)
        g_source_set_ready_time(timer.source, ready);
    timer.armed = ready;
}

bool GSourceBackend::prepare(int &)
{
    core().counters.polls.add();
    return false;
}

bool GSourceBackend::check()
{
    return false;
}
void GSourceBackend::dispatch() {}

gboolean GSourceBackend::on_watch_check(GSource *source)
{
    InGlibCallback order(source);
    return reinterpret_cast<Source<Watch> *>(source)->registration->polled.revents != 0;
}

gboolean GSourceBackend::on_watch(GSource *source, GSourceFunc, gpointer)
{
    InGlibCallback order(source);
    auto &own = *reinterpret_cast<Source<Watch> *>(source);
    Watch &watch = *own.registration;
    Core &core = own.backend->core();
    gushort condition = std::exchange(watch.polled.revents, 0);
    if (condition & G_IO_NVAL)
        core.fire_bad(watch);
    else
        core.fire(watch, from_condition(condition));
    return G_SOURCE_CONTINUE;
}

gboolean GSourceBackend::on_timer(GSource *source, GSourceFunc, gpointer)
{
    InGlibCallback order(source);
    auto &own = *reinterpret_cast<Source<Timer> *>(source);
    Timer &timer = *own.registration;
    Core &core = own.backend->core();
    {
        std::lock_guard lock(core.mutex);
        if (timer.removed.load(std::memory_order_relaxed))
            return G_SOURCE_CONTINUE;
        int64_t now = g_source_get_time(source);
        // parked, or put off, since GLib looked
        if (timer.interval < 0 || (timer.interval > 0 && timer.deadline > now))
            return G_SOURCE_CONTINUE;
        if (timer.interval > 0) {
            timer.deadline = next_deadline(timer.deadline, timer.interval, now);
            timer.armed = timer.deadline;
            // inside its own dispatch: does not wake the context
            g_source_set_ready_time(source, timer.deadline);
        }
    }
    core.fire(timer);
    return G_SOURCE_CONTINUE;
}

std::unique_ptr<Backend> make_gsource_backend(Core &core)
{
    return std::make_unique<GSourceBackend>(core);
}

} // namespace sluice::event
