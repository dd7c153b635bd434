// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The portable backend, and the reference for the other: one long-lived GSource for
// each watch and timer, updated in place. The driver was attached before them, so that
// changes are in place before GLib looks at the others and the dead go first.
//
// An update reaches its source only in flush(), where GLib is about to collect what
// to poll: the GPollFD is changed in place, since g_source_modify_unix_fd() and its
// like write to the context's wake-up descriptor each time. Only parking and its end
// have to tell GLib.

#include "util/event/backend.hpp"

namespace sluice::event {

class GSourceBackend final : public Backend {
public:
    explicit GSourceBackend(Core &core);

    void removed(Watch &watch) override;
    void scheduled(Timer &timer) override;
    void removed(Timer &timer) override;
    void flush() override;
    bool changes_pending() const noexcept override { return changed_timers_ || Backend::changes_pending(); }

protected:
    bool prepare(int &timeout_ms) override;
    bool check() override;
    void dispatch() override;

private:
    template <class T>
    struct Source {
        GSource base;
        GSourceBackend *backend;
        T *registration;
    };
    template <class T>
    GSource *make_source(GSourceFuncs *funcs, T &registration);

    static gboolean on_watch_check(GSource *source);
    static gboolean on_watch(GSource *source, GSourceFunc, gpointer);
    static gboolean on_timer(GSource *source, GSourceFunc, gpointer);
    static GSourceFuncs watch_funcs;
    static GSourceFuncs timer_funcs;

    void sync(Watch &watch);
    void sync(Timer &timer);
    void release(GSource *&source);

    Timer *changed_timers_ = nullptr; // guarded by the core's mutex
};

} // namespace sluice::event
