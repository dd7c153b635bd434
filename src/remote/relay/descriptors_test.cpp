// SPDX-License-Identifier: LGPL-2.1-or-later

// Case P12: descriptors that come along with the bytes.

#include "remote/relay/descriptors.hpp"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <random>
#include <vector>

#include "remote/relay/relay_fixture.hpp"

namespace sluice::relay {
namespace {

// A file that can be told from others.
struct Token {
    Token()
    {
        int fds[2];
        EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
        read.reset(fds[0]);
        write.reset(fds[1]);
    }
    bool is(int fd) const
    {
        struct stat ours, theirs;
        return fstat(write.get(), &ours) == 0 && fstat(fd, &theirs) == 0 && ours.st_ino == theirs.st_ino;
    }
    // Nobody but us has it any more.
    bool alone()
    {
        write.reset();
        char byte;
        return ::read(read.get(), &byte, 1) == 0;
    }
    UniqueFd read, write;
};

ssize_t send_with(int socket, std::string_view text, const std::vector<int> &fds)
{
    iovec part{const_cast<char *>(text.data()), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr *item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(item), fds.data(), fds.size() * sizeof(int));
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

struct Received {
    std::string text;
    std::vector<UniqueFd> fds;
};

Received receive(int socket, size_t limit = 65536)
{
    std::string text(limit, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    Received got{text.substr(0, static_cast<size_t>(std::max<ssize_t>(n, 0))), {}};
    if (n <= 0)
        return got;
    for (cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        for (size_t i = 0; i < (item->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
            got.fds.emplace_back(fd);
        }
    }
    return got;
}

class DescriptorsTest : public testing::Test {
protected:
    void SetUp() override { signal(SIGPIPE, SIG_IGN); }
    static LaneConfig config(Descriptors what)
    {
        LaneConfig config;
        config.descriptors = what;
        return config;
    }
    Channel source = own_socket_pair(), sink = own_socket_pair();
    Token token, other;
};

TEST_F(DescriptorsTest, IgnoredOnesAreLostUnseen)
{
    Lane lane(source.near, sink.near, config(Descriptors::ignore));
    send_with(source.far.get(), "text", {token.write.get()});
    turn(lane);
    EXPECT_EQ(take(sink.far), "text");
    EXPECT_EQ(lane.state(), Lane::State::flowing);
    EXPECT_FALSE(lane.met_descriptors());
    EXPECT_TRUE(token.alone());
}

TEST_F(DescriptorsTest, WhereTheyAreNotWantedTheyAreAnError)
{
    for (auto what : {Descriptors::detect, Descriptors::refuse}) {
        Channel from = own_socket_pair(), to = own_socket_pair();
        Lane lane(from.near, to.near, config(what));
        feed(from.far, "before");
        turn(lane);
        EXPECT_EQ(take(to.far), "before");
        EXPECT_FALSE(lane.met_descriptors());
        Token one;
        send_with(from.far.get(), "with", {one.write.get(), one.read.get()});
        turn(lane);
        EXPECT_EQ(lane.state(), Lane::State::failed);
        EXPECT_EQ(lane.error(), EBADMSG);
        EXPECT_TRUE(lane.source_failed());
        EXPECT_TRUE(lane.met_descriptors());
        EXPECT_EQ(take(to.far), "");
        EXPECT_TRUE(one.alone());
    }
}

// More than there is room for in the look.
TEST_F(DescriptorsTest, ManyAtOnceAreAllClosed)
{
    Lane lane(source.near, sink.near, config(Descriptors::detect));
    std::vector<int> many(253, token.write.get());
    ASSERT_EQ(send_with(source.far.get(), "with", many), 4);
    turn(lane);
    EXPECT_TRUE(lane.met_descriptors());
    EXPECT_TRUE(token.alone());
}

TEST_F(DescriptorsTest, CredentialsAreNotTakenForThem)
{
    int on = 1;
    setsockopt(source.near.fd(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    Lane lane(source.near, sink.near, config(Descriptors::detect));
    feed(source.far, "with credentials");
    turn(lane);
    EXPECT_FALSE(lane.met_descriptors());
    EXPECT_EQ(take(sink.far), "with credentials");
}

TEST_F(DescriptorsTest, OnlyDetectionSplices)
{
    for (auto what : {Descriptors::detect, Descriptors::refuse, Descriptors::pass}) {
        Channel from = own_socket_pair(), to = own_socket_pair();
        Lane lane(from.near, to.near, config(what));
        std::string text = pattern(2 << 20), got;
        size_t sent = 0;
        while (got.size() < text.size()) {
            sent += feed(from.far, std::string_view(text).substr(sent, 64 << 10));
            turn(lane);
            got += take(to.far);
        }
        EXPECT_TRUE(got == text);
        EXPECT_EQ(lane.main_mode() == Lane::Mode::copying, what != Descriptors::detect);
    }
}

// A reader that does not ask for descriptors must be able to read up to them, and not
// lose those of the next message.
TEST_F(DescriptorsTest, PassedOnesStayAtTheirByte)
{
    Lane lane(source.near, sink.near, config(Descriptors::pass));
    std::string before = pattern(12'345), after = pattern(777, 9);
    feed(source.far, before);
    send_with(source.far.get(), "M", {token.write.get()});
    feed(source.far, after);
    send_with(source.far.get(), "N", {other.write.get(), token.write.get()});
    feed(source.far, "end");
    while (turn(lane)) {
    }
    EXPECT_EQ(take(sink.far, nullptr, before.size()), before);
    Received first = receive(sink.far.get(), 1);
    EXPECT_EQ(first.text, "M");
    ASSERT_EQ(first.fds.size(), 1u);
    EXPECT_TRUE(token.is(first.fds[0].get()));
    EXPECT_TRUE(fcntl(first.fds[0].get(), F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(take(sink.far, nullptr, after.size()), after);
    Received second = receive(sink.far.get());
    EXPECT_EQ(second.text.substr(0, 1), "N");
    ASSERT_EQ(second.fds.size(), 2u);
    EXPECT_TRUE(other.is(second.fds[0].get()));
    EXPECT_TRUE(token.is(second.fds[1].get()));
    EXPECT_EQ(second.text + take(sink.far), "Nend");
    first.fds.clear();
    second.fds.clear();
    EXPECT_TRUE(other.alone()) << "no copy is left behind";
    EXPECT_EQ(lane.bytes(), before.size() + after.size() + 5);
}

// Whatever the sizes of messages, against rings that hold less than some of them.
TEST_F(DescriptorsTest, PassedOnesStayAtTheirByteInAnyMix)
{
    std::mt19937 random(12);
    for (int round = 0; round < 30; ++round) {
        Channel from = own_socket_pair(), to = own_socket_pair();
        LaneConfig with = config(Descriptors::pass);
        with.held_max = 4096;
        Lane lane(from.near, to.near, with);
        struct Message {
            std::string text;
            bool has_token;
        };
        std::vector<Message> sent;
        for (int i = 0; i < 40; ++i) {
            size_t size = random() % 3 == 0 ? 1 : 1 + random() % 9000;
            Message one{pattern(size, random()), random() % 2 == 0};
            if (!one.has_token && feed(from.far, one.text) != size)
                break;
            if (one.has_token && send_with(from.far.get(), one.text, {token.write.get()}) != static_cast<ssize_t>(size))
                break;
            sent.push_back(one);
        }
        ASSERT_GT(sent.size(), 5u);
        // reads each message as a reader does that knows its size, and asks for descriptors
        // with the first byte of those that have some
        for (const Message &one : sent) {
            std::string got;
            for (int idle = 0; got.size() < one.text.size() && idle < 100; ++idle) {
                turn(lane);
                if (got.empty() && one.has_token) {
                    Received first = receive(to.far.get(), 1);
                    if (first.text.empty())
                        continue;
                    ASSERT_EQ(first.fds.size(), 1u) << "of message " << &one - sent.data();
                    ASSERT_TRUE(token.is(first.fds[0].get()));
                    got = first.text;
                }
                std::string more = take(to.far, nullptr, one.text.size() - got.size());
                idle = more.empty() ? idle : 0;
                got += more;
            }
            ASSERT_TRUE(got == one.text) << "message " << &one - sent.data();
        }
        turn(lane);
        EXPECT_EQ(lane.held(), 0u);
    }
}

TEST_F(DescriptorsTest, PassedWithAPrefaceAndThroughASlowSink)
{
    LaneConfig with = config(Descriptors::pass);
    with.preface = "preface";
    Lane lane(source.near, sink.near, with);
    size_t old = fill_up(sink.near);
    send_with(source.far.get(), "M", {token.write.get()});
    turn(lane);
    EXPECT_EQ(lane.waits_for(), Lane::Waits::sink);
    EXPECT_EQ(take(sink.far, nullptr, old).size(), old);
    while (turn(lane)) {
    }
    EXPECT_EQ(take(sink.far, nullptr, 7), "preface");
    Received got = receive(sink.far.get());
    EXPECT_EQ(got.text, "M");
    ASSERT_EQ(got.fds.size(), 1u);
    EXPECT_TRUE(token.is(got.fds[0].get()));
}

TEST_F(DescriptorsTest, SoManyAndNoMoreAreHeld)
{
    std::vector<Token> tokens(1);
    Lane lane(source.near, sink.near, config(Descriptors::pass));
    size_t old = fill_up(sink.near);
    size_t sent = 0;
    while (sent < 10 * DescriptorQueue::held_max && send_with(source.far.get(), "m", {token.write.get()}) == 1) {
        ++sent;
        turn(lane);
        EXPECT_LE(lane.held(), DescriptorQueue::held_max);
    }
    EXPECT_EQ(lane.held(), DescriptorQueue::held_max);
    EXPECT_FALSE(lane.wants_source());
    EXPECT_TRUE(lane.wants_sink());
    EXPECT_EQ(take(sink.far, nullptr, old).size(), old);
    size_t got = 0;
    for (int i = 0; i < 10'000 && got < sent; ++i) {
        turn(lane);
        for (Received one = receive(sink.far.get()); !one.text.empty(); one = receive(sink.far.get())) {
            EXPECT_EQ(one.fds.size(), one.text.size());
            got += one.fds.size();
        }
    }
    EXPECT_EQ(got, sent);
    EXPECT_TRUE(token.alone());
}

TEST_F(DescriptorsTest, ThoseUnderWayAreClosedWithTheLane)
{
    {
        Lane lane(source.near, sink.near, config(Descriptors::pass));
        fill_up(sink.near);
        send_with(source.far.get(), "M", {token.write.get()});
        turn(lane);
        EXPECT_EQ(lane.held(), 1u);
    }
    EXPECT_TRUE(token.alone());
}

TEST_F(DescriptorsTest, ToWhatIsNoUnixSocketTheyCannotGo)
{
    UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), client;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr *>(&at), size), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    getsockname(listener.get(), reinterpret_cast<sockaddr *>(&at), &size);
    client.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr *>(&at), size), 0);
    fcntl(client.get(), F_SETFL, O_NONBLOCK);
    Endpoint tcp = Endpoint::socket(std::move(client), "tcp");

    Lane lane(source.near, tcp, config(Descriptors::pass));
    send_with(source.far.get(), "M", {token.write.get()});
    turn(lane);
    EXPECT_EQ(lane.state(), Lane::State::failed);
    EXPECT_EQ(lane.error(), EBADMSG);
    EXPECT_FALSE(lane.source_failed());
    EXPECT_TRUE(lane.met_descriptors());
}

TEST_F(DescriptorsTest, NoRoomForThemIsAnErrorAndNotSilence)
{
    pid_t child = fork();
    if (child == 0) {
        Lane lane(source.near, sink.near, config(Descriptors::pass));
        send_with(source.far.get(), "M", std::vector<int>(100, token.write.get()));
        rlimit few{static_cast<rlim_t>(dup(0)) + 10, 1024};
        setrlimit(RLIMIT_NOFILE, &few);
        turn(lane);
        _exit(lane.state() == Lane::State::failed && lane.error() == EMFILE ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace sluice::relay
