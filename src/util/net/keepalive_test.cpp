// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/keepalive.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "util/base/unique_fd.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

int option(const UniqueFd &fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(fd.get(), level, name, &value, &size), 0);
    return value;
}

TEST(Keepalive, IsSetOnTcp)
{
    for (int family : {AF_INET, AF_INET6}) {
        UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_TRUE(fd);
        ASSERT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
        ASSERT_TRUE(set_keepalive(fd.get(), 60s, 10s, 6));
        EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
        EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
        EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 6);
        EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 120'000);
    }
}

TEST(Keepalive, GoesToTheKernelsBounds)
{
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(set_keepalive(fd.get(), 32767s, 32767s, 127));
    // 128 times 32767 s are more milliseconds than an int has
    EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), INT32_MAX);
    ASSERT_TRUE(set_keepalive(fd.get(), 1s, 1s, 1));
    EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2'000);
    for (auto bad : {set_keepalive(fd.get(), 0s, 1s, 1), set_keepalive(fd.get(), 32768s, 1s, 1),
                     set_keepalive(fd.get(), 1s, 0s, 1), set_keepalive(fd.get(), 1s, 32768s, 1),
                     set_keepalive(fd.get(), 1s, 1s, 0), set_keepalive(fd.get(), 1s, 1s, 128),
                     set_keepalive(fd.get(), -1s, 1s, 1)}) {
        ASSERT_FALSE(bad);
        EXPECT_EQ(bad.error().code, EINVAL);
    }
    EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2'000) << "left as it was";
}

TEST(Keepalive, LeavesOthersAlone)
{
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    UniqueFd here(fds[0]), there(fds[1]);
    EXPECT_TRUE(set_keepalive(here.get(), 60s, 10s, 6));
    EXPECT_EQ(option(here, SOL_SOCKET, SO_KEEPALIVE), 0);
}

} // namespace
} // namespace sluice
