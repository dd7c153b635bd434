// SPDX-License-Identifier: LGPL-2.1-or-later

// What the two sides learn of each other, what goes along beside the bytes, and which
// upstream is taken (cases P3, P12 and P13).

#include <unistd.h>

#include "support/sluiced.hpp"

namespace sluice::test {
namespace {

class SluicedIdentity : public ::testing::Test {
protected:
    SluicedIdentity()
        : front_(Listener::unix_socket(folder_ / "front")), upstream_(Listener::unix_socket(folder_ / "up"))
    {
        signal(SIGPIPE, SIG_IGN);
    }

    // The daemon with one service, "front", that has these lines.
    Sluiced &serve(const std::string &lines, const Listener &front, const std::string &connect)
    {
        std::ofstream(folder_ / "sluiced.toml")
            << "[[service]]\nname = \"front\"\nlisten = \"systemd:front\"\nconnect = " << connect << "\n"
            << lines;
        daemon_ = std::make_unique<Sluiced>(std::vector<std::string>{"--config", folder_ / "sluiced.toml"});
        daemon_->command().pass(front.fd(), "front");
        EXPECT_TRUE(daemon_->start()) << daemon_->child().errors();
        return *daemon_;
    }
    static std::string quoted(const std::string &text) { return '"' + text + '"'; }

    static std::string receive(int fd, size_t bytes)
    {
        std::string text(bytes, '\0');
        ssize_t n = wait_for(fd, POLLIN) ? recv(fd, text.data(), bytes, MSG_WAITALL) : -1;
        text.resize(n > 0 ? size_t(n) : 0);
        return text;
    }
    static std::string receive_line(int fd)
    {
        std::string line;
        while (line.empty() || line.back() != '\n') {
            std::string byte = receive(fd, 1);
            if (byte.empty())
                break;
            line += byte;
        }
        return line;
    }
    static bool closed_without_a_byte(int fd)
    {
        char byte;
        return wait_for(fd, POLLIN) && recv(fd, &byte, 1, 0) <= 0;
    }

    static void send_with_descriptor(int socket, const char *text, int fd)
    {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        iovec part{const_cast<char *>(text), strlen(text)};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
        ASSERT_EQ(sendmsg(socket, &message, 0), ssize_t(strlen(text)));
    }
    TempDir folder_;
    Listener front_, upstream_;
    std::unique_ptr<Sluiced> daemon_;
};

TEST_F(SluicedIdentity, AVersion1HeaderTellsATcpClientsAddress)
{
    Listener front = Listener::tcp4();
    serve("send-proxy-protocol = \"v1\"\n", front, quoted(upstream_.address()));
    UniqueFd client = connect_client(front.address());
    sockaddr_in own{};
    socklen_t size = sizeof(own);
    ASSERT_EQ(getsockname(client.get(), reinterpret_cast<sockaddr *>(&own), &size), 0);
    ASSERT_EQ(send(client.get(), "hello", 5, 0), 5);
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    EXPECT_EQ(receive_line(server.get()), "PROXY TCP4 127.0.0.1 127.0.0.1 " + std::to_string(ntohs(own.sin_port)) +
                                              " " + std::to_string(front.port()) + "\r\n");
    EXPECT_EQ(receive(server.get(), 5), "hello");
}

TEST_F(SluicedIdentity, AVersion2HeaderTellsAUnixClientsUid)
{
    serve("send-proxy-protocol = \"v2\"\n", front_, quoted(upstream_.address()));
    UniqueFd client = connect_client(front_.address());
    ASSERT_EQ(send(client.get(), "hello", 5, 0), 5);
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    std::string head = receive(server.get(), 16);
    ASSERT_EQ(head.substr(0, 12), std::string("\r\n\r\n\0\r\nQUIT\n", 12));
    EXPECT_EQ(head[12], '\x21'); // version 2, PROXY
    EXPECT_EQ(head[13], '\x31'); // unix, stream
    size_t length = size_t(uint8_t(head[14])) << 8 | uint8_t(head[15]);
    std::string body = receive(server.get(), length);
    // two paths of 108 bytes, then the TLV: type, length, uid, gid, pid
    ASSERT_GE(body.size(), 216u + 3 + 12);
    std::string tlv = body.substr(216);
    EXPECT_EQ(uint8_t(tlv[0]), 0xE5);
    uint32_t uid;
    memcpy(&uid, tlv.data() + 3, sizeof(uid));
    EXPECT_EQ(ntohl(uid), getuid());
    EXPECT_EQ(receive(server.get(), 5), "hello");
}

TEST_F(SluicedIdentity, AHeaderFromATrustedPeerIsTakenOffAndPassedOn)
{
    serve("accept-proxy-protocol-from = [\"uid:" + std::to_string(getuid()) + "\"]\nsend-proxy-protocol = \"v1\"\n",
          front_, quoted(upstream_.address()));
    UniqueFd client = connect_client(front_.address());
    const std::string header = "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n";
    // in two pieces, and the first bytes of the stream with the second
    ASSERT_EQ(send(client.get(), header.data(), 10, 0), 10);
    const std::string rest = header.substr(10) + "hello";
    ASSERT_EQ(send(client.get(), rest.data(), rest.size(), 0), ssize_t(rest.size()));
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    EXPECT_EQ(receive_line(server.get()), header);
    EXPECT_EQ(receive(server.get(), 5), "hello");
}

TEST_F(SluicedIdentity, WhatIsNoHeaderIsTurnedAway)
{
    serve("accept-proxy-protocol-from = [\"uid:" + std::to_string(getuid()) + "\"]\n", front_,
          quoted(upstream_.address()));
    UniqueFd client = connect_client(front_.address());
    ASSERT_EQ(send(client.get(), "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    EXPECT_TRUE(closed_without_a_byte(client.get()));
    EXPECT_FALSE(wait_for(upstream_.fd(), POLLIN, Deadline{0}));
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find("(proxy-header)") != std::string::npos; }));
}

TEST_F(SluicedIdentity, DescriptorsGoAlongAtTheirPlace)
{
    serve("pass-fds = \"pass\"\n", front_, quoted(upstream_.address()));
    UniqueFd client = connect_client(front_.address());
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    Ends pipe = make_pipe();
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(send(client.get(), "before", 6, 0), 6);
        send_with_descriptor(client.get(), "with", pipe.second.get());
        ASSERT_EQ(send(client.get(), "after", 5, 0), 5);
    }
    size_t descriptors = 0, bytes = 0;
    while (bytes < 50 * 15) {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
        char text[1000];
        iovec part{text, sizeof(text)};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        ASSERT_TRUE(wait_for(server.get(), POLLIN));
        ssize_t n = recvmsg(server.get(), &message, MSG_CMSG_CLOEXEC);
        ASSERT_GT(n, 0);
        bytes += size_t(n);
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (!header)
            continue;
        int fd;
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        UniqueFd received{fd};
        ++descriptors;
        // not before its place: all the bytes up to it are there by now
        EXPECT_GE(bytes, (descriptors - 1) * 15 + 7);
        ASSERT_EQ(write(received.get(), "x", 1), 1);
    }
    EXPECT_EQ(descriptors, 50u);
    std::string through(50, '\0');
    EXPECT_EQ(read(pipe.first.get(), through.data(), 50), 50) << "they are the same file";
}

