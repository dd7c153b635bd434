// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/glib/source_release.hpp"

#include <cstdlib>
#include <string_view>

#include "config.h"
#include "util/glib/tsan.hpp"

namespace sluice {
namespace {

SourceRelease decide()
{
    if (const char *forced = std::getenv("SLUICE_SOURCE_RELEASE")) {
        if (std::string_view(forced) == "immediate")
            return SourceRelease::immediate;
        if (std::string_view(forced) == "deferred")
            return SourceRelease::deferred;
    }
    if constexpr (SLUICE_SOURCE_RELEASE == 1)
        return SourceRelease::immediate;
    if constexpr (SLUICE_SOURCE_RELEASE == 2)
        return SourceRelease::deferred;
    return source_release_for(glib_major_version, glib_minor_version, glib_micro_version);
}

struct PendingRelease {
    GSource *source;
    GMainContext *context;
    std::shared_ptr<ReleaseCounters> counters;
};

void finish_release(gpointer data)
{
    auto *pending = static_cast<PendingRelease *>(data);
    after_glib_lock(pending);
    g_source_unref(pending->source);
    pending->counters->pending.fetch_sub(1);
    g_main_context_unref(pending->context);
    delete pending;
}

} // namespace

SourceRelease source_release_for(unsigned major, unsigned minor, unsigned micro)
{
    bool fixed =
        major > 2 || (major == 2 && (minor >= 64 || (minor == 63 && micro >= 6) || (minor == 62 && micro >= 5)));
    return fixed ? SourceRelease::immediate : SourceRelease::deferred;
}

SourceRelease source_release_strategy()
{
    static const SourceRelease strategy = decide();
    return strategy;
}

void release_source(GSource *source, GMainContext *context, SourceRelease strategy,
                    const std::shared_ptr<ReleaseCounters> &counters)
{
    g_source_destroy(source);
    if (strategy == SourceRelease::immediate) {
        counters->immediate.fetch_add(1, std::memory_order_relaxed);
        g_source_unref(source);
        return;
    }
    counters->deferred.fetch_add(1, std::memory_order_relaxed);
    counters->pending.fetch_add(1);
    auto *pending = new PendingRelease{source, g_main_context_ref(context), counters};
    GSource *idle = g_idle_source_new();
    g_source_set_priority(idle, G_PRIORITY_HIGH);
    // the work is in the destroy notification, so that it also happens when the
    // context goes away without having run
    g_source_set_callback(
        idle, [](gpointer) -> gboolean { return G_SOURCE_REMOVE; }, pending, finish_release);
    before_glib_lock(pending);
    g_source_attach(idle, context);
    g_source_unref(idle);
}

} // namespace sluice
