// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/async/post.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <glib.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Post, RunsOnceAtATurnAndNotBefore)
{
    Loop loop;
    int runs = 0;
    post(loop, [&] { ++runs; });
    EXPECT_EQ(runs, 0);
    while (runs == 0)
        loop.iterate();
    loop.iterate(false);
    loop.iterate(false);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST(Post, FromWithinItself)
{
    Loop loop;
    int left = 100;
    std::function<void()> again = [&] {
        if (--left > 0)
            post(loop, again);
    };
    post(loop, again);
    while (left > 0)
        loop.iterate();
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST(Post, WhatDidNotRunIsDestroyedWithTheLoop)
{
    auto held = std::make_shared<int>(1);
    {
        Loop loop;
        post(loop, [held] { FAIL() << "ran without a turn"; });
        EXPECT_EQ(held.use_count(), 2);
    }
    EXPECT_EQ(held.use_count(), 1);
}

TEST(Post, WakesALoopThatWaits)
{
    Loop loop;
    std::thread::id ran_on{};
    std::thread other([&] {
        post(loop, [&] {
            ran_on = std::this_thread::get_id();
            loop.quit();
        });
    });
    loop.run(); // nothing else would end it
    other.join();
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

// What the workers of a daemon do with each other: every post is run once, on the thread it
// is meant for, and what it touches there needs no lock.
TEST(Post, ManyThreadsToManyLoops)
{
    constexpr int threads = 4, posts = 2000;
    struct Worker {
        EventThread thread{"post-test"};
        int runs = 0; // touched on that thread alone
        std::thread::id id{};
    };
    std::vector<Worker> workers(2);
    std::atomic<int> left{threads * posts};
    std::atomic<int> strays{0};
    std::mutex mutex;
    std::condition_variable all_ran;
    std::vector<std::thread> senders;
    for (int sender = 0; sender < threads; ++sender)
        senders.emplace_back([&, sender] {
            for (int i = 0; i < posts; ++i) {
                Worker &worker = workers[static_cast<size_t>(sender + i) % workers.size()];
                post(worker.thread.loop(), [&] {
                    if (worker.runs++ == 0)
                        worker.id = std::this_thread::get_id();
                    if (worker.id != std::this_thread::get_id())
                        ++strays;
                    if (--left == 0) {
                        std::lock_guard lock(mutex);
                        all_ran.notify_one();
                    }
                });
            }
        });
    for (std::thread &sender : senders)
        sender.join();
    {
        std::unique_lock lock(mutex);
        all_ran.wait(lock, [&] { return left == 0; });
    }
    EXPECT_EQ(strays, 0);
    int runs = 0;
    for (Worker &worker : workers) {
        std::atomic<int> seen{-1};
        // read where it is written; `left` has ordered it anyway
        post(worker.thread.loop(), [&] {
            std::lock_guard lock(mutex);
            seen = worker.runs;
            all_ran.notify_one();
        });
        std::unique_lock lock(mutex);
        all_ran.wait(lock, [&] { return seen >= 0; });
        runs += seen;
    }
    EXPECT_EQ(runs, threads * posts);
}

// There and back, as an admin server asks a worker.
TEST(Post, ThereAndBack)
{
    Loop loop;
    EventThread worker("post-test");
    std::string answer;
    post(worker.loop(), [&loop, &answer, &worker] {
        auto name = worker.loop().get() ? std::string("a worker") : std::string();
        post(loop, [&loop, &answer, name] {
            answer = name;
            loop.quit();
        });
    });
    loop.run();
    EXPECT_EQ(answer, "a worker");
}

} // namespace
} // namespace sluice
