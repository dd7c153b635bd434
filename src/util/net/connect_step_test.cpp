// SPDX-License-Identifier: LGPL-2.1-or-later

// Connecting in steps, as the proxy does for each of its clients.

#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "util/net/connect_fixture.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST_F(Connect, NowWithoutATaskOrATurn)
{
    TestDir dir;
    UniqueFd path_server = make_socket(dir / "s", 0);
    auto path = *to_socket_address(UnixPath{dir / "s"});
    UniqueFd fd;
    ASSERT_EQ(connect_now(path, fd), 0);
    EXPECT_NE(fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    auto clients = fill_backlog(path);
    int before = fd.get();
    EXPECT_EQ(connect_now(path, fd), EAGAIN);
    EXPECT_EQ(fd.get(), before) << "untouched";
    EXPECT_EQ(connect_now(*to_socket_address(UnixPath{dir / "none"}), fd), ENOENT);
    EXPECT_EQ(connect_now(to_socket_address(VsockAddress{VMADDR_CID_LOCAL, 5}), fd), EAGAIN);

    for (const char *host : {"127.0.0.1", "::1"}) {
        TcpServer server(5, host);
        ASSERT_EQ(connect_now(server.address, fd), 0) << "within this machine the answer is there at once";
        EXPECT_EQ(to_string(peer_address(fd.get())), to_string(server.address));
        int nodelay = 0;
        socklen_t size = sizeof nodelay;
        getsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &nodelay, &size);
        EXPECT_NE(nodelay, 0);
        UniqueFd accepted(accept(server.fd.get(), nullptr, nullptr));
        EXPECT_TRUE(accepted);
        TcpServer closed(-1, host);
        EXPECT_EQ(connect_now(closed.address, fd), ECONNREFUSED);
    }
}

TEST_F(Connect, WhatWasBegunIsFinished)
{
    TcpServer silent(0), alive(5), closed(-1);
    auto clients = fill_backlog(silent.address);
    UniqueFd begun;
    ASSERT_EQ(connect_now(silent.address, begun), EINPROGRESS);
    options.timeout = 20ms;
    expect_error(run(loop, finish_connect(loop, silent.name, silent.address, std::move(begun), options)), ETIMEDOUT,
                 "no answer within 0.02 s");
    options.timeout = 60s;
    auto begin = [](const TcpServer &server) {
        UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        EXPECT_NE(::connect(fd.get(), server.address.get(), server.address.size), 0);
        EXPECT_EQ(errno, EINPROGRESS);
        return fd;
    };
    expect_good(run(loop, finish_connect(loop, alive.name, alive.address, begin(alive), options)));
    expect_error(run(loop, finish_connect(loop, closed.name, closed.address, begin(closed), options)), ECONNREFUSED,
                 "nobody listens on this port");
}

TEST_F(Connect, OneAddressTakesOneDescriptor)
{
    TcpServer server(5);
    EXPECT_EQ(in_child([own_loop = loop, name = server.name, at = server.address, how = options]() mutable {
                  UniqueFd next(dup(0));
                  rlimit files{static_cast<rlim_t>(next.get()) + 1, static_cast<rlim_t>(next.get()) + 1};
                  next.reset();
                  setrlimit(RLIMIT_NOFILE, &files);
                  auto result = run(own_loop, connect_to_any(own_loop, name, {at}, how));
                  return result ? 0 : 1;
              }),
              0);
}

} // namespace
} // namespace sluice
