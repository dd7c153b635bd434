// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/buffer_pool.hpp"

#include <optional>
#include <string>

#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

constexpr size_t buffer_bytes = 64 << 10;

class Client : public BufferPool::Waiter {
public:
    Client(BufferPool &pool, std::string &log, char name) : pool_(pool), log_(log), name_(name) {}
    ~Client() override { leave(); }
    void ask()
    {
        ring = pool_.take();
        if (!ring)
            pool_.queue(*this);
    }
    void done()
    {
        EXPECT_TRUE(ring);
        if (ring)
            pool_.give_back(std::move(ring));
    }
    std::unique_ptr<Ring> ring;
    bool takes = true;

private:
    void buffer_free() override
    {
        log_ += name_;
        if (takes)
            ask();
    }
    BufferPool &pool_;
    std::string &log_;
    char name_;
};

class BufferPoolTest : public testing::Test {
protected:
    void turns(int count = 5)
    {
        for (int i = 0; i < count; ++i)
            loop.iterate(false);
    }
    Loop loop;
    std::string log;
};

TEST_F(BufferPoolTest, LastInFirstOutAndKeepsAFew)
{
    BufferPool pool(loop, buffer_bytes, 1);
    auto one = pool.take(), two = pool.take();
    EXPECT_EQ(pool.in_use_bytes(), 2 * buffer_bytes);
    one->produced(100); // whatever is left in it
    void *place = one->space(1).parts[0].iov_base;
    pool.give_back(std::move(one));
    pool.give_back(std::move(two)); // one too many to be kept
    EXPECT_EQ(pool.in_use_bytes(), 0u);
    auto again = pool.take();
    EXPECT_TRUE(again->empty());
    EXPECT_EQ(static_cast<char *>(again->space(1).parts[0].iov_base) + 100, static_cast<char *>(place));
    pool.give_back(std::move(again));
    EXPECT_EQ(loop.stats().timeouts, 0u) << "nobody has had to wait";
}

TEST_F(BufferPoolTest, AlwaysRoomForOne)
{
    BufferPool pool(loop, buffer_bytes, 1, 1);
    auto ring = pool.take();
    EXPECT_TRUE(ring);
    EXPECT_FALSE(pool.take());
    pool.give_back(std::move(ring));
}