TEST_F(SluicedIdentity, DescriptorsThatAreNotPassedOnAreRefusedWithAReason)
{
    serve("", front_, quoted(upstream_.address()));
    UniqueFd client = connect_client(front_.address());
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    Ends pipe = make_pipe();
    send_with_descriptor(client.get(), "with", pipe.second.get());
    EXPECT_TRUE(closed_without_a_byte(server.get()));
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find("pass-fds") != std::string::npos; }));
}

TEST_F(SluicedIdentity, ADeadUpstreamIsPassedOverAndSeveralTakeTurns)
{
    Listener second = Listener::unix_socket(folder_ / "second");
    serve("balance = \"round-robin\"\n", front_,
          "[" + quoted(folder_ / "nobody") + ", " + quoted(upstream_.address()) + ", " + quoted(second.address()) +
              "]");
    int first_count = 0, second_count = 0;
    for (int i = 0; i < 12; ++i) {
        UniqueFd client = connect_client(front_.address());
        ASSERT_EQ(send(client.get(), "x", 1, 0), 1);
        UniqueFd server;
        ASSERT_TRUE(eventually([&] {
            if (wait_for(upstream_.fd(), POLLIN, Deadline{0})) {
                ++first_count;
                server = upstream_.accept();
            } else if (wait_for(second.fd(), POLLIN, Deadline{0})) {
                ++second_count;
                server = second.accept();
            }
            return bool(server);
        }));
        EXPECT_EQ(receive(server.get(), 1), "x");
    }
    EXPECT_GE(first_count, 4);
    EXPECT_GE(second_count, 4);
    const std::string errors = daemon_->child().errors();
    const size_t at = errors.find("nobody");
    EXPECT_NE(at, std::string::npos) << errors;
    EXPECT_EQ(errors.find("nobody", errors.find('\n', at)), std::string::npos) << "said once: " << errors;
}

TEST_F(SluicedIdentity, AddressesInBracketsAndNamesWithADeadAddress)
{
    Listener v6 = Listener::tcp6();
    for (const std::string &connect :
         {"tcp:[::1]:" + std::to_string(v6.port()), "[::1]:" + std::to_string(v6.port())}) {
        daemon_ = std::make_unique<Sluiced>(std::vector<std::string>{connect});
        daemon_->command().pass(front_.fd(), "front");
        ASSERT_TRUE(daemon_->start()) << daemon_->child().errors();
        UniqueFd client = connect_client(front_.address());
        UniqueFd server = v6.accept();
        ASSERT_TRUE(server) << connect;
        EXPECT_EQ(send(client.get(), "six", 3, 0), 3);
        EXPECT_EQ(receive(server.get(), 3), "six");
        ASSERT_TRUE(client);
        client.reset();
        server.reset();
        ASSERT_TRUE(daemon_->stop());
    }
}

} // namespace
} // namespace sluice::test
