// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/range_lock.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "util/async/task_set.hpp"

namespace sluice::disk {
namespace {

class RangeLockTest : public testing::Test {
protected:
    // Notes when it has the range, and keeps it in `held` until that is let go.
    Task<void> take(char name, uint64_t offset, uint64_t length, bool shared, std::optional<RangeLock::Held> *held)
    {
        if (shared)
            held->emplace(co_await lock.shared(offset, length));
        else
            held->emplace(co_await lock.exclusive(offset, length));
        order += name;
    }

    RangeLock lock;
    std::string order;
    std::optional<RangeLock::Held> a, b, c, d;
    TaskSet tasks;
};

TEST_F(RangeLockTest, OnlyWhatOverlapsWaits)
{
    tasks.spawn(take('a', 0, 100, false, &a));
    tasks.spawn(take('b', 99, 1, false, &b));
    tasks.spawn(take('c', 100, 50, false, &c));
    EXPECT_EQ(order, "ac");
    a.reset();
    EXPECT_EQ(order, "acb");
    EXPECT_TRUE(tasks.empty());
}

TEST_F(RangeLockTest, SharedOnesAreTogetherButNotBeforeWhoCameFirst)
{
    tasks.spawn(take('a', 0, 10, true, &a));
    tasks.spawn(take('b', 5, 10, true, &b));
    tasks.spawn(take('c', 0, 20, false, &c));
    tasks.spawn(take('d', 0, 1, true, &d)); // would starve c
    EXPECT_EQ(order, "ab");
    b.reset();
    EXPECT_EQ(order, "ab");
    a.reset();
    EXPECT_EQ(order, "abc");
    c.reset();
    EXPECT_EQ(order, "abcd");
}

TEST_F(RangeLockTest, InTheOrderInWhichTheyCame)
{
    tasks.spawn(take('a', 0, 10, false, &a));
    tasks.spawn(take('b', 0, 10, false, &b));
    tasks.spawn(take('c', 0, 10, false, &c));
    a.reset();
    EXPECT_EQ(order, "ab");
    b.reset();
    EXPECT_EQ(order, "abc");
}

TEST_F(RangeLockTest, TryingLeavesNothingBehind)
{
    RangeLock::Held first = lock.try_exclusive(0, 10);
    ASSERT_TRUE(first);
    EXPECT_FALSE(lock.try_exclusive(9, 1));
    EXPECT_FALSE(lock.try_shared(0, 1));
    EXPECT_TRUE(lock.try_exclusive(10, 1));
    first.release();
    EXPECT_TRUE(lock.empty());
}

TEST_F(RangeLockTest, OneThatGivesUpLetsOthersPass)
{
    tasks.spawn(take('a', 0, 10, false, &a));
    {
        TaskSet given_up;
        given_up.spawn(take('b', 0, 10, false, &b));
        tasks.spawn(take('c', 0, 10, false, &c));
    }
    a.reset();
    EXPECT_EQ(order, "ac");
}

} // namespace
} // namespace sluice::disk
