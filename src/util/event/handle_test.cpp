// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <memory>
#include <set>

#include "util/event/loop.hpp"
#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

class HandleTest : public LoopTest {};
SLUICE_ON_EACH_BACKEND(HandleTest);

TEST_P(HandleTest, ReportsReadinessWithIdAndDescriptor)
{
    Pair pair;
    Recorder reader, writer;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, reader);
    ASSERT_GT(id, 0);
    turns();
    EXPECT_EQ(reader.calls, 0);
    pair.feed();
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(reader.calls, 1);
    EXPECT_EQ(reader.last_id, id);
    EXPECT_EQ(reader.last_fd, pair.near.get());
    EXPECT_EQ(reader.events, SLUICE_EVENT_READABLE);
    // level-triggered: reported again for as long as it is so
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(reader.calls, 2);
    pair.drain();
    turns();
    EXPECT_EQ(reader.calls, 2);
    ASSERT_GT(watch(pair.near.get(), SLUICE_EVENT_WRITABLE, writer), id);
    turns(1);
    EXPECT_EQ(writer.events, SLUICE_EVENT_WRITABLE);
    EXPECT_EQ(reader.calls, 2) << "each watch hears of its own events only";
}

TEST_P(HandleTest, RefusesWhatCannotBeWatched)
{
    Pair pair;
    Recorder recorder;
    EXPECT_EQ(watch(-1, SLUICE_EVENT_READABLE, recorder), -EBADF);
    int closed = dup(pair.near.get());
    close(closed);
    EXPECT_EQ(watch(closed, SLUICE_EVENT_READABLE, recorder), -EBADF);
    EXPECT_EQ(watch(pair.near.get(), 16, recorder), -EINVAL);
    EXPECT_EQ(sluice_loop_add_handle(loop, pair.near.get(), 1, nullptr, nullptr, nullptr), -EINVAL);
    int id = watch(pair.near.get(), 0, recorder);
    EXPECT_EQ(sluice_loop_update_handle(loop, id, 32), -EINVAL);
    EXPECT_EQ(recorder.freed, 0);
    EXPECT_EQ(stats().handles, 1u);
}

TEST_P(HandleTest, UnknownIdsAreNotFound)
{
    Pair pair;
    Recorder recorder;
    EXPECT_EQ(sluice_loop_update_handle(loop, 1, 1), -ENOENT);
    EXPECT_EQ(sluice_loop_remove_handle(loop, 0), -ENOENT);
    EXPECT_EQ(sluice_loop_remove_handle(loop, -5), -ENOENT);
    int id = watch(pair.near.get(), 0, recorder);
    // E11: parked handles can be removed, and no handle twice
    EXPECT_EQ(sluice_loop_remove_handle(loop, id), 0);
    EXPECT_EQ(sluice_loop_remove_handle(loop, id), -ENOENT);
    // E4: an update does not bring it back
    EXPECT_EQ(sluice_loop_update_handle(loop, id, SLUICE_EVENT_WRITABLE), -ENOENT);
    turns();
    EXPECT_EQ(recorder.calls, 0);
    EXPECT_EQ(recorder.freed, 1);
}

TEST_P(HandleTest, IdsWrapAndPassOverThoseInUse)
{
    Pair pair;
    Recorder recorder;
    int low = watch(pair.near.get(), 0, recorder);
    from_c(loop)->set_next_id(INT_MAX);
    EXPECT_EQ(watch(pair.near.get(), 0, recorder), INT_MAX);
    EXPECT_EQ(low, 1);
    EXPECT_EQ(watch(pair.near.get(), 0, recorder), 2) << "1 is in use";
}

TEST_P(HandleTest, ParkedHearsNothingNotEvenHangup)
{
    Pair pair;
    Recorder recorder;
    int id = watch(pair.near.get(), 0, recorder);
    pair.far.reset();
    turns();
    EXPECT_EQ(recorder.calls, 0);
    double before = cpu_seconds();
    run_for(100);
    EXPECT_LT(cpu_seconds() - before, 0.05) << "a parked hang-up must not spin";
    EXPECT_EQ(recorder.calls, 0);
    sluice_loop_update_handle(loop, id, SLUICE_EVENT_READABLE);
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(recorder.events, SLUICE_EVENT_READABLE | SLUICE_EVENT_HANGUP);
    sluice_loop_update_handle(loop, id, 0);
    recorder.calls = 0;
    turns();
    EXPECT_EQ(recorder.calls, 0);
}

