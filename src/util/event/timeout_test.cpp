// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>
#include <set>
#include <thread>

#include "util/base/clock.hpp"
#include "util/event/loop.hpp"
#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

class TimeoutTest : public LoopTest {};
SLUICE_ON_EACH_BACKEND(TimeoutTest);

TEST_P(TimeoutTest, NeverEarlyAndPeriodic)
{
    Recorder recorder;
    std::vector<int64_t> fired;
    int64_t start = monotonic_usec();
    recorder.then = [&] { fired.push_back(monotonic_usec() - start); };
    int id = timer(5, recorder);
    run_until([&] { return recorder.calls == 10; });
    EXPECT_EQ(recorder.last_id, id);
    for (size_t i = 0; i < fired.size(); ++i)
        EXPECT_GE(fired[i], 5000 * static_cast<int64_t>(i + 1)) << "expiry " << i;
}

TEST_P(TimeoutTest, DoesNotDrift)
{
    Recorder recorder;
    // a callback that takes time must not move the grid
    std::vector<int64_t> fired;
    int64_t start = monotonic_usec();
    recorder.then = [&] {
        int64_t now = monotonic_usec();
        fired.push_back(now - start);
        while (monotonic_usec() - now < 3000) {
        }
    };
    timer(10, recorder);
    run_until([&] { return recorder.calls == 20; });
    // 20 callbacks of 3 ms would push a drifting timer past 257 ms; expiries that were
    // skipped on a busy machine move the last by whole intervals only
    int64_t phase = fired.back() % 10'000;
    EXPECT_LT(phase, 9'000) << "last expiry " << fired.back();
    EXPECT_GE(fired.back(), 200'000);
}

TEST_P(TimeoutTest, MissedDeadlinesAreSkippedNotMadeUpFor)
{
    Recorder recorder;
    timer(2, recorder);
    int64_t start = monotonic_usec();
    while (monotonic_usec() - start < 50'000) {
    }
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(recorder.calls, 1);
    // the next one lies ahead, so a turn that does not wait finds nothing, unless the
    // machine took 2 ms for it
    int64_t before = monotonic_usec();
    sluice_loop_iterate(loop, 0);
    if (monotonic_usec() - start < 50'000 + 1'500 && monotonic_usec() - before < 500) {
        EXPECT_EQ(recorder.calls, 1);
    }
}

TEST(NextDeadline, KeepsTheGridAndLiesAhead)
{
    EXPECT_EQ(next_deadline(1000, 100, 1000), 1100);
    EXPECT_EQ(next_deadline(1000, 100, 1099), 1100);
    EXPECT_EQ(next_deadline(1000, 100, 1100), 1200);
    EXPECT_EQ(next_deadline(1000, 100, 5'000'050), 5'000'100);
    EXPECT_EQ(deadline_after(INT64_MAX - 5, 10), INT64_MAX);
}

TEST_P(TimeoutTest, ParkedAndEveryTurn)
{
    Recorder parked, every;
    int parked_id = timer(-1, parked);
    int every_id = timer(0, every);
    for (int i = 1; i <= 5; ++i) {
        sluice_loop_iterate(loop, 1);
        EXPECT_EQ(every.calls, i);
    }
    EXPECT_EQ(parked.calls, 0);
    sluice_loop_update_timeout(loop, every_id, -1);
    turns();
    EXPECT_EQ(every.calls, 5);
    EXPECT_EQ(sluice_loop_iterate(loop, 0), 0);
    sluice_loop_update_timeout(loop, parked_id, 0);
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(parked.calls, 1);
}

TEST_P(TimeoutTest, UpdateRearmsFromNow)
{
    Recorder recorder;
    int id = timer(20, recorder);
    int64_t start = monotonic_usec();
    while (monotonic_usec() - start < 15'000) {
    }
    int64_t updated = monotonic_usec();
    EXPECT_EQ(sluice_loop_update_timeout(loop, id, 20), 0);
    run_until([&] { return recorder.calls > 0; });
    EXPECT_GE(monotonic_usec() - updated, 20'000);
}

TEST_P(TimeoutTest, MicrosecondsAreKept)
{
    Recorder recorder;
    int64_t start = monotonic_usec();
    timer_usec(2'500, recorder);
    run_until([&] { return recorder.calls == 4; });
    EXPECT_GE(monotonic_usec() - start, 10'000);
    Recorder far;
    EXPECT_GT(timer_usec(INT64_MAX, far), 0) << "does not overflow into the past";
    turns();
    EXPECT_EQ(far.calls, 0);
}

TEST_P(TimeoutTest, UnknownIdsAreNotFound)
{
    Recorder recorder;
    EXPECT_EQ(sluice_loop_update_timeout(loop, 7, 1), -ENOENT);
    EXPECT_EQ(sluice_loop_remove_timeout(loop, 7), -ENOENT);
    EXPECT_EQ(sluice_loop_add_timeout(loop, 1, nullptr, nullptr, nullptr), -EINVAL);
    int id = timer(0, recorder);
    EXPECT_EQ(sluice_loop_remove_timeout(loop, id), 0);
    EXPECT_EQ(sluice_loop_remove_timeout(loop, id), -ENOENT);
    turns();
    EXPECT_EQ(recorder.calls, 0);
    EXPECT_EQ(recorder.freed, 1);
}

TEST_P(TimeoutTest, RemovedAndUpdatedInsideCallbacks)
{
    Recorder self, victim, other;
    int victim_id = 0;
    int self_id = timer(0, self);
    victim_id = timer(0, victim);
    int other_id = timer(-1, other);
    self.then = [&] {
        EXPECT_EQ(sluice_loop_remove_timeout(loop, self_id), 0);
        if (victim.calls == 0) {
            EXPECT_EQ(sluice_loop_remove_timeout(loop, victim_id), 0);
        }
        sluice_loop_update_timeout(loop, other_id, 0);
        EXPECT_EQ(self.freed, 0);
    };
    sluice_loop_iterate(loop, 1);
    int already = victim.calls;
    turns(2);
    EXPECT_EQ(self.calls, 1);
    EXPECT_EQ(self.freed, 1);
    if (already == 0) {
        EXPECT_EQ(victim.calls, 0);
    }
    EXPECT_GE(other.calls, 1);
}

TEST_P(TimeoutTest, ShortenedDuringALongSleepFromAnotherThread)
{
    // E12
    Recorder recorder;
    int id = timer(3'600'000, recorder);
    std::thread other([&] { sluice_loop_update_timeout(loop, id, 1); });
    run_until([&] { return recorder.calls > 0; }); // else the test runner's limit ends it
    other.join();
    EXPECT_GE(recorder.calls, 1);
}

TEST_P(TimeoutTest, FreesAreNotStarvedByAnEveryTurnTimer)
{
    Pair pair;
    Recorder every, busy, victim;
    timer(0, every);
    watch(pair.near.get(), SLUICE_EVENT_WRITABLE, busy);
    int id = timer(-1, victim);
    turns();
    sluice_loop_remove_timeout(loop, id);
    EXPECT_EQ(victim.freed, 0) << "not inside the remove";
    turns(2);
    EXPECT_EQ(victim.freed, 1);
}

int64_t stopped_now = 1'000'000;
int64_t stopped_clock()
{
    return stopped_now;
}

TEST(Timeouts, ManyDueAtOnceFireInOrderOfTheirDeadlines)
{
    GMainContext *context = g_main_context_new();
    LoopImpl *loop = LoopImpl::create(context, SLUICE_BACKEND_EPOLL, stopped_clock);
    std::vector<Recorder> recorders(500);
    std::vector<int> order, ids;
    for (int i = 0; i < 500; ++i) {
        int rank = i * 7919 % 500;
        auto &recorder = recorders[static_cast<size_t>(i)];
        recorder.then = [&order, rank] { order.push_back(rank); };
        ids.push_back(loop->add_timeout(100'000 + rank, Recorder::on_timeout, &recorder, Recorder::on_freed));
    }
    for (int i = 0; i < 500; i += 2)
        loop->update_timeout(ids[static_cast<size_t>(i)], 100'000 + i * 7919 % 500);
    stopped_now += 100'000 + 249;
    loop->iterate(false);
    ASSERT_EQ(order.size(), 250u) << "those that are due, and no other";
    for (int i = 0; i < 250; ++i)
        EXPECT_EQ(order[static_cast<size_t>(i)], i);
    loop->unref();
    g_main_context_unref(context);
}

} // namespace
} // namespace sluice::event
