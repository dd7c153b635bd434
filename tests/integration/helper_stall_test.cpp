// SPDX-License-Identifier: LGPL-2.1-or-later

// One end stops, or is slower than the other (cases H4, H5 and H10): the other
// direction flows, memory stays bounded, nothing spins, and nothing waits for ever.

#include "support/helper.hpp"

namespace sluice::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

// The contract is 8 MiB; a test must not fail for a page or two of some other libc.
constexpr long rss_peak_kib_max = 12 * 1024;

// What a program may use while it has nothing to do, where one that spins would use
// all the time that the transfer beside it takes.
constexpr double idle_cpu_s_max = 0.02;

class HelperStall : public HelperTest, public ::testing::WithParamInterface<Stdio> {
protected:
    // Time in which a spinning helper would be caught: that of a large transfer
    // through another one.
    void keep_busy()
    {
        RelaySession session = connect();
        Traffic traffic;
        traffic.feed(session.input.get(), 256 * MiB);
        Drain &arrived = traffic.drain(session.server.get());
        EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == 256 * MiB; }));
    }

    void expect_idle(const Child &child)
    {
        const double before_s = child.cpu_s();
        keep_busy();
        EXPECT_LT(child.cpu_s() - before_s, idle_cpu_s_max);
    }

    static void expect_little_memory(const Child &child)
    {
        if (!sanitized) {
            EXPECT_LT(child.rss_peak_kib(), rss_peak_kib_max);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Stdio, HelperStall, ::testing::Values(Stdio::pipes, Stdio::socketpair),
                         [](const auto &which) { return name_of(which.param); });

TEST_P(HelperStall, UpFlowsWhileNobodyReadsStdout)
{
    RelaySession session = connect(GetParam());
    Traffic traffic;
    Feed &down = traffic.feed(session.server.get(), 512 * MiB, Pattern{2});
    ASSERT_TRUE(traffic.run_until([&] { return stalled(down, session.child); }));
    EXPECT_LT(down.bytes, 8 * MiB);
    Feed &up = traffic.feed(session.input.get(), 256 * MiB);
    Drain &arrived = traffic.drain(session.server.get());
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == up.total; }));
    EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
    EXPECT_LT(down.bytes, 8 * MiB);
    expect_little_memory(session.child);
    expect_idle(session.child);
    // and when it is read again, nothing is missing
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    down.total = 64 * MiB;
    down.when_done = [&] { shutdown(session.server.get(), SHUT_WR); };
    EXPECT_TRUE(traffic.run_until([&] { return output.bytes == down.total; }));
    EXPECT_TRUE(output.intact) << output.damaged_at;
    session.end_input();
    expect_exit(session.child, 0);
}

TEST_P(HelperStall, DownFlowsWhileDaemonDoesNotRead)
{
    RelaySession session = connect(GetParam());
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 512 * MiB);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child); }));
    EXPECT_LT(up.bytes, 8 * MiB);
    traffic.feed(session.server.get(), 256 * MiB, Pattern{2});
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    EXPECT_TRUE(traffic.run_until([&] { return output.bytes == 256 * MiB; }));
    EXPECT_TRUE(output.intact) << output.damaged_at;
    EXPECT_LT(up.bytes, 8 * MiB);
    expect_little_memory(session.child);
    expect_idle(session.child);
    Drain &arrived = traffic.drain(session.server.get());
    up.total = 64 * MiB;
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == up.total; }));
    EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
}

TEST_P(HelperStall, BothStalledIsIdle)
{
    RelaySession session = connect(GetParam());
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 512 * MiB);
    Feed &down = traffic.feed(session.server.get(), 512 * MiB);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child) && stalled(down, session.child); }));
    expect_little_memory(session.child);
    expect_idle(session.child);
}

TEST_P(HelperStall, NothingToDoIsIdle)
{
    RelaySession session = connect(GetParam());
    ASSERT_TRUE(eventually([&] { return session.child.sleeping(); }));
    expect_idle(session.child);
    // a half that has ended is no reason to look at it again and again
    shutdown(session.server.get(), SHUT_WR);
    ASSERT_TRUE(wait_for(session.output.get(), POLLIN));
    expect_idle(session.child);
}

