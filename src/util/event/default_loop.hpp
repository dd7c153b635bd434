// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which implementation serves the `sluice_event_*` functions: the default loop, made
// at its first use and kept until the process ends, or six functions of an
// application. The choice is made once. Any thread.

#include <sluice/event.h>

#include "util/event/loop.hpp"

namespace sluice::event {

struct EventImpl {
    sluice_event_add_handle_func add_handle;
    sluice_event_update_handle_func update_handle;
    sluice_event_remove_handle_func remove_handle;
    sluice_event_add_timeout_func add_timeout;
    sluice_event_update_timeout_func update_timeout;
    sluice_event_remove_timeout_func remove_timeout;
};

// The loop on GLib's default context, or nullptr with errno set.
LoopImpl *default_loop();

// The application's functions, or nullptr, in which case the default loop serves and
// the choice is made.
const EventImpl *registered_impl();

// 0, or -EBUSY when the choice was made before, -EINVAL when a function is missing.
int register_impl(const EventImpl &impl);

} // namespace sluice::event
