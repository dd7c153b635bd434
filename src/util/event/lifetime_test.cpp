// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>

#include "util/event/loop.hpp"
#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

class LifetimeTest : public LoopTest {};
SLUICE_ON_EACH_BACKEND(LifetimeTest);

TEST_P(LifetimeTest, FreeFunctionsMayCallTheApi)
{
    // E5
    Pair pair;
    Recorder first, second, timed;
    int first_id = watch(pair.near.get(), 0, first);
    int second_id = watch(pair.near.get(), SLUICE_EVENT_READABLE, second);
    first.on_free = [&] {
        EXPECT_EQ(sluice_loop_update_handle(loop, first_id, 1), -ENOENT);
        EXPECT_EQ(sluice_loop_remove_handle(loop, second_id), 0);
        EXPECT_GT(timer(0, timed), 0);
        EXPECT_EQ(sluice_loop_drain(loop), -EDEADLK);
        EXPECT_EQ(second.freed, 0);
    };
    sluice_loop_remove_handle(loop, first_id);
    turns();
    EXPECT_EQ(first.freed, 1);
    EXPECT_EQ(second.freed, 1);
    EXPECT_GE(timed.calls, 1);
}

TEST_P(LifetimeTest, DrainFinishesWhatWasRemoved)
{
    std::vector<Recorder> recorders(100);
    Pair pair;
    std::vector<int> ids;
    for (size_t i = 0; i < recorders.size(); ++i)
        ids.push_back(i % 2 ? timer(0, recorders[i]) : watch(pair.near.get(), SLUICE_EVENT_READABLE, recorders[i]));
    turns(1);
    for (size_t i = 0; i < recorders.size(); ++i)
        EXPECT_EQ(i % 2 ? sluice_loop_remove_timeout(loop, ids[i]) : sluice_loop_remove_handle(loop, ids[i]), 0);
    EXPECT_EQ(sluice_loop_drain(loop), 0);
    for (const Recorder &recorder : recorders)
        EXPECT_EQ(recorder.freed, 1);
    EXPECT_EQ(stats().frees, 100u);
    EXPECT_EQ(stats().handles + stats().timeouts, 0u);
    // E8: nothing of ours is left on the context but the loop's own source
    EXPECT_EQ(sluice_loop_iterate(loop, 0), 0);
}

TEST_P(LifetimeTest, DrainInsideACallbackIsRefused)
{
    Recorder recorder;
    int result = 0;
    recorder.then = [&] { result = sluice_loop_drain(loop); };
    int id = timer(0, recorder);
    turns(1);
    EXPECT_EQ(result, -EDEADLK);
    sluice_loop_remove_timeout(loop, id);
}

TEST_P(LifetimeTest, TheLastReferenceFreesEverythingOnce)
{
    GMainContext *own = g_main_context_new();
    sluice_loop *other = sluice_loop_new_with_backend(own, GetParam());
    Pair pair;
    Recorder handle, timeout, removed;
    sluice_loop_add_handle(other, pair.near.get(), 1, Recorder::on_event, &handle, Recorder::on_freed);
    sluice_loop_add_timeout(other, 1, Recorder::on_timeout, &timeout, Recorder::on_freed);
    int id = sluice_loop_add_handle(other, pair.near.get(), 1, Recorder::on_event, &removed, Recorder::on_freed);
    sluice_loop_remove_handle(other, id);
    sluice_loop_unref(sluice_loop_ref(other));
    EXPECT_EQ(handle.freed, 0);
    sluice_loop_unref(other);
    EXPECT_EQ(handle.freed, 1);
    EXPECT_EQ(timeout.freed, 1);
    EXPECT_EQ(removed.freed, 1);
    EXPECT_EQ(handle.calls + timeout.calls, 0);
    while (g_main_context_iteration(own, FALSE)) {
    }
    g_main_context_unref(own);
    sluice_loop_unref(nullptr);
}

TEST_P(LifetimeTest, TheLastReferenceDroppedInsideACallback)
{
    GMainContext *own = g_main_context_new();
    sluice_loop *other = sluice_loop_new_with_backend(own, GetParam());
    Pair pair;
    Recorder handle, timeout;
    handle.then = [&] {
        sluice_loop_unref(other);
        EXPECT_EQ(handle.freed, 0) << "its callback is still on the stack";
    };
    sluice_loop_add_handle(other, pair.near.get(), SLUICE_EVENT_WRITABLE, Recorder::on_event, &handle,
                           Recorder::on_freed);
    sluice_loop_add_timeout(other, 1000, Recorder::on_timeout, &timeout, Recorder::on_freed);
    for (int i = 0; i < 5; ++i)
        g_main_context_iteration(own, FALSE);
    EXPECT_EQ(handle.calls, 1);
    EXPECT_EQ(handle.freed, 1);
    EXPECT_EQ(timeout.freed, 1);
    g_main_context_unref(own);
}

