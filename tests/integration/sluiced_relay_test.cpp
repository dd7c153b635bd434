// SPDX-License-Identifier: LGPL-2.1-or-later

// What goes through sluiced comes out of it, whatever is half-closed, broken or slow
// (cases P1, P2, P3, P12 and P14).

#include "support/sluiced.hpp"

namespace sluice::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

enum class Path { unix_unix, tcp_unix, tcp_tcp };

std::string name_of(Path path)
{
    return path == Path::unix_unix ? "UnixUnix" : path == Path::tcp_unix ? "TcpUnix" : "TcpTcp";
}

// A listening upstream, sluiced in front of it, and clients.
class SluicedRelay : public ::testing::TestWithParam<Path> {
protected:
    SluicedRelay()
        : front_(GetParam() == Path::unix_unix ? Listener::unix_socket(folder_ / "front", 128) : Listener::tcp4(128)),
          upstream_(GetParam() == Path::tcp_tcp ? Listener::tcp4(128) : Listener::unix_socket(folder_ / "up", 128)),
          daemon_({"--connections-max=100", upstream_.address()})
    {
        signal(SIGPIPE, SIG_IGN);
        daemon_.command().pass(front_.fd(), "front");
    }

    void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.child().errors(); }
    void TearDown() override
    {
        auto exit = daemon_.stop();
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->code, 0) << daemon_.child().errors();
    }

    struct Pair {
        UniqueFd client, server;
    };
    Pair connect()
    {
        Pair pair;
        pair.client = connect_client(front_.address());
        pair.server = upstream_.accept();
        EXPECT_TRUE(pair.client);
        EXPECT_TRUE(pair.server);
        return pair;
    }

    TempDir folder_;
    Listener front_, upstream_;
    Sluiced daemon_;
};

INSTANTIATE_TEST_SUITE_P(Paths, SluicedRelay, ::testing::Values(Path::unix_unix, Path::tcp_unix, Path::tcp_tcp),
                         [](const auto &which) { return name_of(which.param); });

TEST_P(SluicedRelay, AReplyAfterTheClientsHalfCloseArrivesWhole)
{
    Pair pair = connect();
    Traffic traffic;
    Feed &request = traffic.feed(pair.client.get(), 3 * MiB, Pattern{1});
    request.when_done = [&] { shutdown(pair.client.get(), SHUT_WR); };
    Drain &asked = traffic.drain(pair.server.get(), request.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return asked.done; }));
    EXPECT_TRUE(asked.intact);
    EXPECT_EQ(asked.bytes, 3 * MiB);

    Feed &reply = traffic.feed(pair.server.get(), 50 * MiB, Pattern{2});
    reply.when_done = [&] { traffic.close(pair.server); };
    Drain &answered = traffic.drain(pair.client.get(), reply.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return answered.done; }));
    EXPECT_TRUE(answered.intact) << "damaged at " << answered.damaged_at;
    EXPECT_EQ(answered.bytes, 50 * MiB);
}

TEST_P(SluicedRelay, WhatTheClientStillSendsAfterTheUpstreamsHalfCloseArrivesWhole)
{
    Pair pair = connect();
    Traffic traffic;
    Feed &greeting = traffic.feed(pair.server.get(), 10, Pattern{3});
    greeting.when_done = [&] { shutdown(pair.server.get(), SHUT_WR); };
    Drain &greeted = traffic.drain(pair.client.get(), greeting.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return greeted.done; }));
    EXPECT_EQ(greeted.bytes, 10u);

    Feed &upload = traffic.feed(pair.client.get(), 50 * MiB, Pattern{4});
    upload.when_done = [&] { traffic.close(pair.client); };
    Drain &arrived = traffic.drain(pair.server.get(), upload.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_TRUE(arrived.intact) << "damaged at " << arrived.damaged_at;
    EXPECT_EQ(arrived.bytes, 50 * MiB);
}

