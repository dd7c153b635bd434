// SPDX-License-Identifier: LGPL-2.1-or-later
// The PROXY protocol against the program it comes from: HAProxy reads what we write and
// writes what we read. Its sockets are made here and handed to it, so that there is no
// port to be chosen and no start to be waited for.

#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>

#include <gtest/gtest.h>

#include "util/net/proxy_protocol.hpp"
#include "util/net/proxy_test_support.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

constexpr int patience_ms = 60'000;
constexpr int haproxy_fd = 10; // the number that its listening socket gets

std::string text_of(const std::string &path)
{
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class HaproxyTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (*HAPROXY == '\0')
            GTEST_SKIP() << "haproxy is not installed";
        upstream = make_socket(dir / "up", 50);
    }

    void TearDown() override
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        if (HasFailure())
            std::cerr << text_of(dir / "log");
    }

    // HAProxy between a socket at `from` and our upstream.
    void start(const SocketAddress &from, const std::string &bind_options, const std::string &server_options)
    {
        UniqueFd listener(socket(from.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(bind(listener.get(), from.get(), from.size), 0);
        ASSERT_EQ(listen(listener.get(), 50), 0);
        front = local_address(listener.get());
        std::ofstream(dir / "cfg") << "defaults\n mode tcp\n timeout connect 30s\n timeout client 30s\n"
                                      " timeout server 30s\nlisten test\n bind fd@"
                                   << haproxy_fd << " " << bind_options << "\n server up unix@" << dir / "up"
                                   << " " << server_options << "\n";
        std::string config = dir / "cfg", log = dir / "log";
        pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int out = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            dup2(out, 1);
            dup2(out, 2);
            dup2(listener.get(), haproxy_fd);
            if (listener.get() == haproxy_fd)
                fcntl(haproxy_fd, F_SETFD, 0);
            execl(HAPROXY, "haproxy", "-db", "-f", config.c_str(), nullptr);
            _exit(127);
        }
    }

    // The next connection that reaches our upstream.
    UniqueFd arrival()
    {
        pollfd ready{upstream.get(), POLLIN, 0};
        if (poll(&ready, 1, patience_ms) != 1)
            throw std::runtime_error("nothing came through haproxy");
        return UniqueFd(accept4(upstream.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }

    // Takes the header off the connection, and nothing else.
    ProxyHeader header_of(const UniqueFd &connection)
    {
        ProxyHeaderReader reader;
        while (!reader.done()) {
            char bytes[ProxyHeaderReader::peek_bytes];
            ssize_t peeked = recv(connection.get(), bytes, sizeof bytes, MSG_PEEK);
            if (peeked <= 0)
                throw std::runtime_error("haproxy closed in the middle of its header");
            auto taken = reader.feed({bytes, static_cast<size_t>(peeked)});
            if (!taken)
                throw std::runtime_error(taken.error().message);
            EXPECT_EQ(recv(connection.get(), bytes, *taken, MSG_WAITALL), static_cast<ssize_t>(*taken));
        }
        return reader.header();
    }

    std::string read_bytes(const UniqueFd &connection, size_t count)
    {
        std::string bytes(count, '\0');
        ssize_t got = recv(connection.get(), bytes.data(), count, MSG_WAITALL);
        bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
        return bytes;
    }

    void send_text(const UniqueFd &connection, const std::string &text)
    {
        EXPECT_EQ(send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    }

    // Sends `header` to a HAProxy that expects one, and reads what it has understood: it
    // passes that on in words.
    std::string understood(const std::string &header)
    {
        UniqueFd client = dial(front);
        send_text(client, header + "hello");
        ours = to_string(local_address(client.get()));
        UniqueFd connection = arrival();
        std::string line;
        while (!line.ends_with("\n")) {
            std::string byte = read_bytes(connection, 1);
            if (byte.empty())
                throw std::runtime_error("haproxy closed after " + line);
            line += byte;
        }
        EXPECT_EQ(read_bytes(connection, 5), "hello");
        return line;
    }

    TestDir dir;
    UniqueFd upstream;
    SocketAddress front;
    std::string ours; // the address of the last client
    pid_t pid = -1;
};

TEST_F(HaproxyTest, WeReadWhatItSends)
{
    struct Case {
        const char *host, *options;
        int version;
        size_t tlvs;
    };
    for (const Case &each : {Case{"127.0.0.1", "send-proxy", 1, 0},
                             {"::1", "send-proxy", 1, 0},
                             {"127.0.0.1", "send-proxy-v2", 2, 0},
                             {"::1", "send-proxy-v2", 2, 0},
                             {"127.0.0.1", "send-proxy-v2 proxy-v2-options crc32c", 2, 1},
                             {"::1", "send-proxy-v2 proxy-v2-options crc32c", 2, 1}}) {
        SCOPED_TRACE(std::string(each.host) + " " + each.options);
        start(inet_address(each.host, 0), "", each.options);
        UniqueFd client = dial(front);
        send_text(client, "hello");
        UniqueFd connection = arrival();
        ProxyHeader header = header_of(connection);
        EXPECT_EQ(header.kind, ProxyHeader::Kind::proxied);
        EXPECT_EQ(header.version, each.version);
        EXPECT_EQ(to_string(header.source), to_string(local_address(client.get())));
        EXPECT_EQ(to_string(header.destination), to_string(front));
        EXPECT_EQ(header.tlvs.size(), each.tlvs);
        EXPECT_EQ(read_bytes(connection, 5), "hello");
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = -1;
    }
}

TEST_F(HaproxyTest, ItsHealthChecksSpeakForThemselves)
{
    start(inet_address("127.0.0.1", 0), "", "send-proxy-v2 check check-send-proxy inter 200ms");
    ProxyHeader header = header_of(arrival());
    EXPECT_EQ(header.kind, ProxyHeader::Kind::local);
    EXPECT_EQ(header.version, 2);
}

TEST_F(HaproxyTest, ItsUnixClientsHaveNoAddress)
{
    start(unix_path(dir / "front"), "", "send-proxy-v2");
    UniqueFd client = dial(front);
    send_text(client, "hello");
    UniqueFd connection = arrival();
    ProxyHeader header = header_of(connection);
    EXPECT_NE(header.kind, ProxyHeader::Kind::proxied);
    EXPECT_EQ(read_bytes(connection, 5), "hello");
}

TEST_F(HaproxyTest, ItReadsWhatWeSend)
{
    start(inet_address("127.0.0.1", 0), "accept-proxy", "send-proxy");
    SocketAddress v4_from = inet_address("192.0.2.1", 5), v4_to = inet_address("192.0.2.2", 65535);
    SocketAddress v6_from = inet_address("2001:db8::1", 5), v6_to = inet_address("2001:db8::2", 65535);
    EXPECT_EQ(understood(encode_proxy_v1(v4_from, v4_to)), "PROXY TCP4 192.0.2.1 192.0.2.2 5 65535\r\n");
    EXPECT_EQ(understood(encode_proxy_v2(v4_from, v4_to)), "PROXY TCP4 192.0.2.1 192.0.2.2 5 65535\r\n");
    EXPECT_EQ(understood(encode_proxy_v1(v6_from, v6_to)), "PROXY TCP6 2001:db8::1 2001:db8::2 5 65535\r\n");
    EXPECT_EQ(understood(encode_proxy_v2(v6_from, v6_to)), "PROXY TCP6 2001:db8::1 2001:db8::2 5 65535\r\n");
    EXPECT_EQ(understood(encode_proxy_v2(v4_from, v4_to, ucred{1, 2, 3})), "PROXY TCP4 192.0.2.1 192.0.2.2 5 65535\r\n")
        << "the TLV is skipped";
}

TEST_F(HaproxyTest, WhatHasNoWordsForItIsTakenWithoutAnAddress)
{
    start(inet_address("127.0.0.1", 0), "accept-proxy", "send-proxy");
    SocketAddress vsock = to_socket_address(VsockAddress{3, 4});
    for (const std::string &header : {encode_proxy_v1(unnamed_unix(), unix_path("/run/a")),
                                      encode_proxy_v1(vsock, vsock), encode_proxy_v2(vsock, vsock)}) {
        // then the connection's own addresses are what it has
        std::string line = understood(header);
        std::string port = ours.substr(ours.rfind(':') + 1);
        EXPECT_EQ(line.find("PROXY TCP4 127.0.0.1 127.0.0.1 " + port + " "), 0u) << line;
    }
}

} // namespace
} // namespace sluice
