// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Run something on a loop's thread, from any thread: the way from one loop to another.

#include <functional>
#include <memory>
#include <utility>

#include <sluice/event.hpp>

namespace sluice {

// `fn` runs once, soon, on the thread that iterates the loop, never within this call, and
// is destroyed there. Where the loop ends first it is destroyed without having run. Two
// that were posted may run in either order. A throw out of `fn` ends the program. Throws
// std::system_error where the loop takes no more timers.
inline void post(const Loop &loop, std::function<void()> fn)
{
    struct Posted {
        sluice_loop *loop; // outlives the timer, and a reference would keep it for ever
        std::function<void()> fn;
    };
    auto posted = std::make_unique<Posted>(Posted{loop.get(), std::move(fn)});
    auto run = [](int timer, void *opaque) noexcept {
        auto *self = static_cast<Posted *>(opaque);
        sluice_loop_remove_timeout(self->loop, timer);
        self->fn();
    };
    auto drop = [](void *opaque) noexcept { delete static_cast<Posted *>(opaque); };
    detail::checked(sluice_loop_add_timeout_usec(loop.get(), 0, run, posted.get(), drop), "post");
    posted.release(); // the loop frees it
}

} // namespace sluice
