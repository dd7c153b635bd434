// SPDX-License-Identifier: LGPL-2.1-or-later

// A pump as the proxy uses it: between two sockets, with pools, rates and an owner.

#include <malloc.h>

#include <array>
#include <csignal>
#include <optional>
#include <vector>

#include "remote/relay/pump.hpp"
#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool own_allocator = true;
#elif defined(__has_feature)
constexpr bool own_allocator = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool own_allocator = false;
#endif

struct Pair final : PumpOwner {
    Pair(Loop loop, const PumpConfig &config)
    {
        Channel one = own_socket_pair(), other = own_socket_pair();
        client = std::move(one.far);
        server = std::move(other.far);
        client_fd = one.near.fd();
        server_fd = other.near.fd();
        pump.emplace(std::move(loop), config, std::move(one.near), std::nullopt, std::move(other.near));
    }
    void start() { pump->start(*this); }
    void pump_ended(const Outcome &result) override
    {
        ++ends;
        outcome = result;
        both_closed = fcntl(client_fd, F_GETFD) < 0 && fcntl(server_fd, F_GETFD) < 0;
        pump.reset();
    }

    UniqueFd client, server;
    int client_fd = -1, server_fd = -1; // the near ones
    bool both_closed = false;
    int ends = 0;
    std::optional<Outcome> outcome;
    std::optional<Pump> pump;
};

class PumpSocketsTest : public testing::Test {
protected:
    void SetUp() override { signal(SIGPIPE, SIG_IGN); }
    void turns(int count = 20)
    {
        for (int i = 0; i < count; ++i)
            loop.iterate(false);
    }
    Loop loop;
    BufferPool buffers{loop, 64 << 10, 8};
    PipePool pipes{128 << 10, 8};
};

