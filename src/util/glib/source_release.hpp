// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The version gate: when the last reference to a GSource may be dropped.
//
// In older GLib a source whose last reference went away outside the thread that
// iterates its context could be freed while that thread was still looking at it
// (GLib issue 803). The fix is in 2.64, 2.63.6 and, backported, 2.62.5. Where it is
// missing the reference is dropped from a callback on the source's own context;
// elsewhere at once, which saves a source, a wake-up and a turn for each release.
//
// The GLib at run time decides, since a binary may meet another one than its
// headers. -Dsource_release and, for tests, SLUICE_SOURCE_RELEASE in the
// environment (`immediate` or `deferred`) force one of the two.

#include <glib.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice {

enum class SourceRelease { immediate, deferred };

// The strategy for this process; the same answer each time.
SourceRelease source_release_strategy();

// What the strategy is for a GLib of that version.
SourceRelease source_release_for(unsigned major, unsigned minor, unsigned micro);

// Releases counted on behalf of one loop. Held by pending releases too, which may
// outlive the loop: that is why it is a shared_ptr wherever it appears.
struct ReleaseCounters {
    std::atomic<uint64_t> immediate{0};
    std::atomic<uint64_t> deferred{0};
    std::atomic<uint64_t> pending{0}; // deferred and not yet dropped
};

// Destroys `source`, then drops the caller's reference by `strategy`. `context` is
// where it was attached, and is kept alive until the reference is gone: before
// GLib 2.86 a source still touches its context when it is freed. Any thread.
void release_source(GSource *source, GMainContext *context, SourceRelease strategy,
                    const std::shared_ptr<ReleaseCounters> &counters);

} // namespace sluice
