// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include "remote/disk/layers/layers_fixture.hpp"

namespace sluice::disk {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t K = 1024, M = 1024 * K;

class ReadaheadTest : public LayerTest {
protected:
    void SetUp() override { open(open_readahead, {{"piece", "64K"}, {"ahead", "2M"}}); }

    uint64_t demand_reads() const
    {
        uint64_t n = 0;
        for (const MemoryBlock::Seen &one : memory->seen)
            n += one.kind == Kind::read && one.asker.urgency == Urgency::demand;
        return n;
    }
    // Several, one after the other, from `offset` on.
    void read_on(uint64_t offset, int count, uint64_t length = 64 * K)
    {
        for (int i = 0; i < count; ++i, offset += length)
            ASSERT_EQ(read(offset, length), 0) << "at " << offset;
    }
};

TEST_F(ReadaheadTest, ReadsThatRunOnAreFetchedBefore)
{
    memory->delay = 1ms;
    read_on(0, 128);
    EXPECT_LE(demand_reads(), 8u);
    EXPECT_GT(memory->in_flight_max, 4u);
    EXPECT_EQ(memory->count(Kind::read), 128u); // nothing twice
}

TEST_F(ReadaheadTest, ReadsHereAndThereAreLeftAlone)
{
    for (uint64_t i = 0; i < 50; ++i)
        ASSERT_EQ(read((i * 37 % 100) * 80'000, 4096), 0);
    EXPECT_EQ(memory->count(Kind::read), 50u);
}

TEST_F(ReadaheadTest, WhatIsWrittenIsReadBack)
{
    read_on(0, 16);
    EXPECT_EQ(write(1 * M + 10, 100'000, std::byte{0xee}), 0);
    std::vector<std::byte> bytes(100'000);
    ASSERT_TRUE(run(loop, block->read({1, Urgency::demand}, 1 * M + 10, bytes)));
    for (std::byte one : bytes)
        ASSERT_EQ(one, std::byte{0xee});
}

// A write that lands while a piece is on its way: the piece may be older than it.
TEST_F(ReadaheadTest, AFetchThatCameLateIsNotUsed)
{
    read_on(0, 4);
    memory->holding = true;
    TaskSet tasks;
    struct Reader {
        static Task<void> read(Block *of, uint64_t offset)
        {
            std::vector<std::byte> bytes(64 * K);
            Result<void> done = co_await of->read({1, Urgency::demand}, offset, bytes);
            EXPECT_TRUE(done);
        }
        static Task<void> write(Block *of, uint64_t offset)
        {
            std::vector<std::byte> bytes(64 * K, std::byte{0xee});
            Result<void> done = co_await of->write({1, Urgency::demand}, offset, bytes, {});
            EXPECT_TRUE(done);
        }
    };
    tasks.spawn(Reader::read(block.get(), 256 * K)); // begins to fetch what follows
    ASSERT_GT(memory->in_flight, 4u);
    tasks.spawn(Reader::write(block.get(), 384 * K));
    memory->release(); // the fetches end first, in the order in which they came
    while (!tasks.empty())
        loop.iterate();
    std::vector<std::byte> bytes(64 * K);
    ASSERT_TRUE(run(loop, block->read({1, Urgency::demand}, 384 * K, bytes)));
    EXPECT_EQ(bytes[0], std::byte{0xee});
}

TEST_F(ReadaheadTest, AFetchThatFailedIsReadAgain)
{
    memory->fails = [](const MemoryBlock::Seen &one) { return one.asker.urgency == Urgency::prefetch ? EIO : 0; };
    read_on(0, 64);
    EXPECT_GT(memory->count(Kind::read), 64u);
}

TEST_F(ReadaheadTest, MemoryIsBounded)
{
    TearDown();
    open(open_readahead, {{"piece", "64K"}, {"ahead", "1M"}, {"memory", "512K"}});
    TaskSet tasks;
    struct Reader {
        static Task<void> read(Block *of, std::vector<std::byte> bytes)
        {
            for (uint64_t at = 0; at < 2 * M; at += bytes.size()) {
                Result<void> done = co_await of->read({1, Urgency::demand}, at, bytes);
                EXPECT_TRUE(done);
            }
        }
    };
    tasks.spawn(Reader::read(block.get(), std::vector<std::byte>(64 * K)));
    while (!tasks.empty())
        loop.iterate();
    EXPECT_LE(memory->in_flight_max, 9u);
}

} // namespace
} // namespace sluice::disk
