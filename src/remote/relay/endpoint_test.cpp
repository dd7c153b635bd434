// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

ssize_t read_some(Endpoint &end)
{
    char bytes[16];
    iovec part{bytes, sizeof bytes};
    return end.read(&part, 1);
}

TEST(Endpoint, PipesDoNotBlockAndTheSharedDescriptionIsLeftAlone)
{
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    UniqueFd others(dup(fds[0])), writer(fds[1]);
    Endpoint end = adopt(fds[0], Endpoint::Use::read);
    EXPECT_EQ(end.kind(), Endpoint::Kind::pipe);
    EXPECT_EQ(end.fd(), fds[0]) << "the number stays";
    EXPECT_EQ(read_some(end), -EAGAIN);
    EXPECT_FALSE(fcntl(others.get(), F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(write(writer.get(), "abc", 3), 3);
    EXPECT_EQ(read_some(end), 3);
}

TEST(Endpoint, SocketsDoNotBlockAndTheirFlagsStay)
{
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    UniqueFd others(dup(fds[0])), peer(fds[1]);
    Endpoint end = adopt(fds[0], Endpoint::Use::both);
    EXPECT_EQ(read_some(end), -EAGAIN);
    EXPECT_FALSE(fcntl(others.get(), F_GETFL) & O_NONBLOCK);
    EXPECT_FALSE(end.can_splice_to()) << "splice has no MSG_DONTWAIT";
    EXPECT_TRUE(end.can_splice_from());
    EXPECT_TRUE(socket_pair().near.can_splice_to());
}

TEST(Endpoint, ASocketOfOurOwnIsTakenAsItIs)
{
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    UniqueFd peer(fds[1]);
    Endpoint end = Endpoint::socket(UniqueFd(fds[0]), "upstream");
    EXPECT_EQ(end.fd(), fds[0]);
    EXPECT_EQ(end.kind(), Endpoint::Kind::socket);
    EXPECT_EQ(end.name(), "upstream");
    EXPECT_TRUE(end.can_splice_to());
    EXPECT_TRUE(end.can_splice_from());
    EXPECT_EQ(read_some(end), -EAGAIN);
    EXPECT_EQ(end.waiting(), 0u);
    feed(peer, "some");
    EXPECT_EQ(end.waiting(), 4u);
    EXPECT_EQ(read_some(end), 4);
    EXPECT_LE(sizeof(Endpoint), 32u);
    end.close();
    bool ended = false;
    take(peer, &ended);
    EXPECT_TRUE(ended);
}

TEST(Endpoint, FinishWritingPassesTheEndOn)
{
    bool ended = false;
    Channel pipe = pipe_sink();
    pipe.near.finish_writing();
    EXPECT_FALSE(pipe.near.is_open());
    EXPECT_EQ(take(pipe.far, &ended), "");
    EXPECT_TRUE(ended);

    ended = false;
    Channel socket = socket_pair();
    socket.near.finish_writing();
    EXPECT_EQ(take(socket.far, &ended), "");
    EXPECT_TRUE(ended);
    EXPECT_EQ(feed(socket.far, "still"), 5u);
    EXPECT_EQ(read_some(socket.near), 5) << "half-closed, no more";
}

TEST(Endpoint, TellsWhetherThePeerHasEnded)
{
    Channel pipe = pipe_source();
    feed(pipe.far, "rest");
    EXPECT_FALSE(pipe.near.ended_by_peer());
    pipe.far.reset();
    EXPECT_TRUE(pipe.near.ended_by_peer()) << "though something is left to read";
    Channel socket = socket_pair();
    EXPECT_FALSE(socket.near.ended_by_peer());
    shutdown(socket.far.get(), SHUT_WR);
    EXPECT_TRUE(socket.near.ended_by_peer());
}

TEST(Endpoint, WidensPipesAndNeverNarrowsThem)
{
    Channel pipe = pipe_sink();
    pipe.near.widen(256 << 10);
    EXPECT_EQ(fcntl(pipe.far.get(), F_GETPIPE_SZ), 256 << 10);
    pipe.near.widen(64 << 10);
    EXPECT_EQ(fcntl(pipe.far.get(), F_GETPIPE_SZ), 256 << 10);
}

TEST(Endpoint, ClosedDescriptorIsAnError)
{
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    close(fds[0]);
    close(fds[1]);
    auto end = Endpoint::adopt(UniqueFd(fds[0]), Endpoint::Use::read, "standard input");
    ASSERT_FALSE(end.has_value());
    EXPECT_EQ(end.error().code, EBADF);
    EXPECT_NE(end.error().message.find("standard input"), std::string::npos);
}

} // namespace
} // namespace sluice::relay