TEST_P(LifetimeTest, ReleaseStrategyIsTheOneAskedFor)
{
    Pair pair;
    Recorder recorder;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    turns();
    sluice_loop_remove_handle(loop, id);
    ASSERT_EQ(sluice_loop_drain(loop), 0);
    // epoll has no source for each watch, and so nothing to release
    bool deferred = source_release_strategy() == SourceRelease::deferred;
    uint64_t sources = GetParam() == SLUICE_BACKEND_GSOURCE ? 1 : 0;
    EXPECT_EQ(stats().releases_deferred, deferred ? sources : 0);
    EXPECT_EQ(stats().releases_immediate, deferred ? 0 : sources);
}

TEST_P(LifetimeTest, ReleaseRunsOnItsOwnContext)
{
    // E7: the default context is not running, and must not be needed
    Pair pair;
    Recorder recorder;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    turns();
    sluice_loop_remove_handle(loop, id);
    EXPECT_FALSE(g_main_context_pending(nullptr));
    turns(3);
    EXPECT_EQ(recorder.freed, 1);
    EXPECT_FALSE(g_main_context_pending(nullptr));
    EXPECT_FALSE(g_main_context_pending(context)) << "nor is anything left on this one";
}

TEST_P(LifetimeTest, QuitBeforeRunIsNotLost)
{
    sluice_loop_quit(loop);
    EXPECT_EQ(sluice_loop_run(loop), 0);
    Recorder recorder;
    recorder.then = [&] { sluice_loop_quit(loop); };
    timer(1, recorder);
    EXPECT_EQ(sluice_loop_run(loop), 0);
    EXPECT_EQ(recorder.calls, 1);
}

TEST_P(LifetimeTest, StatisticsCount)
{
    Pair pair;
    Recorder handle, timeout;
    int id = watch(pair.near.get(), SLUICE_EVENT_WRITABLE, handle);
    timer(0, timeout);
    turns(3);
    sluice_loop_stats now = stats();
    EXPECT_EQ(now.handles, 1u);
    EXPECT_EQ(now.timeouts, 1u);
    EXPECT_EQ(now.events, static_cast<uint64_t>(handle.calls));
    EXPECT_EQ(now.expirations, static_cast<uint64_t>(timeout.calls));
    EXPECT_EQ(now.frees, 0u);
    EXPECT_GE(now.turns, 1u);
    EXPECT_GE(now.changes, 1u);
    sluice_loop_remove_handle(loop, id);
    turns();
    EXPECT_EQ(stats().frees, 1u);
    // an older caller knows fewer fields, a newer one more
    struct {
        sluice_loop_stats known;
        uint64_t later;
    } newer;
    newer.later = 7;
    sluice_loop_get_stats(loop, &newer.known, sizeof newer);
    EXPECT_EQ(newer.later, 0u);
    uint64_t older[2] = {9, 9};
    sluice_loop_get_stats(loop, reinterpret_cast<sluice_loop_stats *>(older), sizeof older[0]);
    EXPECT_EQ(older[0], 0u);
    EXPECT_EQ(older[1], 9u);
}

TEST(Backend, UnknownOneIsRefused)
{
    errno = 0;
    EXPECT_EQ(sluice_loop_new_with_backend(nullptr, 9), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

int64_t fake_now = 1;
int64_t fake_clock()
{
    return fake_now;
}

TEST_P(LifetimeTest, NobodyRunsTheLoopIsSaidOnce)
{
    // E15
    GMainContext *own = g_main_context_new();
    LoopImpl *idle = LoopImpl::create(own, GetParam(), fake_clock);
    int warnings = 0;
    auto count = [](const gchar *, GLogLevelFlags, const gchar *message, gpointer data) {
        EXPECT_NE(std::string(message).find("nothing has run"), std::string::npos) << message;
        ++*static_cast<int *>(data);
    };
    guint handler = g_log_set_handler("sluice", G_LOG_LEVEL_WARNING, count, &warnings);
    Pair pair;
    Recorder recorder;
    int id = idle->add_handle(pair.near.get(), 1, Recorder::on_event, &recorder, Recorder::on_freed);
    fake_now += 4'900'000;
    idle->update_handle(id, 3);
    EXPECT_EQ(warnings, 0);
    fake_now += 200'000;
    idle->update_handle(id, 1);
    idle->update_handle(id, 3);
    EXPECT_EQ(warnings, 1);
    idle->unref();
    g_log_remove_handler("sluice", handler);
    while (g_main_context_iteration(own, FALSE)) {
    }
    g_main_context_unref(own);
    EXPECT_EQ(recorder.freed, 1);
}

} // namespace
} // namespace sluice::event
