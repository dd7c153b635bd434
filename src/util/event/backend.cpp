// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/backend.hpp"

#include <utility>

#include "util/glib/tsan.hpp"

namespace sluice::event {

GSourceFuncs Backend::driver_funcs = {on_prepare, on_check, on_dispatch, source_finalize, nullptr, nullptr};

Backend::Backend(Core &core) : core_(core)
{
    driver_ = g_source_new(&driver_funcs, sizeof(Driver));
    reinterpret_cast<Driver *>(driver_)->backend = this;
    g_source_set_name(driver_, "sluice");
    // a callback may run the context again, and expects its other watches to work then
    g_source_set_can_recurse(driver_, TRUE);
}

Backend::~Backend()
{
    if (driver_)
        g_source_unref(driver_);
}

void Backend::start(TurnEnd turn_end, void *loop)
{
    turn_end_ = turn_end;
    loop_ = loop;
    before_glib_lock(driver_);
    g_source_attach(driver_, core_.context);
}

void Backend::stop()
{
    release_source(std::exchange(driver_, nullptr), core_.context, core_.release_strategy, core_.releases);
}

gboolean Backend::on_prepare(GSource *source, gint *timeout_ms)
{
    InGlibCallback order(source);
    Backend &self = *reinterpret_cast<Driver *>(source)->backend;
    Core &core = self.core_;
    std::lock_guard lock(core.mutex);
    core.ran.store(true, std::memory_order_relaxed);
    core.counters.turns.add();
    self.flush();
    core.polling.store(true, std::memory_order_relaxed);
    *timeout_ms = -1;
    bool ready = self.prepare(*timeout_ms);
    return ready || core.reap_pending() || core.ending.load(std::memory_order_relaxed);
}

gboolean Backend::on_check(GSource *source)
{
    InGlibCallback order(source);
    Backend &self = *reinterpret_cast<Driver *>(source)->backend;
    self.core_.polling.store(false, std::memory_order_relaxed);
    bool ready = self.check();
    return ready || self.core_.reap_pending() || self.core_.ending.load(std::memory_order_relaxed);
}

gboolean Backend::on_dispatch(GSource *source, GSourceFunc, gpointer)
{
    InGlibCallback order(source);
    Backend &self = *reinterpret_cast<Driver *>(source)->backend;
    // GLib does not ask a source that was ready before the poll
    self.core_.polling.store(false, std::memory_order_relaxed);
    self.core_.reap();
    self.dispatch();
    self.core_.reap();
    return self.turn_end_(self.loop_) ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

} // namespace sluice::event
