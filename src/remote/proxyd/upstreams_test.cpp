// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include "remote/proxyd/upstreams.hpp"

namespace sluice::proxyd {
namespace {

using std::chrono::seconds;

Address address(const char *text)
{
    return parse_address(text).value();
}

const std::vector<Address> three{address("/run/a"), address("tcp:[::1]:80"), address("tcp:host.example.org:80")};

std::vector<size_t> all_of(Upstreams &upstreams, int64_t now)
{
    std::vector<size_t> order;
    Upstreams::Turn turn;
    while (auto index = upstreams.next(turn, now))
        order.push_back(*index);
    return order;
}

TEST(Upstreams, InOrderEachOnce)
{
    Upstreams upstreams(three, Balance::first, {});
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{0, 1, 2}));
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{0, 1, 2}));
}

TEST(Upstreams, InTurn)
{
    Upstreams upstreams(three, Balance::round_robin, {});
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{0, 1, 2}));
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{1, 2, 0}));
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{2, 0, 1}));
    EXPECT_EQ(all_of(upstreams, 0), (std::vector<size_t>{0, 1, 2}));
}

TEST(Upstreams, AFailedOneComesLastUntilItsTimeIsOver)
{
    Upstreams upstreams(three, Balance::first, {.failures = 2, .retry_after = seconds{5}});
    EXPECT_FALSE(upstreams.failed(0, "refused", 0));
    EXPECT_EQ(all_of(upstreams, 1), (std::vector<size_t>{0, 1, 2}));
    EXPECT_TRUE(upstreams.failed(0, "refused", 0));
    EXPECT_FALSE(upstreams.failed(0, "refused", 0)) << "it is down already";
    EXPECT_EQ(all_of(upstreams, 4'999'999), (std::vector<size_t>{1, 2, 0}));
    EXPECT_EQ(all_of(upstreams, 5'000'000), (std::vector<size_t>{0, 1, 2}));
    EXPECT_EQ(upstreams.status()[0].state, "down") << "not known to be up before it has answered";
    EXPECT_TRUE(upstreams.succeeded(0));
    EXPECT_FALSE(upstreams.succeeded(0));
    EXPECT_EQ(upstreams.status()[0].state, "up");
    EXPECT_EQ(upstreams.status()[0].failures, 3u);
    EXPECT_EQ(upstreams.status()[0].connects, 2u);
    EXPECT_EQ(upstreams.status()[0].last_error, "refused");
}

TEST(Upstreams, NumbersNeedNoNameServer)
{
    Upstreams upstreams(three, Balance::first, {});
    ASSERT_NE(upstreams.direct(0), nullptr);
    EXPECT_EQ(to_string(*upstreams.direct(0)), "unix:/run/a");
    ASSERT_NE(upstreams.direct(1), nullptr);
    EXPECT_EQ(to_string(*upstreams.direct(1)), "[::1]:80");
    EXPECT_EQ(upstreams.direct(2), nullptr);
}

TEST(Upstreams, CountsWhatIsOpen)
{
    Upstreams upstreams(three, Balance::first, {});
    upstreams.opened(1);
    upstreams.opened(1);
    upstreams.closed(1);
    EXPECT_EQ(upstreams.status()[1].active, 1u);
    EXPECT_EQ(upstreams.status()[1].address, "tcp:[::1]:80");
}

} // namespace
} // namespace sluice::proxyd
