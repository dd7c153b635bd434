// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/glib/source_release.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(SourceRelease, GateByVersion)
{
    using enum SourceRelease;
    EXPECT_EQ(source_release_for(2, 56, 4), deferred);
    EXPECT_EQ(source_release_for(2, 62, 4), deferred);
    EXPECT_EQ(source_release_for(2, 62, 5), immediate);
    EXPECT_EQ(source_release_for(2, 63, 5), deferred);
    EXPECT_EQ(source_release_for(2, 63, 6), immediate);
    EXPECT_EQ(source_release_for(2, 64, 0), immediate);
    EXPECT_EQ(source_release_for(2, 74, 6), immediate);
    EXPECT_EQ(source_release_for(3, 0, 0), immediate);
    EXPECT_EQ(source_release_for(1, 99, 9), deferred);
}

class ReleaseTest : public testing::TestWithParam<SourceRelease> {};
INSTANTIATE_TEST_SUITE_P(Both, ReleaseTest, testing::Values(SourceRelease::immediate, SourceRelease::deferred));

int finalized = 0;
GSourceFuncs counting = {
    nullptr, nullptr, [](GSource *, GSourceFunc, gpointer) -> gboolean { return TRUE; }, [](GSource *) { ++finalized; },
    nullptr, nullptr};

TEST_P(ReleaseTest, DropsTheReferenceWhenItsContextRuns)
{
    finalized = 0;
    GMainContext *context = g_main_context_new();
    auto counters = std::make_shared<ReleaseCounters>();
    GSource *source = g_source_new(&counting, sizeof(GSource));
    g_source_attach(source, context);
    release_source(source, context, GetParam(), counters);
    bool deferred = GetParam() == SourceRelease::deferred;
    EXPECT_EQ(finalized, deferred ? 0 : 1);
    EXPECT_EQ(counters->pending.load(), deferred ? 1u : 0u);
    EXPECT_FALSE(g_main_context_pending(nullptr)) << "the default context has nothing to do with it";
    // our reference may go first: the release holds its own
    GMainContext *kept = g_main_context_ref(context);
    g_main_context_unref(context);
    while (g_main_context_iteration(kept, FALSE)) {
    }
    EXPECT_EQ(finalized, 1);
    EXPECT_EQ(counters->pending.load(), 0u);
    EXPECT_EQ(counters->deferred.load(), deferred ? 1u : 0u);
    EXPECT_EQ(counters->immediate.load(), deferred ? 0u : 1u);
    g_main_context_unref(kept);
}

} // namespace
} // namespace sluice
