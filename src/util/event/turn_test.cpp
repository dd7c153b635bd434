// SPDX-License-Identifier: LGPL-2.1-or-later

// What one turn does: changes taken together, turns within turns, and a bound.

#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

class TurnTest : public LoopTest {};
SLUICE_ON_EACH_BACKEND(TurnTest);

TEST_P(TurnTest, AReadyDescriptorIsReportedOnceATurn)
{
    Pair pair, other;
    Recorder busy, chained;
    watch(pair.near.get(), SLUICE_EVENT_READABLE, busy); // leaves its byte where it is
    chained.then = [&] { other.drain(); };
    watch(other.near.get(), SLUICE_EVENT_READABLE, chained);
    pair.feed();
    for (int i = 1; i <= 5; ++i) {
        other.feed();
        sluice_loop_iterate(loop, 0);
        EXPECT_EQ(busy.calls, i);
        EXPECT_EQ(chained.calls, i);
    }
}

TEST_P(TurnTest, UpdatesThatCancelOutCostNothing)
{
    Pair pair;
    Recorder recorder;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    pair.feed();
    turns(1);
    uint64_t before = stats().kernel_changes;
    recorder.then = [&] {
        sluice_loop_update_handle(loop, id, 0);
        sluice_loop_update_handle(loop, id, SLUICE_EVENT_READABLE);
    };
    turns(10);
    EXPECT_GE(recorder.calls, 10);
    EXPECT_EQ(stats().kernel_changes, before);
    recorder.then = [&] { sluice_loop_update_handle(loop, id, SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE); };
    sluice_loop_iterate(loop, 0);
    EXPECT_LE(stats().kernel_changes, before + 1);
}

TEST_P(TurnTest, ANestedTurnServesTheOtherWatches)
{
    Pair outer, inner;
    Recorder nesting, nested;
    bool unwound = false;
    watch(inner.near.get(), SLUICE_EVENT_READABLE, nested);
    nested.then = [&] { inner.drain(); };
    nesting.then = [&] {
        inner.feed();
        while (nested.calls == 0)
            sluice_loop_iterate(loop, 1);
        EXPECT_EQ(nesting.calls, 1) << "not inside itself";
        outer.drain();
        unwound = true;
    };
    watch(outer.near.get(), SLUICE_EVENT_READABLE, nesting);
    turns();
    outer.feed();
    sluice_loop_iterate(loop, 1);
    EXPECT_TRUE(unwound);
    nesting.then = [&] { outer.drain(); };
    turns();
    EXPECT_EQ(nesting.calls, 1);
    outer.feed();
    turns(2);
    EXPECT_EQ(nesting.calls, 2) << "armed again afterwards";
    EXPECT_EQ(nested.calls, 1);
}

TEST_P(TurnTest, OtherSourcesRunUnderFullLoad)
{
    Pair pair;
    Recorder busy;
    watch(pair.near.get(), SLUICE_EVENT_WRITABLE, busy);
    int idles = 0;
    GSource *idle = g_timeout_source_new(0);
    g_source_set_callback(
        idle, [](gpointer count) -> gboolean { return ++*static_cast<int *>(count) < 100; }, &idles, nullptr);
    g_source_attach(idle, context);
    g_source_unref(idle);
    for (int i = 0; i < 1000 && idles < 100; ++i)
        sluice_loop_iterate(loop, 0);
    EXPECT_EQ(idles, 100);
    EXPECT_GE(busy.calls, 100);
}

} // namespace
} // namespace sluice::event