TEST_P(HandleTest, ErrorAndHangupComeUnasked)
{
    // E3
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    UniqueFd read_end(fds[0]), write_end(fds[1]);
    Recorder reader, writer;
    watch(read_end.get(), SLUICE_EVENT_READABLE, reader);
    write_end.reset();
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(reader.events, SLUICE_EVENT_HANGUP);
    sluice_loop_remove_handle(loop, reader.last_id);

    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    UniqueFd reader_gone(fds[1]);
    close(fds[0]);
    watch(reader_gone.get(), SLUICE_EVENT_WRITABLE, writer);
    turns(2);
    EXPECT_EQ(writer.events & SLUICE_EVENT_ERROR, SLUICE_EVENT_ERROR);
}

TEST_P(HandleTest, SeveralWatchesOnOneDescriptor)
{
    Pair pair;
    Recorder first, second, parked;
    int first_id = watch(pair.near.get(), SLUICE_EVENT_READABLE, first);
    watch(pair.near.get(), SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE, second);
    watch(pair.near.get(), 0, parked);
    pair.feed();
    turns(1);
    EXPECT_EQ(first.events, SLUICE_EVENT_READABLE);
    EXPECT_EQ(second.events, SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE);
    sluice_loop_remove_handle(loop, first_id);
    first.calls = second.calls = 0;
    turns(2);
    EXPECT_EQ(first.calls, 0);
    EXPECT_GE(second.calls, 1);
    EXPECT_EQ(parked.calls, 0);
}

TEST_P(HandleTest, FilesThatCannotBePolledAreAlwaysReady)
{
    UniqueFd file(memfd_create("sluice-test", MFD_CLOEXEC));
    Recorder recorder;
    int id = watch(file.get(), SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE, recorder);
    sluice_loop_iterate(loop, 1);
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(recorder.calls, 2);
    EXPECT_EQ(recorder.events, SLUICE_EVENT_READABLE | SLUICE_EVENT_WRITABLE);
    sluice_loop_update_handle(loop, id, SLUICE_EVENT_WRITABLE);
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(recorder.events, SLUICE_EVENT_WRITABLE);
    sluice_loop_update_handle(loop, id, SLUICE_EVENT_ERROR);
    turns();
    EXPECT_EQ(recorder.calls, 3);
    EXPECT_EQ(sluice_loop_iterate(loop, 0), 0) << "it has no errors to report";
    sluice_loop_update_handle(loop, id, 0);
    turns();
    EXPECT_EQ(recorder.calls, 3);
    EXPECT_EQ(sluice_loop_iterate(loop, 0), 0) << "and nothing spins once it is parked";
}

TEST_P(HandleTest, ClosedBehindOurBackIsToldOnceThenQuiet)
{
    // E2
    Pair pair;
    Recorder recorder;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    turns();
    Pair other;
    int number = pair.near.get();
    pair.near.reset();
    turns(20);
    EXPECT_LE(recorder.calls, 1);
    if (recorder.calls == 1) {
        EXPECT_EQ(recorder.events, SLUICE_EVENT_ERROR);
    }
    double before = cpu_seconds();
    run_for(100);
    EXPECT_LT(cpu_seconds() - before, 0.05);
    EXPECT_LE(recorder.calls, 1);
    recorder.calls = 0;

    // the number means another file now; an update works on that one
    ASSERT_EQ(dup3(other.near.get(), number, O_CLOEXEC), number);
    UniqueFd reused(number);
    sluice_loop_update_handle(loop, id, SLUICE_EVENT_READABLE);
    turns();
    EXPECT_EQ(recorder.calls, 0);
    other.feed();
    sluice_loop_iterate(loop, 1);
    EXPECT_EQ(recorder.events, SLUICE_EVENT_READABLE);
    sluice_loop_remove_handle(loop, id);
    turns();
    EXPECT_EQ(recorder.freed, 1);
}

TEST_P(HandleTest, ClosedBeforeTheKernelHeardOfItIsAnError)
{
    Pair pair;
    Recorder recorder;
    watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    pair.near.reset();
    turns(20);
    EXPECT_EQ(recorder.calls, 1);
    EXPECT_EQ(recorder.events, SLUICE_EVENT_ERROR);
    EXPECT_EQ(stats().bad_fds, 1u);
}

TEST_P(HandleTest, ClosedWhileACopyLivesOnDoesNotSpin)
{
    Pair pair, bystander;
    Recorder recorder, other;
    watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    watch(bystander.near.get(), SLUICE_EVENT_READABLE, other);
    turns();
    UniqueFd copy(dup(pair.near.get()));
    pair.near.reset();
    pair.feed();
    turns(2000);
    int calls = recorder.calls;
    EXPECT_LT(calls, 1000);
    double before = cpu_seconds();
    run_for(100);
    EXPECT_LT(cpu_seconds() - before, 0.05);
    EXPECT_EQ(recorder.calls, calls);
    bystander.feed();
    turns(1);
    EXPECT_EQ(other.calls, 1) << "the others are still watched";
}

