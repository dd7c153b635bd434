// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/layers/layers.hpp"

#include <string>

#include <gtest/gtest.h>

#include "remote/disk/layers/layers_fixture.hpp"
#include "util/base/clock.hpp"

namespace sluice::disk {
namespace {

using namespace std::chrono_literals;

TEST_F(LayerTest, ReadonlyRefusesWhatChanges)
{
    open(open_readonly, {});
    EXPECT_TRUE(block->info().read_only);
    EXPECT_EQ(read(4000, 5000), 0);
    EXPECT_EQ(write(0, 512, std::byte{1}), EPERM);
    EXPECT_EQ(run(loop, block->zero({}, 0, 512, {})).error().code, EPERM);
    EXPECT_EQ(run(loop, block->trim({}, 0, 512, {})).error().code, EPERM);
    EXPECT_EQ(memory->seen.size(), 1u);
}

// Each waits its own time, however many there are: 64 one after the other would be 1.3 s.
TEST_F(LayerTest, DelaysAreSideBySide)
{
    open(open_delay, {{"read", "20ms"}});
    TaskSet tasks;
    std::vector<std::vector<std::byte>> buffers(64, std::vector<std::byte>(4096));
    struct Reader {
        static Task<void> read(Block *block, uint64_t offset, std::span<std::byte> into)
        {
            Result<void> done = co_await block->read({}, offset, into);
            EXPECT_TRUE(done);
        }
    };
    int64_t begun = monotonic_usec();
    for (size_t i = 0; i < buffers.size(); ++i)
        tasks.spawn(Reader::read(block.get(), i * 4096, buffers[i]));
    EXPECT_TRUE(memory->seen.empty());
    while (!tasks.empty())
        loop.iterate();
    EXPECT_GE(monotonic_usec() - begun, 20'000);
    EXPECT_EQ(memory->seen.size(), 64u);
    EXPECT_EQ(write(0, 512, std::byte{1}), 0); // has no delay, and no turn of the loop is needed
}

TEST_F(LayerTest, BandwidthIsOfAllTogether)
{
    open(open_delay, {{"bandwidth", "10M"}});
    int64_t begun = monotonic_usec();
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(read(0, 64 << 10), 0);
    EXPECT_GE(monotonic_usec() - begun, 25'000); // 256 KiB at 10 MiB a second
}

TEST_F(LayerTest, AKeyForAllAndKeysForSome)
{
    open(open_delay, {{"all", "10ms"}, {"read", "0"}});
    int64_t begun = monotonic_usec();
    EXPECT_TRUE(run(loop, block->flush({})));
    EXPECT_GE(monotonic_usec() - begun, 10'000);
}

TEST_F(LayerTest, RetryHidesWhatPasses)
{
    open(open_retry, {{"tries", "3"}, {"pause", "1ms"}});
    unsigned failures = 3;
    memory->fails = [&](const MemoryBlock::Seen &) { return failures > 0 ? (--failures, EIO) : 0; };
    EXPECT_EQ(read(100, 512), 0);
    EXPECT_EQ(memory->seen.size(), 4u);
    failures = 4;
    EXPECT_EQ(read(100, 512), EIO);
    EXPECT_EQ(memory->seen.size(), 8u);
    EXPECT_EQ(failures, 0u);
}

TEST_F(LayerTest, RetryLeavesAloneWhatStays)
{
    open(open_retry, {{"pause", "1ms"}});
    for (int error : {EPERM, EINVAL, ENOTSUP, ENOSPC}) {
        memory->seen.clear();
        memory->fails = [error](const MemoryBlock::Seen &) { return error; };
        EXPECT_EQ(write(0, 512, std::byte{1}), error);
        EXPECT_EQ(memory->seen.size(), 1u);
    }
    memory->fails = {};
}

TEST_F(LayerTest, FaultsAreThoseOfTheSeed)
{
    std::string first, second;
    for (std::string *outcome : {&first, &second}) {
        open(open_fault, {{"seed", "7"}, {"read", "25%"}, {"error", "ENOSPC"}});
        for (int i = 0; i < 400; ++i)
            *outcome += read(0, 512) == 0 ? '.' : 'x';
        EXPECT_EQ(write(0, 512, std::byte{1}), 0);
        EXPECT_TRUE(run(loop, std::exchange(block, nullptr)->close()));
    }
    EXPECT_EQ(first, second);
    auto failed = std::count(first.begin(), first.end(), 'x');
    EXPECT_GT(failed, 60);
    EXPECT_LT(failed, 140);
}

TEST_F(LayerTest, FaultsOnlyWhileAFileIsThere)
{
    open(open_fault, {{"all", "1"}, {"file", "/nonexistent/for-sluice"}});
    EXPECT_EQ(read(0, 512), 0);
    TearDown();
    open(open_fault, {{"all", "1"}, {"file", "/"}, {"after", "2"}});
    EXPECT_EQ(read(0, 512), 0);
    EXPECT_EQ(read(0, 512), 0);
    EXPECT_EQ(read(0, 512), EIO);
}

TEST_F(LayerTest, EachSaysWhatItDoesNotKnow)
{
    for (OpenLayer *open_layer : {open_readahead, open_delay, open_retry, open_fault, open_readonly}) {
        auto opened =
            run(loop, open_layer(loop, {{"no-such", "1"}}, std::make_unique<MemoryBlock>(loop, 4096), &shared));
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, EINVAL);
        EXPECT_NE(opened.error().message.find("no-such"), std::string::npos) << opened.error().message;
    }
}

} // namespace
} // namespace sluice::disk
