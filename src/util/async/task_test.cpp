// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/async/task.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/async/task_set.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct Pipe {
    UniqueFd read;
    UniqueFd write;
    Pipe()
    {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
            throw std::runtime_error("pipe2");
        read.reset(fds[0]);
        write.reset(fds[1]);
    }
};

// Counts how many of its kind are alive, to see frames destroyed.
struct Tracked {
    explicit Tracked(int &counter) : alive(counter) { ++alive; }
    Tracked(const Tracked &) = delete;
    Tracked &operator=(const Tracked &) = delete;
    ~Tracked() { --alive; }
    int &alive;
};

Task<int> number(int value)
{
    co_return value;
}

Task<std::unique_ptr<std::string>> boxed(std::string text)
{
    co_return std::make_unique<std::string>(std::move(text));
}

Task<void> raise(std::string what)
{
    throw std::runtime_error(what);
    co_return;
}

Task<char> read_byte(Loop loop, int fd)
{
    co_await loop.readable(fd);
    char byte = 0;
    if (read(fd, &byte, 1) != 1)
        throw std::runtime_error("read");
    co_return byte;
}

Task<void> wait_for_ever(Loop loop, int fd, int &alive)
{
    Tracked tracked(alive);
    co_await loop.readable(fd);
}

Task<void> wait_through(Loop loop, int fd, int &alive)
{
    Tracked tracked(alive);
    co_await wait_for_ever(loop, fd, alive);
}

TEST(Task, RunsOnlyWhenAsked)
{
    bool ran = false;
    auto set = [](bool &flag) -> Task<void> {
        flag = true;
        co_return;
    };
    {
        Task<void> dropped = set(ran);
    }
    EXPECT_FALSE(ran);
    Loop loop;
    run(loop, set(ran));
    EXPECT_TRUE(ran);
}

TEST(Task, HandsOnValues)
{
    Loop loop;
    EXPECT_EQ(run(loop, number(42)), 42);
    EXPECT_EQ(*run(loop, boxed("moved, not copied")), "moved, not copied");

    auto sum = []() -> Task<int> {
        int first = co_await number(40);
        Task<int> second = number(2);
        int rest = co_await std::move(second);
        co_return first + rest;
    };
    EXPECT_EQ(run(loop, sum()), 42);
}

TEST(Task, HandsOnExceptions)
{
    Loop loop;
    try {
        run(loop, raise("straight"));
        FAIL() << "nothing was thrown";
    } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "straight");
    }

    auto caught = []() -> Task<std::string> {
        std::string what;
        try {
            co_await raise("through a task");
        } catch (const std::runtime_error &error) {
            what = error.what();
        }
        co_return what;
    };
    EXPECT_EQ(run(loop, caught()), "through a task");
}

TEST(Task, WaitsOnTheLoop)
{
    Loop loop;
    Pipe pipe;
    auto writer = [](Loop on, int fd) -> Task<void> {
        co_await on.sleep_for(1ms);
        co_await on.writable(fd);
        if (write(fd, "x", 1) != 1)
            throw std::runtime_error("write");
    };
    TaskSet tasks;
    tasks.spawn(writer(loop, pipe.write.get()));
    EXPECT_EQ(run(loop, read_byte(loop, pipe.read.get())), 'x');
}

TEST(Task, ReportsAnAwaitThatCannotBeSetUp)
{
    Loop loop;
    EXPECT_THROW(run(loop, read_byte(loop, -1)), std::system_error);
}

TEST(Task, IsDestroyedWhileSuspended)
{
    Loop loop;
    Pipe pipe;
    int alive = 0;
    {
        Task<void> task = wait_through(loop, pipe.read.get(), alive);
        EXPECT_EQ(alive, 0);
        task.start();
        EXPECT_EQ(alive, 2);
        EXPECT_FALSE(task.done());
        EXPECT_EQ(loop.stats().handles, 1u);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(loop.stats().handles, 0u);
    // the event comes after the watch is gone, and finds nobody
    ASSERT_EQ(write(pipe.write.get(), "x", 1), 1);
    loop.iterate(false);
}

TEST(Task, MovesWhileSuspended)
{
    Loop loop;
    Pipe pipe;
    int alive = 0;
    Task<void> task = wait_for_ever(loop, pipe.read.get(), alive);
    task.start();
    Task<void> moved = std::move(task);
    EXPECT_EQ(alive, 1);
    moved = raise("never started");
    EXPECT_EQ(alive, 0);
}

// Without symmetric transfer each step would leave frames on the stack. Compilers
// only promise it when they optimise, and sanitizers take the tail calls away.
TEST(Task, LongChainsDoNotGrowTheStack)
{
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    constexpr int steps = 1'000'000;
#else
    constexpr int steps = 1'000;
#endif
    auto count = [](int number_of_steps) -> Task<int> {
        int sum = 0;
        for (int i = 0; i < number_of_steps; ++i) {
            int one = co_await number(1);
            sum += one;
        }
        co_return sum;
    };
    Loop loop;
    EXPECT_EQ(run(loop, count(steps)), steps);
}

TEST(TaskSet, LetsGoOfWhatHasEnded)
{
    Loop loop;
    Pipe pipe;
    TaskSet tasks;
    int alive = 0;
    auto at_once = []() -> Task<void> { co_return; };
    tasks.spawn(at_once());
    EXPECT_TRUE(tasks.empty());

    tasks.spawn(wait_for_ever(loop, pipe.read.get(), alive));
    tasks.spawn(wait_through(loop, pipe.read.get(), alive));
    tasks.spawn(wait_for_ever(loop, pipe.read.get(), alive));
    EXPECT_EQ(tasks.size(), 3u);
    EXPECT_EQ(alive, 4);
    ASSERT_EQ(write(pipe.write.get(), "x", 1), 1);
    while (!tasks.empty())
        loop.iterate();
    EXPECT_EQ(alive, 0);
}

TEST(TaskSet, DestroysWhatIsSuspended)
{
    Loop loop;
    Pipe pipe;
    int alive = 0;
    {
        TaskSet tasks;
        for (int i = 0; i < 3; ++i)
            tasks.spawn(wait_through(loop, pipe.read.get(), alive));
        EXPECT_EQ(alive, 6);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(loop.stats().handles, 0u);
}

} // namespace
} // namespace sluice
