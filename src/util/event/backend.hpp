// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How a loop waits. A backend owns one GSource, the driver, whose three phases it
// implements; through it changes reach the kernel just before GLib polls, and the
// dead are let go. What else it attaches to the context is its own matter.

#include <memory>

#include <glib.h>

#include "util/event/core.hpp"

namespace sluice::event {

class Backend {
public:
    virtual ~Backend();
    Backend(const Backend &) = delete;
    Backend &operator=(const Backend &) = delete;

    // --- with the core's mutex held, on any thread ---

    // `watch` has just been marked as removed: it has to end up buried.
    virtual void removed(Watch &watch) = 0;
    // `timer` is new, or its interval or deadline changed. May throw std::bad_alloc when new.
    virtual void scheduled(Timer &timer) = 0;
    // `timer` has just been marked as removed: it has to end up buried.
    virtual void removed(Timer &timer) = 0;
    // Bring everything up to date for the next poll. Loop's thread.
    virtual void flush() = 0;
    // Is there something that flush() would do?
    virtual bool changes_pending() const noexcept { return core_.changes_pending(); }

    // Called in the driver's dispatch when all else is done; true ends the driver. Set by the loop.
    using TurnEnd = bool (*)(void *loop);
    void start(TurnEnd turn_end, void *loop);
    // Take the driver off the context.
    void stop();

protected:
    explicit Backend(Core &core);

    Core &core() noexcept { return core_; }
    GSource *driver() noexcept { return driver_; }

    // Mutex held, after flush(): true when there is something to do without waiting;
    // else `timeout_ms` may be lowered from -1.
    virtual bool prepare(int &timeout_ms) = 0;
    // Mutex not held: is there something to do, now that the poll is over?
    virtual bool check() = 0;
    // Mutex not held: do it.
    virtual void dispatch() = 0;

private:
    struct Driver {
        GSource base;
        Backend *backend;
    };
    static gboolean on_prepare(GSource *source, gint *timeout_ms);
    static gboolean on_check(GSource *source);
    static gboolean on_dispatch(GSource *source, GSourceFunc, gpointer);
    static GSourceFuncs driver_funcs;

    Core &core_;
    GSource *driver_ = nullptr;
    TurnEnd turn_end_ = nullptr;
    void *loop_ = nullptr;
};

// nullptr with errno set where the kernel has no descriptor left.
std::unique_ptr<Backend> make_epoll_backend(Core &core);
std::unique_ptr<Backend> make_gsource_backend(Core &core);

} // namespace sluice::event
