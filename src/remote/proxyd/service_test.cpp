// SPDX-License-Identifier: LGPL-2.1-or-later
#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include <gtest/gtest.h>

#include "remote/proxyd/service.hpp"

namespace sluice::proxyd {
namespace {

ServiceConfig config(unsigned connections, WhenFull when_full, unsigned per_peer = 0)
{
    ServiceConfig service;
    service.name = "db";
    service.connect = {parse_address("/run/db").value()};
    service.limits.connections = connections;
    service.limits.when_full = when_full;
    service.limits.per_peer = per_peer;
    return service;
}

Peer user(uid_t uid)
{
    Peer peer;
    peer.address.storage.ss_family = AF_UNIX;
    peer.credentials = ucred{1, uid, 1};
    return peer;
}

Peer host(const char *text, uint16_t port)
{
    Peer peer;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    inet_pton(AF_INET, text, &v4.sin_addr);
    std::memcpy(&peer.address.storage, &v4, peer.address.size = sizeof v4);
    return peer;
}

TEST(Service, TheLimitIsNeverPassedAndRoomIsTold)
{
    Service service(config(2, WhenFull::wait));
    int room = 0;
    service.set_on_room([&] { ++room; });
    EXPECT_TRUE(service.reserve());
    EXPECT_TRUE(service.reserve());
    EXPECT_FALSE(service.reserve());
    EXPECT_EQ(service.status().state, "full");
    EXPECT_EQ(room, 0);
    service.unreserve();
    EXPECT_EQ(room, 1);
    EXPECT_TRUE(service.reserve());
    EXPECT_EQ(service.active(), 2u);
    service.unreserve();
    EXPECT_EQ(room, 1) << "nobody has asked in vain since";
}

TEST(Service, TheOneTooManyIsTurnedAwayIfSoConfigured)
{
    Service service(config(1, WhenFull::refuse));
    auto settings = service.settings();
    ASSERT_TRUE(service.reserve());
    EXPECT_FALSE(service.enter(user(1), *settings));
    ASSERT_TRUE(service.reserve()) << "it is accepted in order to be refused";
    EXPECT_EQ(service.enter(user(1), *settings), Rejection::limit);
    service.unreserve();
    EXPECT_EQ(service.active(), 1u);
}

TEST(Service, OnePeerHasItsOwnLimit)
{
    Service service(config(10, WhenFull::wait, 2));
    auto settings = service.settings();
    EXPECT_FALSE(service.enter(user(7), *settings));
    EXPECT_FALSE(service.enter(user(7), *settings));
    EXPECT_EQ(service.enter(user(7), *settings), Rejection::per_peer);
    EXPECT_FALSE(service.enter(user(8), *settings));
    EXPECT_FALSE(service.enter(host("127.0.0.1", 1), *settings));
    EXPECT_FALSE(service.enter(host("127.0.0.1", 2), *settings));
    EXPECT_EQ(service.enter(host("127.0.0.1", 3), *settings), Rejection::per_peer) << "ports do not count";
    EXPECT_FALSE(service.enter(host("127.0.0.2", 3), *settings));
    service.leave(user(7), *settings);
    EXPECT_FALSE(service.enter(user(7), *settings));
}

TEST(Service, RulesTurnAway)
{
    ServiceConfig rules = config(10, WhenFull::wait);
    rules.access.allow_uids = {7};
    Service service(rules);
    auto settings = service.settings();
    EXPECT_FALSE(service.enter(user(7), *settings));
    EXPECT_EQ(service.enter(user(8), *settings), Rejection::access);
}

TEST(Service, DrainingTakesNobodyUntilItIsResumed)
{
    Service service(config(10, WhenFull::wait));
    int room = 0;
    service.set_on_room([&] { ++room; });
    ASSERT_TRUE(service.reserve());
    service.drain();
    EXPECT_FALSE(service.reserve());
    EXPECT_EQ(service.status().state, "draining");
    service.unreserve();
    EXPECT_EQ(room, 0);
    service.resume();
    EXPECT_EQ(room, 1);
    EXPECT_TRUE(service.reserve());
}

TEST(Service, AReloadKeepsWhatItDoesNotChange)
{
    Service service(config(1, WhenFull::wait));
    auto before = service.settings();
    int room = 0;
    service.set_on_room([&] { ++room; });
    ASSERT_TRUE(service.reserve());
    ASSERT_FALSE(service.reserve());
    service.reconfigure(config(2, WhenFull::wait));
    EXPECT_EQ(room, 1) << "there is room now";
    EXPECT_EQ(service.settings()->upstreams, before->upstreams);
    EXPECT_EQ(before->config.limits.connections, 1u) << "who holds the old settings keeps them";
    ServiceConfig other = config(2, WhenFull::wait);
    other.connect = {parse_address("/run/other").value()};
    service.reconfigure(other);
    EXPECT_NE(service.settings()->upstreams, before->upstreams);
}

TEST(Service, CountsByReasonAndTime)
{
    Service service(config(1, WhenFull::wait));
    service.count_rejected(Rejection::access);
    service.count_closed(Closing::complete, {.up = 10, .down = 20, .copying = 30, .spliced = 0});
    service.count_connect(0.0001);
    service.count_connect(0.00011);
    service.count_connect(99);
    ServiceStatus status = service.status();
    auto of = [](const std::vector<Tally> &list, const char *reason) {
        for (const Tally &one : list) {
            if (one.reason == reason)
                return one.count;
        }
        return uint64_t{999};
    };
    EXPECT_EQ(of(status.rejected, "access"), 1u);
    EXPECT_EQ(of(status.rejected, "limit"), 0u);
    EXPECT_EQ(of(status.closed, "complete"), 1u);
    EXPECT_EQ(status.bytes_up, 10u);
    EXPECT_EQ(status.bytes_down, 20u);
    EXPECT_EQ(status.relayed_copying, 30u);
    EXPECT_EQ(status.connect_seconds.counts.front(), 1u);
    EXPECT_EQ(status.connect_seconds.counts[1], 1u);
    EXPECT_EQ(status.connect_seconds.counts.back(), 1u);
    EXPECT_NEAR(status.connect_seconds.sum_seconds, 99.00021, 1e-5);
}

} // namespace
} // namespace sluice::proxyd
