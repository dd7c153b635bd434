// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/io/io_pool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/async/task_set.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice::disk {
namespace {

class IoPoolTest : public testing::Test {
protected:
    Task<void> run_one(int value, std::vector<int> *results, std::function<int()> call)
    {
        int error = co_await pool.run(std::move(call));
        results->push_back(error == 0 ? value : -error);
    }

    Loop loop;
    IoPool pool{loop, 4};
    UniqueFd file{memfd_create("io-pool-test", MFD_CLOEXEC)};
};

TEST_F(IoPoolTest, CallsRunOnOtherThreadsAndEndOnTheLoops)
{
    std::thread::id where;
    int error = run(loop, pool.run([&] {
        where = std::this_thread::get_id();
        return ENOSPC;
    }));
    EXPECT_EQ(error, ENOSPC);
    EXPECT_NE(where, std::this_thread::get_id());
    EXPECT_NE(where, std::thread::id{});
}

// Each of the four waits until all four run.
TEST_F(IoPoolTest, ThreadsWorkSideBySide)
{
    TaskSet tasks;
    std::vector<int> results;
    std::atomic<int> running{0};
    for (int i = 0; i < 4; ++i)
        tasks.spawn(run_one(i, &results, [&running] {
            ++running;
            while (running < 4)
                std::this_thread::yield();
            return 0;
        }));
    while (!tasks.empty())
        loop.iterate();
    EXPECT_EQ(results.size(), 4u);
}

TEST_F(IoPoolTest, MoreCallsThanThreads)
{
    TaskSet tasks;
    std::vector<int> results;
    for (int i = 0; i < 1000; ++i)
        tasks.spawn(run_one(i, &results, [] { return 0; }));
    while (!tasks.empty())
        loop.iterate();
    ASSERT_EQ(results.size(), 1000u);
    int64_t sum = 0;
    for (int one : results)
        sum += one;
    EXPECT_EQ(sum, 999 * 1000 / 2);
}

TEST_F(IoPoolTest, ReadsAndWritesAreWhole)
{
    std::vector<std::byte> out(300'000), in(300'100, std::byte{1});
    for (size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::byte>(i * 7 >> 3);
    ASSERT_TRUE(run(loop, pool.write(file.get(), 1000, out)));
    ASSERT_TRUE(run(loop, pool.read(file.get(), 1000, in)));
    EXPECT_EQ(std::memcmp(in.data(), out.data(), out.size()), 0);
    for (size_t i = out.size(); i < in.size(); ++i)
        ASSERT_EQ(in[i], std::byte{0}) << "behind the end, at " << i;
    ASSERT_TRUE(run(loop, pool.datasync(file.get())));
    ASSERT_TRUE(run(loop, pool.allocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 200'000)));
    ASSERT_TRUE(run(loop, pool.read(file.get(), 1000, in)));
    EXPECT_EQ(in[0], std::byte{0});
    EXPECT_EQ(in[250'000], out[250'000]);
}

TEST_F(IoPoolTest, ErrorsAreErrnoValues)
{
    std::vector<std::byte> bytes(10);
    EXPECT_EQ(run(loop, pool.read(-1, 0, bytes)).error().code, EBADF);
    EXPECT_EQ(run(loop, pool.write(-1, 0, bytes)).error().code, EBADF);
    EXPECT_EQ(run(loop, pool.datasync(-1)).error().code, EBADF);
}

} // namespace
} // namespace sluice::disk