TEST_P(HandleTest, RemovedAndClosedWhileACopyLivesOnIsForgotten)
{
    Pair pair;
    Recorder recorder, other;
    int id = watch(pair.near.get(), SLUICE_EVENT_READABLE, recorder);
    turns();
    UniqueFd copy(dup(pair.near.get()));
    Pair fresh;
    int number = pair.near.get();
    sluice_loop_remove_handle(loop, id);
    pair.near.reset();
    ASSERT_EQ(dup3(fresh.near.get(), number, O_CLOEXEC), number);
    UniqueFd reused(number);
    watch(number, SLUICE_EVENT_READABLE, other);
    pair.feed();
    turns(20);
    EXPECT_EQ(recorder.calls, 0);
    EXPECT_EQ(other.calls, 0) << "the old file's events are not the new one's";
    double before = cpu_seconds();
    run_for(100);
    EXPECT_LT(cpu_seconds() - before, 0.05);
    fresh.feed();
    turns(2);
    EXPECT_GE(other.calls, 1);
}

TEST_P(HandleTest, ThirtyOfThirtyOneRemovedInOneCallback)
{
    // E9
    for (int round = 0; round < 4; ++round) {
        std::vector<std::unique_ptr<Pair>> pairs;
        std::vector<Recorder> recorders(31);
        std::vector<int> ids;
        int survivor = -1;
        auto remove_the_others = [&](size_t self) {
            if (survivor >= 0)
                return;
            survivor = static_cast<int>((self + 17) % 31);
            for (size_t i = 0; i < ids.size(); ++i) {
                if (static_cast<int>(i) != survivor) {
                    EXPECT_EQ(sluice_loop_remove_handle(loop, ids[i]), 0);
                }
            }
        };
        for (size_t i = 0; i < 31; ++i) {
            pairs.push_back(std::make_unique<Pair>());
            recorders[i].then = [&, i] { remove_the_others(i); };
            ids.push_back(watch(pairs[i]->near.get(), SLUICE_EVENT_READABLE, recorders[i]));
            pairs[i]->feed();
        }
        run_until([&] { return survivor >= 0 && recorders[static_cast<size_t>(survivor)].calls > 0; });
        int fired = 0;
        for (const Recorder &recorder : recorders)
            fired += recorder.calls > 0;
        EXPECT_EQ(fired, 2) << "the one that removed, and the one that was left";
        sluice_loop_remove_handle(loop, ids[static_cast<size_t>(survivor)]);
        turns();
        for (const Recorder &recorder : recorders)
            EXPECT_EQ(recorder.freed, 1);
    }
}

TEST_P(HandleTest, TheSetChangesInsideACallback)
{
    // E10: self, another that is ready too, a new one, an update
    Pair a, b, c, d;
    Recorder removes, collected, added, updated;
    int b_id = 0, d_id = 0;
    int a_id = watch(a.near.get(), SLUICE_EVENT_READABLE, removes);
    removes.then = [&] {
        EXPECT_EQ(sluice_loop_remove_handle(loop, a_id), 0);
        if (collected.calls == 0) {
            EXPECT_EQ(sluice_loop_remove_handle(loop, b_id), 0);
        }
        EXPECT_GT(watch(c.near.get(), SLUICE_EVENT_READABLE, added), 0);
        EXPECT_EQ(sluice_loop_update_handle(loop, d_id, SLUICE_EVENT_READABLE), 0);
        EXPECT_EQ(removes.freed, 0) << "not inside the callback";
    };
    b_id = watch(b.near.get(), SLUICE_EVENT_READABLE, collected);
    d_id = watch(d.near.get(), 0, updated);
    for (Pair *pair : {&a, &b, &c, &d})
        pair->feed();
    sluice_loop_iterate(loop, 1);
    int already = collected.calls;
    turns(3);
    EXPECT_EQ(removes.calls, 1);
    EXPECT_EQ(removes.freed, 1);
    if (already == 0) {
        EXPECT_EQ(collected.calls, 0) << "removed before its turn came";
        EXPECT_EQ(collected.freed, 1);
    }
    EXPECT_GE(added.calls, 1);
    EXPECT_GE(updated.calls, 1);
}

} // namespace
} // namespace sluice::event
