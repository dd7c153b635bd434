// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/connect_step.hpp"

#include <cerrno>
#include <cstring>

#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "util/net/connect.hpp"

namespace sluice {

namespace {

bool is_tcp(const SocketAddress &address)
{
    return address.family() == AF_INET || address.family() == AF_INET6;
}

template <class T>
T as(const SocketAddress &address)
{
    T result;
    std::memcpy(&result, &address.storage, sizeof result);
    return result;
}

// The kernel may choose the very port that is being connected to as our own, where the
// address is one of this machine, and the connection then leads to itself.
bool leads_to_itself(int fd, const SocketAddress &to)
{
    SocketAddress own = local_address(fd);
    if (own.family() != to.family())
        return false;
    if (own.family() == AF_INET) {
        auto one = as<sockaddr_in>(own), other = as<sockaddr_in>(to);
        return one.sin_port == other.sin_port && one.sin_addr.s_addr == other.sin_addr.s_addr;
    }
    auto one = as<sockaddr_in6>(own), other = as<sockaddr_in6>(to);
    return one.sin6_port == other.sin6_port && std::memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr) == 0;
}

int set_up(int fd, const SocketAddress &to)
{
    if (!is_tcp(to))
        return 0;
    if (leads_to_itself(fd, to)) {
        // no TIME_WAIT, which would keep the port from whom it is for
        linger at_once{1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        return ECONNREFUSED;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return 0;
}

// vsock says reset where tcp says refused.
int in_words_of_tcp(int code, const SocketAddress &to)
{
    return code == ECONNRESET && to.family() == AF_VSOCK ? ECONNREFUSED : code;
}

int try_connect(int fd, const SocketAddress &to)
{
    return connect(fd, to.get(), to.size) == 0 ? 0 : errno;
}

} // namespace

int begin_connect(const SocketAddress &to, std::chrono::microseconds timeout, UniqueFd &fd) noexcept
{
    UniqueFd made(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made)
        return errno;
    if (to.family() == AF_VSOCK && timeout.count() > 0) {
        timeval value{};
        value.tv_sec = timeout.count() / 1'000'000 + 1;
        setsockopt(made.get(), AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &value, sizeof value);
    }
    int code = try_connect(made.get(), to);
    // within this machine the handshake is over by now, and nobody has told us yet
    if (code == EINPROGRESS && is_tcp(to)) {
        code = try_connect(made.get(), to);
        if (code == EALREADY)
            code = EINPROGRESS;
        else if (code == EISCONN)
            code = 0;
    }
    if (code == EINTR && to.family() != AF_UNIX)
        code = EINPROGRESS;
    if (code == 0)
        code = set_up(made.get(), to);
    if (code == 0 || code == EINPROGRESS)
        fd = std::move(made);
    return in_words_of_tcp(code, to);
}

int end_connect(int fd, const SocketAddress &to) noexcept
{
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
        code = errno;
    return code == 0 ? set_up(fd, to) : in_words_of_tcp(code, to);
}

int connect_now(const SocketAddress &to, UniqueFd &fd) noexcept
{
    // how long to wait is told to vsock in advance, and is not known here
    if (to.family() == AF_VSOCK)
        return EAGAIN;
    return begin_connect(to, std::chrono::microseconds{0}, fd);
}

} // namespace sluice