TEST_F(BufferPoolTest, ThoseWhoWaitAreServedInTurnAndFromTheLoop)
{
    BufferPool pool(loop, buffer_bytes, 4, 2 * buffer_bytes);
    Client a(pool, log, 'a'), b(pool, log, 'b'), c(pool, log, 'c'), d(pool, log, 'd');
    for (Client *one : {&a, &b, &c, &d})
        one->ask();
    EXPECT_TRUE(a.ring && b.ring);
    EXPECT_TRUE(c.waiting() && d.waiting());
    turns();
    EXPECT_EQ(log, "") << "nothing is free";
    a.done();
    EXPECT_EQ(log, "") << "not under somebody else's call";
    a.ask(); // comes after those who were there before
    EXPECT_FALSE(a.ring);
    turns();
    EXPECT_EQ(log, "c");
    b.done();
    c.done();
    turns();
    EXPECT_EQ(log, "cda");
    EXPECT_EQ(pool.in_use_bytes(), 2 * buffer_bytes);
    a.done();
    d.done();
    turns();
    EXPECT_EQ(log, "cda");
    EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST_F(BufferPoolTest, NoWakeUpIsLostWithOneWhoLeavesOrDoesNotTakeIt)
{
    BufferPool pool(loop, buffer_bytes, 4, buffer_bytes);
    Client a(pool, log, 'a'), d(pool, log, 'd');
    std::optional<Client> b(std::in_place, pool, log, 'b'), c(std::in_place, pool, log, 'c');
    for (Client *one : {&a, &*b, &*c, &d})
        one->ask();
    c->takes = false;
    a.done();
    b.reset();
    turns();
    EXPECT_EQ(log, "cd");
    EXPECT_TRUE(d.ring);
    d.done();
    // the last one leaves after it was promised one
    a.ask();
    b.emplace(pool, log, 'b');
    b->ask();
    a.done();
    b.reset();
    turns();
    a.ask();
    EXPECT_TRUE(a.ring);
    a.done();
}

TEST_F(BufferPoolTest, WaitingCostsNothing)
{
    BufferPool pool(loop, buffer_bytes, 4, buffer_bytes);
    Client a(pool, log, 'a'), b(pool, log, 'b');
    a.ask();
    b.ask();
    turns();
    uint64_t before = loop.stats().expirations;
    turns(100);
    EXPECT_EQ(loop.stats().expirations, before);
    a.done();
    turns();
    b.done();
    turns();
    before = loop.stats().expirations;
    turns(100);
    EXPECT_EQ(loop.stats().expirations, before);
}

// --- lanes -------------------------------------------------------------------------------

TEST_F(BufferPoolTest, ALaneHasABufferOnlyWhileBytesWait)
{
    BufferPool pool(loop, buffer_bytes, 4);
    Channel source = own_socket_pair(), sink = own_socket_pair();
    LaneConfig config;
    config.buffers = &pool;
    {
        Lane lane(source.near, sink.near, config);
        feed(source.far, "through");
        turn(lane);
        EXPECT_EQ(take(sink.far), "through");
        EXPECT_EQ(pool.in_use_bytes(), 0u);
        fill_up(sink.near);
        feed(source.far, "stays");
        turn(lane);
        EXPECT_EQ(lane.held(), 5u);
        EXPECT_EQ(pool.in_use_bytes(), buffer_bytes);
        take(sink.far);
        turn(lane);
        EXPECT_EQ(take(sink.far), "stays");
        EXPECT_EQ(pool.in_use_bytes(), 0u);
        fill_up(sink.near);
        feed(source.far, "lost with the lane");
        turn(lane);
        EXPECT_EQ(pool.in_use_bytes(), buffer_bytes);
    }
    EXPECT_EQ(pool.in_use_bytes(), 0u);
}

struct Runs final : LaneOwner {
    Lane *lane = nullptr;
    int woken = 0;
    void lane_woken() override
    {
        ++woken;
        lane->run();
    }
};

TEST_F(BufferPoolTest, ALaneWaitsForMemory)
{
    BufferPool pool(loop, buffer_bytes, 4, buffer_bytes);
    Channel source_a = own_socket_pair(), sink_a = own_socket_pair();
    Channel source_b = own_socket_pair(), sink_b = own_socket_pair();
    LaneConfig config;
    config.buffers = &pool;
    Runs owner_a, owner_b;
    Lane a(source_a.near, sink_a.near, config, &owner_a);
    std::optional<Lane> b(std::in_place, source_b.near, sink_b.near, config, &owner_b);
    owner_a.lane = &a;
    owner_b.lane = &*b;

    fill_up(sink_a.near);
    feed(source_a.far, "a");
    turn(a);
    feed(source_b.far, "b");
    EXPECT_FALSE(turn(*b));
    EXPECT_EQ(b->waits_for(), Lane::Waits::memory);
    EXPECT_FALSE(b->wants_source()) << "or it would spin";
    EXPECT_FALSE(turn(*b)) << "and asking again changes nothing";
    turns();
    EXPECT_EQ(owner_b.woken, 0);

    take(sink_a.far);
    turn(a);
    EXPECT_EQ(owner_b.woken, 0) << "not under the other's call";
    turns();
    EXPECT_EQ(owner_b.woken, 1);
    EXPECT_EQ(take(sink_b.far), "b");
    EXPECT_EQ(b->waits_for(), Lane::Waits::source);

    // one that ends while it waits is not called
    fill_up(sink_a.near);
    feed(source_a.far, "a");
    turn(a);
    feed(source_b.far, "b");
    turn(*b);
    b->stop(false);
    EXPECT_EQ(b->state(), Lane::State::finished);
    take(sink_a.far);
    turn(a);
    turns();
    EXPECT_EQ(owner_b.woken, 1);

    b.emplace(source_b.near, sink_b.near, config, &owner_b);
    fill_up(sink_a.near);
    feed(source_a.far, "a");
    turn(a);
    turn(*b);
    EXPECT_EQ(b->waits_for(), Lane::Waits::memory);
    b.reset();
    take(sink_a.far);
    turn(a);
    turns();
    EXPECT_EQ(owner_b.woken, 1);
    EXPECT_EQ(pool.in_use_bytes(), 0u);
}

} // namespace
} // namespace sluice::relay
