// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/lane.hpp"

#include <sys/mman.h>

#include <csignal>

#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

class LaneTest : public testing::Test {
protected:
    void SetUp() override { signal(SIGPIPE, SIG_IGN); }

    // Push `bytes` of the pattern through in pieces, checking them on arrival.
    static void pass(Lane &lane, const Channel &source, const Channel &sink, size_t bytes, size_t piece,
                     size_t from = 0)
    {
        std::string text = pattern(bytes, from), got;
        size_t sent = 0;
        for (int idle = 0; got.size() < bytes && idle < 1000; ++idle) {
            size_t fed = feed(source.far, std::string_view(text).substr(sent, piece));
            sent += fed;
            turn(lane);
            std::string arrived = take(sink.far);
            if (fed > 0 || !arrived.empty())
                idle = 0;
            got += arrived;
        }
        EXPECT_EQ(got.size(), bytes);
        EXPECT_TRUE(got == text) << "bytes lost, doubled or out of order";
    }
};

TEST_F(LaneTest, SmallMessagesAreCopied)
{
    Channel source = pipe_source(), sink = socket_pair();
    Lane lane(source.near, sink.near, {});
    pass(lane, source, sink, 10'000, 100);
    EXPECT_EQ(lane.mode(), Lane::Mode::copying);
    EXPECT_EQ(lane.bytes(), 10'000u);
    EXPECT_EQ(lane.held(), 0u);
}

TEST_F(LaneTest, BulkIsSplicedStraightAndSmallMessagesAreCopiedAgain)
{
    Channel source = pipe_source(), sink = socket_pair();
    Lane lane(source.near, sink.near, {});
    pass(lane, source, sink, 8 << 20, 64 << 10);
    EXPECT_EQ(lane.mode(), Lane::Mode::spliced);
    EXPECT_EQ(lane.main_mode(), Lane::Mode::spliced);
    pass(lane, source, sink, 2000, 50, 8 << 20);
    EXPECT_EQ(lane.mode(), Lane::Mode::copying);
}

TEST_F(LaneTest, BulkBetweenSocketsGoesThroughAPipe)
{
    Channel source = socket_pair(), sink = socket_pair();
    Lane lane(source.near, sink.near, {});
    pass(lane, source, sink, 8 << 20, 64 << 10);
    EXPECT_EQ(lane.main_mode(), Lane::Mode::piped);
}

TEST_F(LaneTest, NeverSplicesWhenTold)
{
    Channel source = pipe_source(), sink = pipe_sink();
    LaneConfig config;
    config.may_splice = false;
    config.held_max = 4096;
    Lane lane(source.near, sink.near, config);
    pass(lane, source, sink, 4 << 20, 64 << 10);
    EXPECT_EQ(lane.main_mode(), Lane::Mode::copying);
}

TEST_F(LaneTest, FilesAreCopied)
{
    Channel sink = pipe_sink();
    UniqueFd file(memfd_create("lane", MFD_CLOEXEC));
    std::string text = pattern(300'000);
    ASSERT_EQ(write(file.get(), text.data(), text.size()), 300'000);
    lseek(file.get(), 0, SEEK_SET);
    Endpoint source = adopt(file.release(), Endpoint::Use::read);
    Lane lane(source, sink.near, {});
    std::string got;
    for (int i = 0; i < 1000 && !lane.ended(); ++i) {
        turn(lane);
        got += take(sink.far);
    }
    got += take(sink.far);
    EXPECT_TRUE(got == text);
    EXPECT_EQ(lane.state(), Lane::State::finished);
    EXPECT_EQ(lane.mode(), Lane::Mode::copying);
}

TEST_F(LaneTest, HoldsNoMoreThanItsBoundAndSaysWhatItWaitsFor)
{
    for (bool may_splice : {false, true}) {
        Channel source = socket_pair(), sink = socket_pair();
        LaneConfig config;
        config.held_max = 64 << 10;
        config.may_splice = may_splice;
        Lane lane(source.near, sink.near, config);
        std::string text = pattern(8 << 20);
        size_t sent = 0;
        for (int i = 0; i < 200; ++i) {
            sent += feed(source.far, std::string_view(text).substr(sent));
            turn(lane);
            EXPECT_LE(lane.held(), config.held_max);
        }
        EXPECT_LT(sent, text.size()) << "back-pressure reaches the sender";
        EXPECT_TRUE(lane.wants_sink());
        std::string got;
        for (int i = 0; i < 5000 && got.size() < text.size(); ++i) {
            got += take(sink.far);
            turn(lane);
            sent += feed(source.far, std::string_view(text).substr(sent));
        }
        EXPECT_TRUE(got == text);
        turn(lane);
        EXPECT_TRUE(lane.wants_source());
        EXPECT_FALSE(lane.wants_sink());
    }
}

TEST_F(LaneTest, EndOfSourceComesAfterTheLastByte)
{
    Channel source = pipe_source(), sink = socket_pair();
    Lane lane(source.near, sink.near, {});
    feed(source.far, "last words");
    source.far.reset();
    while (!lane.ended())
        turn(lane);
    bool ended = false;
    EXPECT_EQ(take(sink.far, &ended), "last words");
    EXPECT_TRUE(ended);
    EXPECT_EQ(lane.state(), Lane::State::finished);
}

TEST_F(LaneTest, BrokenSinkIsAnErrorOnlyWhereThereWasSomethingToDeliver)
{
    for (bool bulk : {false, true}) {
        Channel source = socket_pair(), sink = pipe_sink();
        Lane lane(source.near, sink.near, {});
        if (bulk) {
            pass(lane, source, sink, 8 << 20, 64 << 10);
            ASSERT_EQ(lane.mode(), Lane::Mode::spliced);
        }
        sink.far.reset();
        turn(lane);
        EXPECT_EQ(lane.state(), Lane::State::flowing);
        source.far.reset();
        turn(lane);
        EXPECT_EQ(lane.state(), Lane::State::finished) << "nothing was lost";
    }
    Channel source = socket_pair(), sink = pipe_sink();
    Lane lane(source.near, sink.near, {});
    sink.far.reset();
    feed(source.far, "lost");
    turn(lane);
    EXPECT_EQ(lane.state(), Lane::State::failed);
    EXPECT_EQ(lane.error(), EPIPE);
    EXPECT_FALSE(lane.source_failed());
    EXPECT_EQ(lane.held(), 4u);
}

TEST_F(LaneTest, StopDeliversWhatIsHeld)
{
    Channel source = pipe_source(), sink = socket_pair();
    Lane lane(source.near, sink.near, {});
    lane.stop(false);
    EXPECT_EQ(lane.state(), Lane::State::finished);
    bool ended = false;
    take(sink.far, &ended);
    EXPECT_TRUE(ended);
}

TEST_F(LaneTest, AStoppedLaneDropsAPrefaceThatNobodyTakes)
{
    Channel source = own_socket_pair(), sink = own_socket_pair();
    LaneConfig config;
    config.preface = "hello";
    Lane lane(source.near, sink.near, config);
    lane.stop(true);
    EXPECT_EQ(lane.state(), Lane::State::finished);
}

TEST_F(LaneTest, PrefaceComesFirstAndIsCountedApart)
{
    for (bool with_data : {false, true}) {
        Channel source = own_socket_pair(), sink = own_socket_pair();
        LaneConfig config;
        config.preface = "PROXY header\r\n";
        Lane lane(source.near, sink.near, config);
        EXPECT_EQ(lane.preface_left(), config.preface.size());
        if (with_data)
            feed(source.far, "data");
        uint64_t before = lane.calls();
        turn(lane);
        EXPECT_EQ(take(sink.far), config.preface + (with_data ? "data" : ""));
        EXPECT_EQ(lane.calls() - before, 2u) << "a read and a write";
        EXPECT_EQ(lane.bytes(), with_data ? 4u : 0u);
        EXPECT_EQ(lane.preface_left(), 0u);
    }
}

TEST_F(LaneTest, PrefaceWaitsForASlowSink)
{
    Channel source = own_socket_pair(), sink = own_socket_pair();
    int small = 4096;
    setsockopt(sink.near.fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    LaneConfig config;
    config.preface = pattern(100'000);
    Lane lane(source.near, sink.near, config);
    feed(source.far, "and then");
    std::string got;
    for (int i = 0; i < 1000 && got.size() < 100'008; ++i) {
        turn(lane);
        if (got.size() < 50'000) {
            EXPECT_TRUE(lane.wants_sink());
            EXPECT_EQ(lane.waits_for(), Lane::Waits::sink);
        }
        got += take(sink.far);
    }
    EXPECT_TRUE(got == config.preface + "and then");
    EXPECT_EQ(lane.bytes(), 8u);
    shutdown(source.far.get(), SHUT_WR);
    turn(lane);
    EXPECT_EQ(lane.state(), Lane::State::finished);
}

TEST_F(LaneTest, SaysInAWordWhatItWaitsFor)
{
    Channel source = own_socket_pair(), sink = own_socket_pair();
    Lane lane(source.near, sink.near, {});
    turn(lane);
    EXPECT_EQ(lane.waits_for(), Lane::Waits::source);
    fill_up(sink.near);
    feed(source.far, "x");
    turn(lane);
    EXPECT_EQ(lane.waits_for(), Lane::Waits::sink);
    lane.stop(true);
    EXPECT_EQ(lane.waits_for(), Lane::Waits::nothing);
}

TEST_F(LaneTest, ATurnHasABound)
{
    Channel source = pipe_source(), sink = pipe_sink();
    fcntl(source.far.get(), F_SETPIPE_SZ, 1 << 20);
    fcntl(sink.far.get(), F_SETPIPE_SZ, 1 << 20);
    LaneConfig config;
    config.turn_max = 100'000;
    Lane lane(source.near, sink.near, config);
    std::string text = pattern(1 << 20);
    ASSERT_EQ(feed(source.far, text), text.size());
    turn(lane);
    EXPECT_GE(lane.bytes(), 100'000u);
    EXPECT_LT(lane.bytes(), 400'000u);
    EXPECT_TRUE(lane.wants_source());
    for (int i = 0; i < 100 && lane.bytes() < text.size(); ++i)
        turn(lane);
    EXPECT_TRUE(take(sink.far) == text);
}

// For a small connection nothing is asked of the kernel but to move its bytes.
TEST_F(LaneTest, WidensOnlyForBulk)
{
    Channel source = own_socket_pair(), sink = own_socket_pair();
    auto space = [&sink] {
        int bytes = 0;
        socklen_t size = sizeof bytes;
        getsockopt(sink.near.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, &size);
        return bytes;
    };
    int small = 8192;
    setsockopt(sink.near.fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    int before = space();
    Lane lane(source.near, sink.near, {});
    pass(lane, source, sink, 10'000, 100);
    EXPECT_EQ(space(), before);
    pass(lane, source, sink, 8 << 20, 128 << 10, 10'000);
    EXPECT_GT(space(), before);
}

} // namespace
} // namespace sluice::relay
