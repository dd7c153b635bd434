// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/pump.hpp"

#include <csignal>

#include <glib.h>

#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

using namespace std::chrono_literals;

// A pump between two pipes on the client's side and a socket on the server's.
class PumpTest : public testing::TestWithParam<int> {
protected:
    PumpTest() : loop(nullptr, GetParam()) { signal(SIGPIPE, SIG_IGN); }

    void start(PumpConfig config = {})
    {
        Channel input = pipe_source(), output = pipe_sink(), socket = socket_pair();
        to_relay = std::move(input.far);
        from_relay = std::move(output.far);
        server = std::move(socket.far);
        pump.emplace(loop, config, std::move(input.near), std::move(output.near), std::move(socket.near));
        pump->on_moment([this](Pump::Moment moment) { moments.push_back(moment); });
        pump->start([this](const Outcome &result) {
            ++ends;
            outcome = result;
        });
    }
    void turns(int count = 20)
    {
        for (int i = 0; i < count; ++i)
            loop.iterate(false);
    }
    void run_to_the_end()
    {
        while (!outcome)
            loop.iterate();
        turns();
        EXPECT_EQ(ends, 1);
    }

    Loop loop;
    UniqueFd to_relay, from_relay, server;
    std::optional<Pump> pump;
    std::optional<Outcome> outcome;
    std::vector<Pump::Moment> moments;
    int ends = 0;
};

INSTANTIATE_TEST_SUITE_P(Backends, PumpTest, testing::Values(SLUICE_BACKEND_EPOLL, SLUICE_BACKEND_GSOURCE),
                         [](const auto &which) { return which.param == SLUICE_BACKEND_EPOLL ? "epoll" : "gsource"; });

TEST_P(PumpTest, RequestThenHalfCloseThenReply)
{
    start();
    feed(to_relay, "request");
    to_relay.reset();
    turns();
    bool ended = false;
    EXPECT_EQ(take(server, &ended), "request");
    EXPECT_TRUE(ended) << "the end was passed on";
    EXPECT_FALSE(outcome) << "and the reply is waited for";
    feed(server, "reply");
    shutdown(server.get(), SHUT_WR);
    run_to_the_end();
    EXPECT_EQ(take(from_relay), "reply");
    EXPECT_EQ(outcome->kind, Outcome::Kind::complete);
    EXPECT_EQ(outcome->undelivered, 0u);
    using enum PumpOwner::Moment;
    EXPECT_EQ(moments, (std::vector{first_byte_up, end_up, first_byte_down, end_down}));
}

TEST_P(PumpTest, ServerHalfClosesFirst)
{
    start();
    feed(server, "all I have");
    shutdown(server.get(), SHUT_WR);
    turns();
    bool ended = false;
    EXPECT_EQ(take(from_relay, &ended), "all I have");
    EXPECT_TRUE(ended);
    EXPECT_FALSE(outcome);
    feed(to_relay, "and this is mine");
    to_relay.reset();
    run_to_the_end();
    EXPECT_EQ(take(server), "and this is mine");
    EXPECT_EQ(outcome->kind, Outcome::Kind::complete);
}

TEST_P(PumpTest, ServerGoneEndsItThoughInputStaysOpen)
{
    start();
    feed(server, "goodbye");
    server.reset();
    run_to_the_end();
    EXPECT_EQ(take(from_relay), "goodbye");
    EXPECT_EQ(outcome->kind, Outcome::Kind::complete);
}

TEST_P(PumpTest, NobodyHearsTheServer)
{
    start();
    from_relay.reset();
    feed(to_relay, "last request");
    turns();
    EXPECT_FALSE(outcome) << "the client may still ask";
    feed(server, "for nobody");
    run_to_the_end();
    EXPECT_EQ(take(server), "last request");
    EXPECT_EQ(outcome->kind, Outcome::Kind::failed);
    EXPECT_EQ(outcome->error, EPIPE);
    EXPECT_EQ(outcome->undelivered, 10u);
}

TEST_P(PumpTest, AStalledDirectionDoesNotHoldUpTheOther)
{
    start();
    std::string text = pattern(4 << 20);
    size_t stalled = 0, sent = 0;
    std::string got;
    for (int i = 0; i < 5000 && got.size() < text.size(); ++i) {
        stalled += feed(server, std::string_view(text).substr(0, 64 << 10)); // nobody reads the output
        sent += feed(to_relay, std::string_view(text).substr(sent));
        loop.iterate(false);
        if (i % 2)
            stalled += feed(server, "more");
        else
            got += take(server);
    }
    EXPECT_TRUE(got == text);
    EXPECT_GT(stalled, 0u);
    EXPECT_LE(pump->down().held(), size_t{1} << 20);
}

TEST_P(PumpTest, IdleTimeout)
{
    PumpConfig config;
    config.idle_timeout = 20ms;
    start(config);
    feed(to_relay, "x");
    run_to_the_end();
    EXPECT_EQ(outcome->kind, Outcome::Kind::idle_timeout);
}

TEST_P(PumpTest, FinTimeoutBoundsAHalfClosedPair)
{
    PumpConfig config;
    config.fin_timeout = 20ms;
    start(config);
    to_relay.reset();
    run_to_the_end();
    EXPECT_EQ(outcome->kind, Outcome::Kind::fin_timeout);
    EXPECT_EQ(outcome->undelivered, 0u);
}

TEST_P(PumpTest, StuckTimeoutBoundsBytesThatNobodyTakes)
{
    PumpConfig config;
    config.stuck_timeout = 20ms;
    start(config);
    std::string text = pattern(1 << 20);
    for (int i = 0; i < 200; ++i) {
        feed(to_relay, text);
        loop.iterate(false);
    }
    to_relay.reset();
    run_to_the_end();
    EXPECT_EQ(outcome->kind, Outcome::Kind::fin_timeout);
    EXPECT_GT(outcome->undelivered, 0u);
}

TEST_P(PumpTest, MayBeDestroyedWhenItEnds)
{
    start();
    server.reset();
    to_relay.reset();
    while (!outcome)
        loop.iterate();
    pump.reset();
    loop.drain();
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

} // namespace
} // namespace sluice::relay
