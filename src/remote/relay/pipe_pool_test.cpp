// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/pipe_pool.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "remote/relay/deny_splice.hpp"
#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

constexpr size_t pipe_bytes = 128 << 10;

class PipePoolTest : public testing::Test {
protected:
    void SetUp() override { signal(SIGPIPE, SIG_IGN); }

    // Bulk until the lane goes through a pipe; everything is delivered.
    static void pass_bulk(Lane &lane, const Channel &source, const Channel &sink)
    {
        std::string text = pattern(2 << 20), got;
        size_t sent = 0;
        while (got.size() < text.size()) {
            size_t fed = feed(source.far, std::string_view(text).substr(sent, 64 << 10));
            sent += fed;
            bool moved = turn(lane);
            std::string arrived = take(sink.far);
            got += arrived;
            ASSERT_TRUE(fed > 0 || moved || !arrived.empty());
        }
        EXPECT_TRUE(got == text);
    }

    // In a process of its own.
    static int in_child(const std::function<int()> &body)
    {
        pid_t child = fork();
        if (child == 0)
            _exit(body());
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
};

TEST_F(PipePoolTest, KeepsEmptyOnesAndClosesOthers)
{
    PipePool pool(pipe_bytes, 2);
    Pipe one = pool.take(), two = pool.take();
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one.bytes, pipe_bytes);
    EXPECT_EQ(fcntl(one.write.get(), F_GETPIPE_SZ), static_cast<int>(pipe_bytes));
    EXPECT_TRUE(fcntl(one.read.get(), F_GETFL) & O_NONBLOCK);
    EXPECT_TRUE(fcntl(one.read.get(), F_GETFD) & FD_CLOEXEC);
    EXPECT_FALSE(pool.take()) << "no more than were allowed";
    EXPECT_EQ(pool.refused(), 1u);

    int number = one.read.get();
    pool.give_back(std::move(one), true);
    one = pool.take();
    EXPECT_EQ(one.read.get(), number);
    EXPECT_EQ(pool.open(), 2u);
    ASSERT_EQ(write(one.write.get(), "left", 4), 4);
    pool.give_back(std::move(one), false);
    EXPECT_EQ(pool.open(), 1u);
    EXPECT_LT(fcntl(number, F_GETFD), 0) << "closed";
    one = pool.take();
    ASSERT_TRUE(one);
    char byte;
    EXPECT_LT(read(one.read.get(), &byte, 1), 0) << "nobody else's bytes";
    EXPECT_FALSE(pool.short_of_pages());
    pool.give_back(std::move(one), true);
    pool.give_back(std::move(two), true);
}

// An unprivileged user whose pipes have too many pages already gets very small ones.
TEST_F(PipePoolTest, SmallPipesAreNotUsed)
{
    long soft = 0;
    std::ifstream("/proc/sys/fs/pipe-user-pages-soft") >> soft;
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    if (soft <= 0 || static_cast<rlim_t>(soft) / 256 * 2 + 50 > files.rlim_cur)
        GTEST_SKIP() << "no such limit here, or one too high to be reached";
    EXPECT_EQ(in_child([soft] {
                  // one of whom there is most likely nothing else
                  auto user = static_cast<uid_t>(60'000 + getpid() % 5000);
                  if (geteuid() == 0 && setuid(user) != 0)
                      return 1;
                  std::vector<Pipe> many;
                  for (long pages = 0; pages <= soft; pages += 256) {
                      many.push_back(Pipe::open(1 << 20));
                      if (!many.back() || many.back().bytes < 1 << 20)
                          break;
                  }
                  PipePool pool(pipe_bytes, 100);
                  if (pool.take() || pool.take() || pool.refused() != 2 || !pool.short_of_pages() || pool.open() != 0)
                      return 2;
                  // and a lane does without
                  Channel source = own_socket_pair(), sink = own_socket_pair();
                  LaneConfig config;
                  config.pipes = &pool;
                  Lane lane(source.near, sink.near, config);
                  pass_bulk(lane, source, sink);
                  return lane.main_mode() == Lane::Mode::copying && !HasFailure() ? 0 : 3;
              }),
              0);
}

TEST_F(PipePoolTest, ALaneHasAPipeOnlyWhileBytesWait)
{
    PipePool pool(pipe_bytes, 1);
    Channel source = own_socket_pair(), sink = own_socket_pair();
    LaneConfig config;
    config.pipes = &pool;
    {
        Lane lane(source.near, sink.near, config);
        EXPECT_EQ(pool.open(), 0u);
        pass_bulk(lane, source, sink);
        EXPECT_EQ(lane.mode(), Lane::Mode::piped);
        Pipe pipe = pool.take();
        EXPECT_TRUE(pipe) << "it has given it back";
        feed(source.far, pattern(64 << 10));
        turn(lane);
        EXPECT_EQ(lane.mode(), Lane::Mode::copying) << "somebody else has it";
        EXPECT_EQ(take(sink.far), pattern(64 << 10));
        pool.give_back(std::move(pipe), true);

        pass_bulk(lane, source, sink);
        EXPECT_EQ(lane.mode(), Lane::Mode::piped);
        fill_up(sink.near);
        feed(source.far, pattern(64 << 10));
        turn(lane);
        EXPECT_GT(lane.held(), 0u);
        EXPECT_FALSE(pool.take());
    }
    EXPECT_EQ(pool.open(), 0u) << "there were bytes in it";
}

// What the kernel refuses to splice further is left to the sink, and then copied.
TEST_F(PipePoolTest, ARefusalWhileThePipeHasBytesIsNoReasonToSpin)
{
    int result = in_child([] {
        Channel source = own_socket_pair(), sink = own_socket_pair();
        Lane lane(source.near, sink.near, {});
        pass_bulk(lane, source, sink);
        size_t before_text = fill_up(sink.near);
        std::string text = pattern(300'000), got;
        size_t sent = feed(source.far, std::string_view(text).substr(0, 50'000));
        turn(lane);
        if (lane.mode() != Lane::Mode::piped || lane.held() != 50'000)
            return 2;
        if (!deny_splice_from(source.near.fd()))
            return 77;
        feed(source.far, std::string_view(text).substr(50'000, 10'000));
        sent += 10'000;
        lane.source_ready();
        lane.run();
        uint64_t calls = lane.calls();
        for (int i = 0; i < 100; ++i) {
            if (lane.wants_source())
                return 3;
            lane.source_ready();
            lane.run();
        }
        if (lane.calls() != calls || !lane.wants_sink())
            return 4;
        while (got.size() < before_text + text.size()) {
            got += take(sink.far);
            sent += feed(source.far, std::string_view(text).substr(sent));
            turn(lane);
        }
        return got.substr(before_text) == text && lane.mode() == Lane::Mode::copying && !HasFailure() ? 0 : 5;
    });
    if (result == 77)
        GTEST_SKIP() << "no system call filters here";
    EXPECT_EQ(result, 0);
}

} // namespace
} // namespace sluice::relay