TEST_P(SluicedRelay, BothWaysAtOnceWithStallsAndRandomSizes)
{
    Pair pair = connect();
    Traffic traffic;
    Feed &up = traffic.feed(pair.client.get(), 40 * MiB, Pattern{5});
    Feed &down = traffic.feed(pair.server.get(), 40 * MiB, Pattern{6});
    Drain &arrived = traffic.drain(pair.server.get(), up.pattern);
    Drain &returned = traffic.drain(pair.client.get(), down.pattern);
    for (Flow *flow : {static_cast<Flow *>(&up), static_cast<Flow *>(&down), static_cast<Flow *>(&arrived),
                       static_cast<Flow *>(&returned)})
        flow->pace = Pace{192 * 1024, true, 2 * MiB, 3000, 20, {}};
    up.when_done = [&] { shutdown(pair.client.get(), SHUT_WR); };
    down.when_done = [&] { shutdown(pair.server.get(), SHUT_WR); };
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done && returned.done; }));
    EXPECT_TRUE(arrived.intact && returned.intact);
    EXPECT_EQ(arrived.bytes, 40 * MiB);
    EXPECT_EQ(returned.bytes, 40 * MiB);
}

TEST_P(SluicedRelay, AnUpstreamThatDiesInATransferIsSeenAndWhatItSentArrives)
{
    Pair pair = connect();
    Traffic traffic;
    Feed &down = traffic.feed(pair.server.get(), 5 * MiB, Pattern{7});
    down.when_done = [&] { traffic.close(pair.server); };
    Drain &returned = traffic.drain(pair.client.get(), down.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return returned.done; }));
    EXPECT_TRUE(returned.intact);
    EXPECT_EQ(returned.bytes, 5 * MiB);
    EXPECT_TRUE(connect().client) << "others are served";
}

TEST_P(SluicedRelay, AClientThatDiesIsPassedOnAndLeavesNothingBehind)
{
    auto open_files = [&] {
        size_t count = 0;
        for ([[maybe_unused]] const auto &entry :
             std::filesystem::directory_iterator("/proc/" + std::to_string(daemon_.child().pid()) + "/fd"))
            ++count;
        return count;
    };
    size_t before = open_files();
    for (int i = 0; i < 20; ++i) {
        Pair pair = connect();
        Traffic traffic;
        Feed &up = traffic.feed(pair.client.get(), 2 * MiB, Pattern{8});
        Drain &arrived = traffic.drain(pair.server.get(), up.pattern);
        ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes > MiB; }));
        linger reset{1, 0};
        setsockopt(pair.client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        traffic.close(pair.client);
        EXPECT_TRUE(traffic.run_until([&] { return arrived.done || arrived.error != 0; }));
        EXPECT_TRUE(arrived.intact);
    }
    Traffic nothing;
    // pooled pipes may stay
    EXPECT_TRUE(nothing.run_until([&] { return open_files() <= before + 8; })) << before << " and now " << open_files();
}

// P14: a message that is answered before the next is sent does not wait for a timer of
// Nagle's or a cork; 1,000 of them would take 200 s.
TEST_P(SluicedRelay, SmallMessagesGoAtOnce)
{
    Pair pair = connect();
    int on = 1;
    for (int fd : {pair.client.get(), pair.server.get()})
        setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
    char message[64] = {};
    Deadline deadline;
    for (int i = 0; i < 1000; ++i) {
        // in two writes each, which is what Nagle's algorithm holds back
        for (auto [from, to] :
             {std::pair(pair.client.get(), pair.server.get()), std::pair(pair.server.get(), pair.client.get())}) {
            ASSERT_EQ(send(from, message, 32, 0), 32);
            ASSERT_EQ(send(from, message, 32, 0), 32);
            ASSERT_EQ(recv(to, message, 64, MSG_WAITALL), 64);
        }
    }
    EXPECT_FALSE(deadline.passed());
}

} // namespace
} // namespace sluice::test
