// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/cache/policy.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace sluice::disk {
namespace {

constexpr uint64_t K = 1024, M = 1024 * K, G = 1024 * M;

class FillPolicyTest : public testing::Test {
protected:
    FillPolicy policy{{.disk_size = 6 * G}};
};

using Ranges = std::vector<Range>;

TEST_F(FillPolicyTest, TheFirstReadAsksForBothEndsOfTheDisk)
{
    EXPECT_EQ(policy.on_read(1, 0, 512, true), (Ranges{{0, 4 * M + 64 * K}, {0, 8 * M}, {6 * G - 1 * M, 1 * M}}));
    EXPECT_EQ(policy.on_read(1, 2 * G, 512, false), Ranges{});
}

TEST_F(FillPolicyTest, AMissAsksForTheWindowBehindIt)
{
    policy.on_read(1, 0, 512, true);
    EXPECT_EQ(policy.on_read(1, 2 * G + 100 * K, 4 * K, true), (Ranges{{2 * G + 64 * K, 4 * M + 64 * K}}));
    EXPECT_EQ(policy.on_read(1, 3 * G, 4 * K, false), Ranges{});
}

TEST_F(FillPolicyTest, NothingIsAskedForBehindTheEnd)
{
    policy.on_read(1, 0, 512, true);
    EXPECT_EQ(policy.on_read(1, 6 * G - 4 * K, 4 * K, true), (Ranges{{6 * G - 64 * K, 64 * K}}));
    FillPolicy odd({.disk_size = 1000});
    for (const Range &range : odd.on_read(1, 0, 1000, true))
        EXPECT_EQ(range, (Range{0, 64 * K}));
}

// Reads that run on are answered before they come, whatever lies beside them.
TEST_F(FillPolicyTest, ReadsThatRunOnAreAskedForFurtherAndFurtherAhead)
{
    policy.on_read(1, 5 * G, 512, true);
    uint64_t asked_until = 0, ahead_at_most = 0, offset = G;
    for (int i = 0; i < 4096; ++i, offset += 64 * K) {
        bool missed = offset >= asked_until;
        for (const Range &range : policy.on_read(1, offset, 64 * K, missed)) {
            EXPECT_LE(range.length, 33 * M);
            asked_until = std::max(asked_until, range.offset + range.length);
        }
        policy.on_read(2, 3 * G + offset % (64 * M), 4 * K, false); // another client, who is in no one's way
        EXPECT_TRUE(i == 0 || !missed) << "at " << offset;
        ahead_at_most = std::max(ahead_at_most, asked_until - offset);
    }
    EXPECT_GE(ahead_at_most, 32 * M);
    EXPECT_LE(ahead_at_most, 33 * M);
}

TEST_F(FillPolicyTest, NothingAheadIsNothing)
{
    FillPolicy none({.disk_size = G, .ahead_max = 0});
    EXPECT_EQ(none.on_read(1, 0, 4096, true), Ranges{});
}

// For a layer that only reads ahead.
TEST_F(FillPolicyTest, WithoutAWindowOnlyReadsThatRunOnCount)
{
    FillPolicy ahead({.disk_size = G, .window = 0, .head = 0, .tail = 0});
    EXPECT_EQ(ahead.on_read(1, 0, 64 * K, true), Ranges{});
    for (uint64_t i = 1; i < 4; ++i)
        EXPECT_EQ(ahead.on_read(1, i * 64 * K, 64 * K, true), Ranges{});
    EXPECT_EQ(ahead.on_read(1, 256 * K, 64 * K, true), (Ranges{{256 * K, 64 * K + 512 * K}}));
}

} // namespace
} // namespace sluice::disk
