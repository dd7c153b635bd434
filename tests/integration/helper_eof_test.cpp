// SPDX-License-Identifier: LGPL-2.1-or-later

// What was sent before the end of a stream arrives before the end of the stream,
// whoever ends first, however much it is and in whatever pieces (cases H1 to H3).

#include "support/helper.hpp"

namespace sluice::test {
namespace {

struct Shape {
    Stdio stdio;
    uint64_t bytes;
    size_t chunk;
};

std::string shape_name(const ::testing::TestParamInfo<Shape> &info)
{
    return std::string(name_of(info.param.stdio)) + "_" + std::to_string(info.param.bytes) + "_by_" +
           std::to_string(info.param.chunk);
}

class HelperEof : public HelperTest, public ::testing::WithParamInterface<Shape> {};

std::vector<Shape> shapes()
{
    std::vector<Shape> shapes;
    for (const Stdio stdio : {Stdio::pipes, Stdio::socketpair}) {
        for (const uint64_t bytes : {0, 10, 4095, 65536, 65537})
            for (const size_t chunk : {1, 1000, 1 << 20})
                shapes.push_back({stdio, bytes, chunk});
        for (const uint64_t bytes : {1'048'576, 10'000'000, 100'000'000})
            for (const size_t chunk : {4099, 1 << 20})
                shapes.push_back({stdio, bytes, chunk});
    }
    return shapes;
}

INSTANTIATE_TEST_SUITE_P(Shapes, HelperEof, ::testing::ValuesIn(shapes()), shape_name);

TEST_P(HelperEof, InputArrivesWhole)
{
    RelaySession session = connect(GetParam().stdio);
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), GetParam().bytes);
    up.pace.chunk_max = GetParam().chunk;
    up.when_done = [&] {
        shutdown(session.input.get(), SHUT_WR);
        traffic.close(session.input);
    };
    Drain &arrived = traffic.drain(session.server.get());
    // the server closes when it has seen the end, as a daemon does
    arrived.when_done = [&] { traffic.close(session.server); };
    Drain &output = traffic.drain(session.output.get());
    EXPECT_TRUE(traffic.run_until([&] { return arrived.done && output.done; }));
    EXPECT_EQ(arrived.bytes, GetParam().bytes);
    EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
    EXPECT_EQ(output.bytes, 0u);
    expect_exit(session.child, 0);
}

TEST_P(HelperEof, ReplyArrivesAfterHalfClose)
{
    constexpr uint64_t reply_bytes = 100 * 1024;
    RelaySession session = connect(GetParam().stdio);
    Traffic traffic;
    Feed &request = traffic.feed(session.input.get(), GetParam().bytes);
    request.pace.chunk_max = GetParam().chunk;
    request.when_done = [&] {
        shutdown(session.input.get(), SHUT_WR);
        traffic.close(session.input);
    };
    Drain &arrived = traffic.drain(session.server.get());
    Feed &reply = traffic.feed(session.server.get(), reply_bytes, Pattern{2});
    reply.paused = true;
    arrived.when_done = [&] { reply.paused = false; };
    reply.when_done = [&] { traffic.close(session.server); };
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    EXPECT_TRUE(traffic.run_until([&] { return arrived.done && output.done; }));
    EXPECT_EQ(arrived.bytes, GetParam().bytes);
    EXPECT_EQ(output.bytes, reply_bytes);
    EXPECT_TRUE(output.intact) << output.damaged_at;
    expect_exit(session.child, 0);
}

TEST_P(HelperEof, OutputArrivesWholeWhenServerCloses)
{
    RelaySession session = connect(GetParam().stdio);
    Traffic traffic;
    Feed &down = traffic.feed(session.server.get(), GetParam().bytes);
    down.pace.chunk_max = GetParam().chunk;
    Drain &output = traffic.drain(session.output.get());
    // nothing is read before the server has closed, or can go no further
    output.paused = true;
    down.when_done = [&] { traffic.close(session.server); };
    EXPECT_TRUE(traffic.run_until([&] { return down.done || stalled(down, session.child); }));
    output.paused = false;
    output.pace.chunk_max = GetParam().chunk;
    EXPECT_TRUE(traffic.run_until([&] { return output.done; }));
    EXPECT_EQ(output.bytes, GetParam().bytes);
    EXPECT_TRUE(output.intact) << output.damaged_at;
    // our stdin is still open: that the server is gone is reason enough
    expect_exit(session.child, 0);
}

TEST_P(HelperEof, UpwardFlowOutlivesServersHalfClose)
{
    RelaySession session = connect(GetParam().stdio);
    shutdown(session.server.get(), SHUT_WR);
    Traffic traffic;
    Drain &output = traffic.drain(session.output.get());
    if (GetParam().stdio == Stdio::pipes) {
        EXPECT_TRUE(traffic.run_until([&] { return output.done; }));
    }
    Feed &up = traffic.feed(session.input.get(), GetParam().bytes);
    up.pace.chunk_max = GetParam().chunk;
    up.when_done = [&] {
        shutdown(session.input.get(), SHUT_WR);
        traffic.close(session.input);
    };
    Drain &arrived = traffic.drain(session.server.get());
    EXPECT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(arrived.bytes, GetParam().bytes);
    EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
    expect_exit(session.child, 0);
}

class HelperEarlyEof : public HelperTest, public ::testing::WithParamInterface<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, HelperEarlyEof, ::testing::Values(0, 1, 10, 1000, 65536));

// Everything and the end of it are there before the helper is.
TEST_P(HelperEarlyEof, InputThatEndedBeforeTheStartArrives)
{
    Ends input = make_pipe();
    Ends output = make_pipe();
    std::vector<std::byte> bytes(GetParam());
    Pattern{}.fill(0, bytes);
    ASSERT_EQ(write(input.second.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    input.second.reset();
    Child child = helper({daemon.address()}).input(input.first.get()).output(output.second.get()).start();
    output.second.reset();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    Traffic traffic;
    Drain &arrived = traffic.drain(server.get());
    EXPECT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(arrived.bytes, GetParam());
    EXPECT_TRUE(arrived.intact);
    server.reset();
    expect_exit(child, 0);
}

// A close with unread bytes behind it resets the connection; what was sent before it
// is in our socket all the same.
TEST_F(HelperTest, ReplyArrivesFromServerThatLeavesBytesUnread)
{
    constexpr uint64_t bytes = 100'000;
    for (const Stdio stdio : {Stdio::pipes, Stdio::socketpair}) {
        RelaySession session = connect(stdio);
        ASSERT_EQ(write(session.input.get(), "request", 7), 7);
        ASSERT_TRUE(wait_for(session.server.get(), POLLIN));
        Traffic traffic;
        Feed &down = traffic.feed(session.server.get(), bytes);
        down.when_done = [&] { traffic.close(session.server); };
        ASSERT_TRUE(traffic.run_until([&] { return down.done; }));
        Drain &output = traffic.drain(session.output.get());
        EXPECT_TRUE(traffic.run_until([&] { return output.done; }));
        EXPECT_EQ(output.bytes, bytes);
        EXPECT_TRUE(output.intact);
        EXPECT_TRUE(session.child.wait());
    }
}

} // namespace
} // namespace sluice::test
