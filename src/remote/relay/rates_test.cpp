// SPDX-License-Identifier: LGPL-2.1-or-later

// Lanes under a bound on bytes per second, with a clock that the test turns.

#include <algorithm>
#include <csignal>

#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

int64_t now_usec = 0;

class RatesTest : public testing::Test {
protected:
    void SetUp() override
    {
        signal(SIGPIPE, SIG_IGN);
        now_usec = 1'000'000'000;
    }
    static LaneConfig config(TokenBucket *one, TokenBucket *other = nullptr)
    {
        LaneConfig config;
        config.rates[0] = one;
        config.rates[1] = other;
        config.clock = [] { return now_usec; };
        return config;
    }

    // A lane with all that it could take, and somebody who takes all that it gives.
    struct Traffic {
        explicit Traffic(const LaneConfig &config) : lane(source.near, sink.near, config) {}
        void go_on()
        {
            do {
                feed(source.far, std::string(64 << 10, 'x'));
                turn(lane);
                arrived += take(sink.far).size();
            } while (lane.waits_until() == INT64_MAX);
        }
        Channel source = own_socket_pair(), sink = own_socket_pair();
        Lane lane;
        uint64_t arrived = 0;
    };

    // Lets time pass in steps from one wake-up to the next.
    static void run(std::initializer_list<Traffic *> all, int64_t usec)
    {
        int64_t end = now_usec + usec;
        while (now_usec < end) {
            int64_t next = end;
            for (Traffic *one : all) {
                one->go_on();
                next = std::min(next, one->lane.waits_until());
            }
            now_usec = std::max(next, now_usec + 1);
        }
    }
};

TEST_F(RatesTest, TheRateHoldsAndTheLaneSaysWhenItGoesOn)
{
    TokenBucket bucket(1'000'000);
    Traffic one(config(&bucket));
    run({&one}, 1'000'000); // with the burst
    one.arrived = 0;
    run({&one}, 10'000'000);
    EXPECT_NEAR(static_cast<double>(one.arrived), 10e6, 2e5);
    one.go_on();
    EXPECT_EQ(one.lane.waits_for(), Lane::Waits::rate);
    EXPECT_FALSE(one.lane.wants_source()) << "or it would spin";
    EXPECT_GT(one.lane.waits_until(), now_usec);
    uint64_t before = one.lane.bytes();
    one.go_on();
    EXPECT_EQ(one.lane.bytes(), before) << "not before that time";
}

TEST_F(RatesTest, TheLowerOfTwoRatesCounts)
{
    for (uint64_t lower : {0, 1}) {
        TokenBucket slow(500'000), fast(5'000'000);
        Traffic one(lower == 0 ? config(&slow, &fast) : config(&fast, &slow));
        run({&one}, 1'000'000);
        one.arrived = 0;
        run({&one}, 10'000'000);
        EXPECT_NEAR(static_cast<double>(one.arrived), 5e6, 1e5);
    }
    TokenBucket only(500'000);
    Traffic one(config(nullptr, &only));
    run({&one}, 10'000'000);
    EXPECT_NEAR(static_cast<double>(one.arrived), 5e6, 1e5);
}

TEST_F(RatesTest, LanesOfOneServiceGetEqualShares)
{
    TokenBucket bucket(1'000'000);
    Traffic a(config(&bucket)), b(config(&bucket)), c(config(&bucket));
    run({&a, &b, &c}, 30'000'000);
    for (Traffic *one : {&a, &b, &c})
        EXPECT_NEAR(static_cast<double>(one->arrived), 10e6, 3e5);
}

// Those who have little to say do not keep the rest of a quantum from others.
TEST_F(RatesTest, SmallMessagesPayForWhatTheyAre)
{
    TokenBucket bucket(1'000'000, 40'000);
    Traffic bulk(config(&bucket));
    run({&bulk}, 1'000'000);
    Channel source = own_socket_pair(), sink = own_socket_pair();
    Lane lane(source.near, sink.near, config(&bucket));
    for (int i = 0; i < 100; ++i) {
        now_usec += 40'000; // the burst is there again
        feed(source.far, std::string(100, 'm'));
        turn(lane);
        EXPECT_EQ(take(sink.far).size(), 100u);
        EXPECT_EQ(bucket.available(now_usec), 39'900u);
    }
    // with nothing to be had at once, it is told to come for the hundred bytes only
    TokenBucket plenty(1'000'000'000);
    Lane other(source.near, sink.near, config(&plenty, &bucket));
    for (Lane *one : {&lane, &other}) {
        bucket.reserve(bucket.available(now_usec), now_usec);
        feed(source.far, std::string(100, 'm'));
        turn(*one);
        EXPECT_EQ(one->waits_until(), now_usec + 100);
        now_usec += 100;
        turn(*one);
        EXPECT_EQ(take(sink.far).size(), 100u);
        EXPECT_EQ(one->waits_for(), Lane::Waits::source);
    }
}

TEST_F(RatesTest, ALaneThatEndsLeavesItsShareToOthers)
{
    TokenBucket bucket(1'000'000, 40'000);
    {
        Traffic one(config(&bucket));
        one.go_on();
        one.go_on();
        EXPECT_EQ(one.lane.waits_for(), Lane::Waits::rate);
        one.lane.stop(false);
        EXPECT_EQ(one.lane.waits_until(), INT64_MAX);
    }
    int64_t all_back = now_usec + 40'000;
    EXPECT_EQ(bucket.available(all_back), 40'000u);
}

TEST_F(RatesTest, TheEndComesThroughToo)
{
    TokenBucket bucket(1'000'000);
    Traffic one(config(&bucket));
    run({&one}, 100'000);
    shutdown(one.source.far.get(), SHUT_WR);
    while (!one.lane.ended()) {
        turn(one.lane);
        take(one.sink.far);
        now_usec = std::max(now_usec, std::min(one.lane.waits_until(), now_usec + 1'000'000));
    }
    EXPECT_EQ(one.lane.state(), Lane::State::finished);
}

TEST_F(RatesTest, SplicedBytesCountAsWell)
{
    TokenBucket bucket(10'000'000);
    Channel source = pipe_source(), sink = pipe_sink();
    Lane lane(source.near, sink.near, config(&bucket));
    uint64_t arrived = 0;
    for (int64_t end = now_usec + 5'000'000; now_usec < end; now_usec += 1000) {
        feed(source.far, std::string(64 << 10, 'x'));
        turn(lane);
        arrived += take(sink.far).size();
    }
    EXPECT_EQ(lane.main_mode(), Lane::Mode::spliced);
    EXPECT_NEAR(static_cast<double>(arrived), 51e6, 1e6) << "and the burst";
}

} // namespace
} // namespace sluice::relay