TEST_F(PumpSocketsTest, RequestAndReplyAndBothAreClosed)
{
    Pair pair(loop, {});
    pair.start();
    feed(pair.client, "request");
    shutdown(pair.client.get(), SHUT_WR);
    turns();
    bool ended = false;
    EXPECT_EQ(take(pair.server, &ended), "request");
    EXPECT_TRUE(ended);
    EXPECT_EQ(pair.ends, 0);
    feed(pair.server, "reply");
    pair.server.reset();
    turns();
    ended = false;
    EXPECT_EQ(take(pair.client, &ended), "reply");
    EXPECT_TRUE(ended);
    EXPECT_EQ(pair.ends, 1);
    EXPECT_EQ(pair.outcome->kind, Outcome::Kind::complete);
    EXPECT_TRUE(pair.both_closed);
    loop.drain();
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST_F(PumpSocketsTest, LooksAtTheClientFirstIfTold)
{
    PumpConfig config;
    config.client_first = true;
    config.up.preface = "who ";
    Pair pair(loop, config);
    feed(pair.client, "asks");
    pair.start();
    EXPECT_EQ(take(pair.server), "who asks") << "before the loop has turned";
    EXPECT_GT(pair.pump->first_byte_usec(), 0);

    // and what has ended by then is told from the loop
    Pair gone(loop, config);
    feed(gone.client, "x");
    gone.client.reset();
    gone.server.reset();
    gone.start();
    EXPECT_EQ(gone.ends, 0);
    turns();
    EXPECT_EQ(gone.ends, 1);
    EXPECT_EQ(gone.outcome->kind, Outcome::Kind::failed);
}

TEST_F(PumpSocketsTest, APrefaceNeedsNoWordFromTheClient)
{
    PumpConfig config;
    config.up.preface = "header";
    Pair pair(loop, config);
    pair.start();
    turns();
    EXPECT_EQ(take(pair.server), "header");
    EXPECT_EQ(pair.pump->first_byte_usec(), 0) << "it is not the client's";
    feed(pair.server, "hello");
    turns();
    EXPECT_EQ(take(pair.client), "hello");
    EXPECT_GE(pair.pump->first_byte_usec(), 1);
    EXPECT_GE(pair.pump->last_activity_usec(), pair.pump->first_byte_usec());
}

// Two connections share one buffer; the one that has to wait goes on when the other's
// reader comes back, and one that dies waiting harms nobody.
TEST_F(PumpSocketsTest, MemoryIsWaitedFor)
{
    BufferPool one_only(loop, 64 << 10, 1, 1);
    PumpConfig config;
    config.up.buffers = config.down.buffers = &one_only;
    Pair slow(loop, config), waiting(loop, config), dying(loop, config), last(loop, config);
    std::array<Pair *, 4> all{&slow, &waiting, &dying, &last};
    for (Pair *pair : all)
        pair->start();
    std::string text = pattern(64 << 10);
    for (int i = 0; i < 100 && slow.pump->up().held() == 0; ++i) {
        feed(slow.client, text);
        turns(3);
    }
    ASSERT_GT(slow.pump->up().held(), 0u);
    for (Pair *pair : {&waiting, &dying, &last})
        feed(pair->client, "hello");
    turns();
    EXPECT_EQ(waiting.pump->up().waits_for(), Lane::Waits::memory);
    uint64_t events = loop.stats().events, expirations = loop.stats().expirations;
    turns(50);
    EXPECT_EQ(loop.stats().events, events) << "waiting is no spinning";
    EXPECT_EQ(loop.stats().expirations, expirations);
    dying.pump.reset();
    while (slow.pump->up().held() > 0) {
        take(slow.server);
        turns(3);
    }
    turns();
    EXPECT_EQ(take(waiting.server), "hello");
    EXPECT_EQ(take(last.server), "hello");
    turns();
    EXPECT_EQ(one_only.in_use_bytes(), 0u);
}

TEST_F(PumpSocketsTest, TheRateIsKeptByATimer)
{
    TokenBucket bucket(1'000'000);
    PumpConfig config;
    config.up.rates[0] = &bucket;
    Pair pair(loop, config);
    pair.start();
    EXPECT_EQ(loop.stats().timeouts, 0u) << "none before there is something to wait for";
    std::string text = pattern(150'000), got; // a third of it is more than may come at once
    ASSERT_EQ(feed(pair.client, text), text.size());
    bool waited = false;
    while (got.size() < text.size()) {
        loop.iterate();
        waited |= pair.pump->up().waits_for() == Lane::Waits::rate;
        got += take(pair.server);
    }
    EXPECT_TRUE(got == text);
    EXPECT_TRUE(waited);
    EXPECT_EQ(loop.stats().timeouts, 1u);
}

TEST_F(PumpSocketsTest, TimeoutsThatCannotApplyHaveNoTimer)
{
    PumpConfig config;
    config.fin_timeout = 1h;
    config.stuck_timeout = 1h;
    Pair pair(loop, config);
    pair.start();
    feed(pair.client, "text");
    turns();
    EXPECT_EQ(loop.stats().timeouts, 0u);
    shutdown(pair.client.get(), SHUT_WR);
    turns();
    EXPECT_EQ(loop.stats().timeouts, 1u) << "now one direction has ended";
}

// The idle timeout is armed when the shorter one begins to apply.
TEST_F(PumpSocketsTest, AShorterBoundTakesOver)
{
    PumpConfig config;
    config.idle_timeout = 1h;
    config.fin_timeout = 10ms;
    Pair pair(loop, config);
    pair.start();
    turns();
    shutdown(pair.client.get(), SHUT_WR);
    while (!pair.outcome)
        loop.iterate();
    EXPECT_EQ(pair.outcome->kind, Outcome::Kind::fin_timeout);
}

TEST_F(PumpSocketsTest, BulkBothWaysThroughPools)
{
    PumpConfig config;
    for (LaneConfig *lane : {&config.up, &config.down}) {
        lane->buffers = &buffers;
        lane->pipes = &pipes;
    }
    Pair pair(loop, config);
    pair.start();
    std::string text = pattern(16 << 20), at_server, at_client;
    size_t up = 0, down = 0;
    while (at_server.size() < text.size() || at_client.size() < text.size()) {
        up += feed(pair.client, std::string_view(text).substr(up));
        down += feed(pair.server, std::string_view(text).substr(down));
        loop.iterate(false);
        at_server += take(pair.server);
        at_client += take(pair.client);
    }
    EXPECT_TRUE(at_server == text);
    EXPECT_TRUE(at_client == text);
    EXPECT_EQ(pair.pump->up().bytes(), text.size());
    turns();
    EXPECT_EQ(buffers.in_use_bytes(), 0u);
    pair.client.reset();
    pair.server.reset();
    turns();
    EXPECT_EQ(pair.ends, 1);
    EXPECT_EQ(pipes.refused(), 0u);
    EXPECT_LE(pipes.open(), 2u);
}

TEST_F(PumpSocketsTest, DescriptorsThatAreRefusedEndIt)
{
    PumpConfig config;
    config.up.descriptors = Descriptors::refuse;
    Pair pair(loop, config);
    pair.start();
    feed(pair.server, "last words");
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    ASSERT_EQ(sendmsg(pair.client.get(), &message, 0), 1);
    turns();
    ASSERT_EQ(pair.ends, 1);
    EXPECT_EQ(pair.outcome->kind, Outcome::Kind::failed);
    EXPECT_EQ(pair.outcome->error, EBADMSG);
    EXPECT_TRUE(pair.outcome->met_descriptors);
    EXPECT_EQ(take(pair.client), "last words");
    EXPECT_EQ(take(pair.server), "");
}

// What a connection that nobody uses costs: the pump, its watches, and their places.
TEST_F(PumpSocketsTest, AnIdleConnectionIsSmall)
{
    if (own_allocator)
        GTEST_SKIP() << "the allocator is not the system's";
    constexpr size_t count = 64;
    PumpConfig config;
    config.stuck_timeout = 30s;
    for (LaneConfig *lane : {&config.up, &config.down}) {
        lane->buffers = &buffers;
        lane->pipes = &pipes;
    }
    std::vector<std::unique_ptr<Pair>> pairs;
    pairs.reserve(count + 1);
    auto add = [&] {
        pairs.push_back(std::make_unique<Pair>(loop, config));
        pairs.back()->start();
        feed(pairs.back()->client, "some bytes");
        feed(pairs.back()->server, "and back");
        turns(3);
        EXPECT_EQ(take(pairs.back()->server), "some bytes");
        EXPECT_EQ(take(pairs.back()->client), "and back");
    };
    add();
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < count; ++i)
        add();
    struct mallinfo2 after = mallinfo2();
    size_t each = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / count;
    RecordProperty("bytes", static_cast<int>(each));
    EXPECT_LE(each, 2048u);
    EXPECT_LE(sizeof(Pump), 1024u);
}

} // namespace
} // namespace sluice::relay