// A pipe full of small pieces has room for bytes but not for another piece. The bulk
// before it lets a lane move to its way for large ones.
TEST_P(HelperStall, PipeFullOfSmallPiecesIsIdle)
{
    constexpr uint64_t bulk = 16 * MiB;
    RelaySession session = connect(GetParam(), {"--buffer-size=64K"});
    Traffic traffic;
    Feed &down = traffic.feed(session.server.get(), bulk);
    Drain &output = traffic.drain(session.output.get());
    ASSERT_TRUE(traffic.run_until([&] { return output.bytes == bulk; }));
    output.paused = true;
    Feed &small = traffic.feed(session.server.get(), 64 * MiB, Pattern{2});
    small.pace.chunk_max = 1;
    ASSERT_TRUE(traffic.run_until([&] { return stalled(small, session.child); }));
    expect_idle(session.child);
    small.total = small.bytes + 1;
    EXPECT_TRUE(down.done);
    Drain &rest = traffic.drain(session.output.get(), Pattern{2});
    EXPECT_TRUE(traffic.run_until([&] { return rest.bytes == small.total; }));
    EXPECT_TRUE(output.intact && rest.intact);
}

TEST_P(HelperStall, EndsWhenDaemonStopsReadingAndInputCloses)
{
    RelaySession session = connect(GetParam(), {"--fin-timeout=200ms"});
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 512 * MiB);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child); }));
    session.end_input();
    const std::optional<Exit> exit = session.child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, exit_code::io) << *exit;
    expect_one_line(session.child.errors());
    EXPECT_NE(session.child.errors().find(daemon.address()), std::string::npos) << session.child.errors();
}

// Nothing was lost, but the daemon that was told the end of the request never answered.
TEST_P(HelperStall, EndsWhenDaemonNeverAnswersTheEnd)
{
    RelaySession session = connect(GetParam(), {"--fin-timeout=200ms"});
    ASSERT_EQ(write(session.input.get(), "request", 7), 7);
    session.end_input();
    expect_exit(session.child, exit_code::unavailable);
    EXPECT_NE(session.child.errors().find(daemon.address()), std::string::npos) << session.child.errors();
}

TEST_P(HelperStall, EndsAtOnceWhenDaemonStopsReadingAndIsGone)
{
    RelaySession session = connect(GetParam(), {"--fin-timeout=3600"});
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 512 * MiB);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child); }));
    session.end_input();
    session.server.reset();
    expect_exit(session.child, exit_code::io);
}

// The same while stdin stays open: there is nobody left to send it to.
TEST_P(HelperStall, EndsWhenDaemonIsGoneAndInputStaysOpen)
{
    RelaySession session = connect(GetParam(), {"--fin-timeout=3600"});
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 512 * MiB);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child); }));
    session.server.reset();
    expect_exit(session.child, exit_code::io);
}

// The fin timeout is for a pair in which nothing moves any more, not for a long reply.
TEST_P(HelperStall, LongReplyAfterHalfCloseIsNotCut)
{
    RelaySession session = connect(GetParam(), {"--fin-timeout=200ms"});
    Traffic traffic;
    session.end_input();
    Drain &request = traffic.drain(session.server.get());
    Feed &reply = traffic.feed(session.server.get(), UINT64_MAX);
    Drain &output = traffic.drain(session.output.get());
    const Deadline well_after_fin{1};
    EXPECT_TRUE(traffic.run_until([&] { return request.done && well_after_fin.passed(); }));
    EXPECT_EQ(reply.error, 0);
    reply.total = reply.bytes + 1000;
    reply.when_done = [&] { traffic.close(session.server); };
    EXPECT_TRUE(traffic.run_until([&] { return output.done; }));
    EXPECT_EQ(output.bytes, reply.total);
    EXPECT_TRUE(output.intact) << output.damaged_at;
    expect_exit(session.child, 0);
}

TEST_P(HelperStall, MessagesLargerThanTheBuffersPassBothWaysAtOnce)
{
    constexpr uint64_t message = 32 * MiB;
    RelaySession session = connect(GetParam());
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), message);
    Feed &down = traffic.feed(session.server.get(), message, Pattern{2});
    Drain &arrived = traffic.drain(session.server.get());
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    up.pace.chunk_max = down.pace.chunk_max = MiB;
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == message && output.bytes == message; }));
    EXPECT_TRUE(arrived.intact && output.intact);
    expect_little_memory(session.child);
}

// A daemon that answers only when it has sent its own message: needs the two
// directions to be independent.
TEST_P(HelperStall, DaemonThatSendsBeforeItReadsDoesNotDeadlock)
{
    constexpr uint64_t message = 32 * MiB;
    RelaySession session = connect(GetParam());
    Traffic traffic;
    traffic.feed(session.input.get(), message);
    Feed &down = traffic.feed(session.server.get(), message, Pattern{2});
    Drain &arrived = traffic.drain(session.server.get());
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    arrived.paused = true;
    down.when_done = [&] { arrived.paused = false; };
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == message && output.bytes == message; }));
    EXPECT_TRUE(arrived.intact && output.intact);
}

} // namespace
} // namespace sluice::test
