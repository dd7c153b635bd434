// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/async/ready.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/async/task.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice {
namespace {

class ReadyBeforeTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        int fds[2];
        ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        reader.reset(fds[0]);
        writer.reset(fds[1]);
    }

    Task<int> wait(int64_t deadline)
    {
        int events = co_await ReadyBefore(loop, reader.get(), SLUICE_EVENT_READABLE, deadline);
        co_return events;
    }

    Loop loop;
    UniqueFd reader;
    UniqueFd writer;
};

TEST_F(ReadyBeforeTest, TheEventComesFirst)
{
    ASSERT_EQ(write(writer.get(), "x", 1), 1);
    EXPECT_EQ(run(loop, wait(deadline_after(60'000'000, monotonic_usec()))), SLUICE_EVENT_READABLE);
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST_F(ReadyBeforeTest, TheDeadlineComesFirst)
{
    int64_t deadline = monotonic_usec() + 2'000;
    EXPECT_EQ(run(loop, wait(deadline)), 0);
    EXPECT_GE(monotonic_usec(), deadline);
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST_F(ReadyBeforeTest, ADeadlineInThePastEndsTheWait)
{
    EXPECT_EQ(run(loop, wait(monotonic_usec() - 1)), 0);
}

TEST_F(ReadyBeforeTest, WithoutADeadlineThereIsNoTimer)
{
    Task<int> task = wait(no_deadline);
    task.start();
    EXPECT_EQ(loop.stats().timeouts, 0u);
    writer.reset();
    while (!task.done())
        loop.iterate();
    EXPECT_NE(task.take() & (SLUICE_EVENT_HANGUP | SLUICE_EVENT_READABLE), 0);
}

TEST(DeadlineAfter, SaturatesAndTakesNegativeForNever)
{
    EXPECT_EQ(deadline_after(5, 100), 105);
    EXPECT_EQ(deadline_after(0, 100), 100);
    EXPECT_EQ(deadline_after(-1, 100), no_deadline);
    EXPECT_EQ(deadline_after(INT64_MAX, 100), no_deadline);
}

} // namespace
} // namespace sluice
