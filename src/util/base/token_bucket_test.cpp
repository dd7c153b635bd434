// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/base/token_bucket.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr int64_t second = 1'000'000;

// What a greedy user gets between two times, waiting as it is told to.
uint64_t taken(TokenBucket &bucket, int64_t from, int64_t to)
{
    uint64_t sum = 0;
    for (int64_t now = from; now < to;) {
        int64_t at = bucket.reserve(bucket.quantum(), now);
        now = std::max(now, at);
        if (now < to)
            sum += bucket.quantum();
    }
    return sum;
}

TEST(TokenBucket, TheRateHoldsOverTime)
{
    for (uint64_t rate : {uint64_t{4096}, uint64_t{1'000'003}, uint64_t{1} << 20, uint64_t{10} << 30}) {
        TokenBucket bucket(rate);
        taken(bucket, 4 * second, 5 * second); // the burst is gone
        uint64_t all = taken(bucket, 5 * second, 105 * second);
        EXPECT_GE(all, rate * 100 - 2 * bucket.quantum()) << rate;
        EXPECT_LE(all, rate * 100 + 2 * bucket.quantum()) << rate;
    }
}

TEST(TokenBucket, QuietTimesAreNotSavedUp)
{
    TokenBucket bucket(1'000'000, 100'000);
    taken(bucket, 0, second);
    EXPECT_EQ(bucket.available(100 * second), 100'000u);
    EXPECT_EQ(bucket.reserve(100'000, 100 * second), 100 * second);
    EXPECT_EQ(bucket.available(100 * second), 0u);
    EXPECT_EQ(bucket.reserve(50'000, 100 * second), 100 * second + 50'000) << "50,000 bytes take 50 ms";
    EXPECT_EQ(bucket.available(100 * second + 60'000), 10'000u);
}

TEST(TokenBucket, ThoseWhoAskTakeTurns)
{
    TokenBucket bucket(1'000'000, 20'000);
    int64_t now = 7 * second;
    EXPECT_EQ(bucket.reserve(bucket.quantum(), now), now);
    // both burst quanta but one are gone: each further one comes 20 ms after the one before
    int64_t last = bucket.reserve(bucket.quantum(), now);
    for (int i = 0; i < 5; ++i) {
        int64_t next = bucket.reserve(bucket.quantum(), now);
        EXPECT_EQ(next - last, 20'000);
        last = next;
    }
}

TEST(TokenBucket, WhatIsGivenBackIsThereForOthers)
{
    TokenBucket bucket(1'000'000, 50'000);
    int64_t now = 3 * second;
    bucket.reserve(50'000, now);
    EXPECT_EQ(bucket.available(now), 0u);
    bucket.give_back(30'000);
    EXPECT_EQ(bucket.available(now), 30'000u);
    bucket.give_back(20'000);
    EXPECT_EQ(bucket.available(now), 50'000u);
    // late: the time it was for has passed, and it does not add to the burst
    bucket.reserve(50'000, now);
    bucket.give_back(50'000);
    EXPECT_EQ(bucket.available(now + second), 50'000u);
}

TEST(TokenBucket, BoundsAreKept)
{
    EXPECT_EQ(TokenBucket(1).quantum(), 4096u);
    EXPECT_EQ(TokenBucket(1'000'000).quantum(), 20'000u);
    EXPECT_EQ(TokenBucket(UINT64_MAX).quantum(), size_t{256} << 10);
    EXPECT_EQ(TokenBucket(UINT64_MAX).bytes_per_second(), TokenBucket::rate_max);
    EXPECT_EQ(TokenBucket(0).bytes_per_second(), 1u);
    // ten years of uptime, and a burst that takes long to earn
    TokenBucket slow(1);
    int64_t old = int64_t{10} * 365 * 86'400 * second;
    EXPECT_EQ(slow.reserve(slow.available(old), old), old);
    EXPECT_EQ(slow.reserve(3, old), old + 3 * second);
}

TEST(TokenBucket, ThreadsShareIt)
{
    TokenBucket bucket(1'000'000, 100'000);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 1000; ++k)
                bucket.reserve(1000, second);
        });
    }
    for (std::thread &one : threads)
        one.join();
    // 4,000,000 bytes are 4 s, less the tenth that may come at once
    EXPECT_EQ(bucket.available(5 * second - 100'000), 0u);
    EXPECT_EQ(bucket.available(5 * second - 99'000), 1000u);
}

} // namespace
} // namespace sluice
