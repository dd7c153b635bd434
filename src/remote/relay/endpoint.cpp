// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/endpoint.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace sluice::relay {
namespace {

Endpoint::Kind kind_of(int fd, mode_t mode)
{
    if (S_ISFIFO(mode))
        return Endpoint::Kind::pipe;
    if (S_ISSOCK(mode))
        return Endpoint::Kind::socket;
    return S_ISCHR(mode) && isatty(fd) ? Endpoint::Kind::terminal : Endpoint::Kind::other;
}

ssize_t or_errno(ssize_t result) noexcept
{
    return result < 0 ? -errno : result;
}

} // namespace

Endpoint::Endpoint(UniqueFd fd, Kind kind, Use use, std::string_view name) noexcept
    : name_(name), fd_(std::move(fd)), kind_(kind), use_(use)
{}

Endpoint::Endpoint(Endpoint &&other) noexcept
    : name_(other.name_), fd_(std::move(other.fd_)), kind_(other.kind_), use_(other.use_),
      own_nonblocking_(other.own_nonblocking_), restore_flags_(std::exchange(other.restore_flags_, -1))
{}

Endpoint::~Endpoint()
{
    close();
}

void Endpoint::close() noexcept
{
    if (restore_flags_ >= 0 && fd_)
        fcntl(fd_.get(), F_SETFL, std::exchange(restore_flags_, -1));
    fd_.reset();
}

Result<Endpoint> Endpoint::adopt(UniqueFd fd, Use use, std::string_view name)
{
    struct stat status;
    if (fstat(fd.get(), &status) < 0)
        return fail_errno(errno, std::string(name));
    Kind kind = kind_of(fd.get(), status.st_mode);
    Endpoint end(std::move(fd), kind, use, name);
    end.make_nonblocking();
    return end;
}

Endpoint Endpoint::socket(UniqueFd fd, std::string_view name) noexcept
{
    Endpoint end(std::move(fd), Kind::socket, Use::both, name);
    end.own_nonblocking_ = true;
    return end;
}

void Endpoint::make_nonblocking()
{
    int flags = fcntl(fd_.get(), F_GETFL);
    if (flags & O_NONBLOCK) {
        own_nonblocking_ = true;
        return;
    }
    if (kind_ != Kind::pipe && kind_ != Kind::terminal)
        return; // MSG_DONTWAIT serves, or nothing blocks
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd_.get());
    UniqueFd own(open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    // the same number again, so that standard input stays 0 and the shared description is let go
    if (own && dup3(own.get(), fd_.get(), O_CLOEXEC) >= 0) {
        own_nonblocking_ = true;
        return;
    }
    if (fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) == 0)
        restore_flags_ = flags;
}

ssize_t Endpoint::read(const iovec *parts, int count) noexcept
{
    if (kind_ != Kind::socket)
        return or_errno(readv(fd_.get(), parts, count));
    if (count == 1)
        return or_errno(recv(fd_.get(), parts->iov_base, parts->iov_len, MSG_DONTWAIT));
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    return or_errno(recvmsg(fd_.get(), &message, MSG_DONTWAIT));
}

ssize_t Endpoint::write(const iovec *parts, int count) noexcept
{
    if (kind_ != Kind::socket)
        return or_errno(writev(fd_.get(), parts, count));
    if (count == 1)
        return or_errno(send(fd_.get(), parts->iov_base, parts->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL));
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    return or_errno(sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void Endpoint::widen(size_t bytes) noexcept
{
    auto wish = static_cast<int>(bytes);
    int now = 0;
    socklen_t size = sizeof now;
    if (kind_ == Kind::pipe) {
        // fails where the user's pipes have too many pages already; they do as they are
        if (fcntl(fd_.get(), F_GETPIPE_SZ) < wish)
            fcntl(fd_.get(), F_SETPIPE_SZ, wish);
    } else if (family() == AF_UNIX && getsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &now, &size) == 0 && now < wish) {
        setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &wish, sizeof wish); // up to net.core.wmem_max
    }
}

int Endpoint::family() noexcept
{
    socklen_t size = sizeof family_;
    if (family_ < 0 && (kind_ != Kind::socket || getsockopt(fd_.get(), SOL_SOCKET, SO_DOMAIN, &family_, &size) != 0))
        family_ = 0;
    return family_;
}

size_t Endpoint::waiting() const noexcept
{
    int bytes = 0;
    return ioctl(fd_.get(), FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

bool Endpoint::ended_by_peer() const noexcept
{
    pollfd look{fd_.get(), POLLRDHUP, 0};
    return fd_ && poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP));
}

void Endpoint::finish_writing() noexcept
{
    if (!fd_)
        return;
    if (kind_ == Kind::socket) {
        shutdown(fd_.get(), SHUT_WR);
        return;
    }
    if (use_ == Use::both)
        return;
    close();
}

} // namespace sluice::relay
