// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/descriptors.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::relay {
namespace {

constexpr size_t fds_per_message = 253; // SCM_MAX_FD
// Room for all that one read may bring, credentials and a security label included.
constexpr size_t control_bytes = CMSG_SPACE(fds_per_message * sizeof(int)) + 1024;

ssize_t receive(int fd, msghdr &message, const iovec *parts, int count, int flags) noexcept
{
    message.msg_iov = const_cast<iovec *>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    ssize_t n = recvmsg(fd, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    return n < 0 ? -errno : n;
}

template <class F>
void for_each_fd(msghdr &message, F &&f)
{
    for (cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= item->cmsg_len; at += sizeof(int)) {
            int one;
            std::memcpy(&one, reinterpret_cast<char *>(item) + at, sizeof one);
            f(one);
        }
    }
}

// What is there to be read, without taking it: bytes or a negative errno. `ahead` says
// whether something comes along with these or with later ones.
ssize_t look(int fd, const Ring::Pieces &space, bool &ahead) noexcept
{
    msghdr message{};
    ssize_t n = receive(fd, message, space.parts, space.count, MSG_PEEK);
    ahead = n > 0 && (message.msg_flags & MSG_CTRUNC);
    return n;
}

// The same, but only messages that fit whole into the space, up to the first that does
// not: the kernel copies message by message, and stops at one whose copy it cannot finish.
// EFAULT where that is the first. `meets`: something comes along with the last of them.
ssize_t look_at_whole(int fd, const Ring::Pieces &space, bool &meets) noexcept
{
    constexpr size_t more_than_any_message = 1 << 30;
    iovec parts[3] = {space.parts[0], space.parts[1], {}};
    parts[space.count] = {nullptr, more_than_any_message};
    msghdr message{};
    ssize_t n = receive(fd, message, parts, space.count + 1, MSG_PEEK);
    meets = n > 0 && (message.msg_flags & MSG_CTRUNC);
    return n;
}

bool is_unix(int fd) noexcept
{
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

} // namespace

ssize_t read_without_descriptors(int fd, const iovec *parts, int count, bool &met) noexcept
{
    // a little room, to tell descriptors from credentials that the socket was set to receive
    alignas(cmsghdr) char control[256];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = receive(fd, message, parts, count, 0);
    if (n < 0)
        return n;
    if (message.msg_controllen > 0) {
        for_each_fd(message, [&](int one) {
            met = true;
            close(one);
        });
    }
    met |= (message.msg_flags & MSG_CTRUNC) != 0;
    return n;
}

// The kernel ends a read after the message that descriptors came with, but not before
// it: so look first, and read up to that place only.
ssize_t DescriptorQueue::read(int fd, const Ring::Pieces &space)
{
    bool ahead = false;
    ssize_t there = look(fd, space, ahead);
    if (there <= 0)
        return there;
    auto bytes = static_cast<size_t>(there);
    if (!ahead)
        return read_with_control(fd, space.first(bytes));
    // a look that is not cut off by the space ends with the message in question
    size_t limit = bytes < space.bytes ? bytes - 1 : bytes;
    for (bool meets = true; meets && limit > 0;) {
        ssize_t whole = look_at_whole(fd, space.first(limit), meets);
        limit = static_cast<size_t>(std::max<ssize_t>(meets ? whole - 1 : whole, 0));
    }
    // none: it is the very next message, or one that fills all of the space
    return read_with_control(fd, limit > 0 ? space.first(limit) : space);
}

ssize_t DescriptorQueue::read_with_control(int fd, const Ring::Pieces &space)
{
    alignas(cmsghdr) char control[control_bytes];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    Batch batch{taken_, {}};
    batch.fds.reserve(fds_per_message); // before there is anything to lose
    ssize_t n = receive(fd, message, space.parts, space.count, 0);
    if (n <= 0)
        return n;
    for_each_fd(message, [&](int one) { batch.fds.emplace_back(one); });
    if (message.msg_flags & MSG_CTRUNC)
        return -EMFILE;
    taken_ += static_cast<uint64_t>(n);
    if (!batch.fds.empty()) {
        batch.fds.shrink_to_fit();
        count_ += batch.fds.size();
        batches_.push_back(std::move(batch));
    }
    return n;
}

ssize_t DescriptorQueue::write(int fd, const Ring::Pieces &filled)
{
    Ring::Pieces part = filled;
    bool due = !batches_.empty() && batches_.front().at == given_;
    const Batch *next = batches_.size() > (due ? 1u : 0u) ? &batches_[due ? 1 : 0] : nullptr;
    if (next)
        part = filled.first(next->at - given_);
    msghdr message{};
    message.msg_iov = part.parts;
    message.msg_iovlen = static_cast<size_t>(part.count);
    alignas(cmsghdr) char control[control_bytes];
    if (due) {
        const auto &fds = batches_.front().fds;
        if (!is_unix(fd))
            return -EBADMSG;
        std::memset(control, 0, CMSG_SPACE(fds.size() * sizeof(int)));
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr *item = CMSG_FIRSTHDR(&message);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        for (size_t i = 0; i < fds.size(); ++i) {
            int one = fds[i].get();
            std::memcpy(CMSG_DATA(item) + i * sizeof one, &one, sizeof one);
        }
    }
    ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return -errno;
    given_ += static_cast<uint64_t>(n);
    if (due && n > 0) {
        // with the first byte of them
        count_ -= batches_.front().fds.size();
        batches_.erase(batches_.begin());
    }
    return n;
}

} // namespace sluice::relay
