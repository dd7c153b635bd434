// SPDX-License-Identifier: LGPL-2.1-or-later

// Many threads against one loop. The sanitizers see what the assertions cannot.

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>

#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

class ConcurrencyTest : public LoopTest {
protected:
    ConcurrencyTest()
    {
        runner = std::thread([this] { EXPECT_EQ(sluice_loop_run(loop), 0); });
    }
    ~ConcurrencyTest() override { stop(); }
    void stop()
    {
        if (!runner.joinable())
            return;
        sluice_loop_quit(loop);
        runner.join();
    }
    std::thread runner;
};
SLUICE_ON_EACH_BACKEND(ConcurrencyTest);

struct Counts {
    std::atomic<int> calls{0};
    std::atomic<int> freed{0};
    static void on_event(int, int, int, void *opaque) { static_cast<Counts *>(opaque)->calls.fetch_add(1); }
    static void on_timeout(int, void *opaque) { static_cast<Counts *>(opaque)->calls.fetch_add(1); }
    static void on_freed(void *opaque) { static_cast<Counts *>(opaque)->freed.fetch_add(1); }
};

TEST_P(ConcurrencyTest, AddUpdateRemoveFromManyThreads)
{
    // E6
    constexpr int threads = 4, rounds = 300;
    Counts counts;
    std::vector<std::thread> others;
    for (int t = 0; t < threads; ++t) {
        others.emplace_back([&] {
            Pair pair;
            pair.feed();
            for (int i = 0; i < rounds; ++i) {
                int handle = sluice_loop_add_handle(loop, pair.near.get(), SLUICE_EVENT_READABLE, Counts::on_event,
                                                    &counts, Counts::on_freed);
                int timeout = sluice_loop_add_timeout(loop, i % 3, Counts::on_timeout, &counts, Counts::on_freed);
                EXPECT_GT(handle, 0);
                EXPECT_GT(timeout, 0);
                EXPECT_EQ(sluice_loop_update_handle(loop, handle, i % 4), 0);
                EXPECT_EQ(sluice_loop_update_timeout(loop, timeout, i % 2), 0);
                EXPECT_EQ(sluice_loop_remove_timeout(loop, timeout), 0);
                EXPECT_EQ(sluice_loop_remove_handle(loop, handle), 0);
                EXPECT_EQ(sluice_loop_remove_handle(loop, handle), -ENOENT);
            }
        });
    }
    for (std::thread &other : others)
        other.join();
    stop();
    EXPECT_EQ(sluice_loop_drain(loop), 0);
    EXPECT_EQ(counts.freed.load(), threads * rounds * 2);
}

TEST_P(ConcurrencyTest, EveryChangeFromOutsideTakesEffectAtOnce)
{
    Pair pair;
    Counts counts;
    pair.feed();
    // nothing else is going on: each step must wake a loop that waits for ever
    int id = sluice_loop_add_handle(loop, pair.near.get(), 0, Counts::on_event, &counts, Counts::on_freed);
    ASSERT_GT(id, 0);
    for (int i = 0; i < 200; ++i) {
        int before = counts.calls.load();
        ASSERT_EQ(sluice_loop_update_handle(loop, id, SLUICE_EVENT_READABLE), 0);
        while (counts.calls.load() == before)
            std::this_thread::yield();
        ASSERT_EQ(sluice_loop_update_handle(loop, id, 0), 0);
    }
    ASSERT_EQ(sluice_loop_remove_handle(loop, id), 0);
    while (counts.freed.load() == 0)
        std::this_thread::yield();
    sluice_loop_stats now;
    sluice_loop_get_stats(loop, &now, sizeof now);
    EXPECT_GT(now.wakeups, 0u);
    EXPECT_EQ(sluice_loop_iterate(loop, 0), -EBUSY) << "another thread runs it";
    EXPECT_EQ(sluice_loop_drain(loop), -EBUSY);
}

TEST_P(ConcurrencyTest, LastReferenceDroppedElsewhere)
{
    Pair pair;
    auto counts = std::make_unique<Counts>();
    sluice_loop *other = sluice_loop_new_with_backend(context, GetParam());
    pair.feed();
    ASSERT_GT(sluice_loop_add_handle(other, pair.near.get(), SLUICE_EVENT_READABLE, Counts::on_event, counts.get(),
                                     Counts::on_freed),
              0);
    while (counts->calls.load() == 0)
        std::this_thread::yield();
    sluice_loop_unref(other);
    while (counts->freed.load() == 0)
        std::this_thread::yield();
    stop();
}

TEST(EventThread, RunsOnAThreadOfItsOwn)
{
    sluice_thread *thread = sluice_thread_new("sluice-test");
    ASSERT_NE(thread, nullptr);
    sluice_loop *loop = sluice_thread_get_loop(thread);
    EXPECT_EQ(sluice_thread_get_context(thread), sluice_loop_get_context(loop));
    EXPECT_NE(sluice_thread_get_context(thread), g_main_context_default());
    struct Seen {
        std::atomic<bool> fired{false};
        std::atomic<bool> freed{false};
        pthread_t thread{};
        char name[32] = "";
    } seen;
    auto fire = [](int, void *opaque) {
        auto *s = static_cast<Seen *>(opaque);
        if (s->fired.load())
            return; // the other thread may be reading
        s->thread = pthread_self();
        pthread_getname_np(pthread_self(), s->name, sizeof s->name);
        s->fired.store(true);
    };
    auto freed = [](void *opaque) {
        auto *s = static_cast<Seen *>(opaque);
        EXPECT_TRUE(pthread_equal(s->thread, pthread_self()));
        s->freed.store(true);
    };
    ASSERT_GT(sluice_loop_add_timeout(loop, 0, fire, &seen, freed), 0);
    while (!seen.fired.load())
        std::this_thread::yield();
    EXPECT_FALSE(pthread_equal(seen.thread, pthread_self()));
    EXPECT_STREQ(seen.name, "sluice-test");
    sluice_thread_unref(sluice_thread_ref(thread));
    sluice_thread_unref(thread);
    EXPECT_TRUE(seen.freed.load()) << "the thread lets go before it ends";
    sluice_thread_unref(nullptr);
}

TEST(EventThread, LastReferenceDroppedOnItself)
{
    // E13
    struct Shared {
        sluice_thread *thread;
        std::atomic<int> freed{0};
    } shared{sluice_thread_new("self"), {}};
    auto fire = [](int, void *opaque) { sluice_thread_unref(static_cast<Shared *>(opaque)->thread); };
    auto freed = [](void *opaque) { static_cast<Shared *>(opaque)->freed.fetch_add(1); };
    sluice_loop *loop = sluice_loop_ref(sluice_thread_get_loop(shared.thread));
    ASSERT_GT(sluice_loop_add_timeout(loop, 1, fire, &shared, freed), 0);
    while (shared.freed.load() == 0)
        std::this_thread::yield();
    EXPECT_EQ(sluice_loop_add_timeout(loop, 1, fire, &shared, freed), -ESHUTDOWN) << "no thread is left to run it";
    sluice_loop_unref(loop);
}

} // namespace
} // namespace sluice::event
