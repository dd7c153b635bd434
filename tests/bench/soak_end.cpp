// SPDX-License-Identifier: LGPL-2.1-or-later

#include "soak_end.hpp"

#include <algorithm>

namespace sluice::bench {

namespace {

// Buffers that all ends share; one thread has them.
std::vector<std::byte> &scratch()
{
    static std::vector<std::byte> bytes(1 << 18);
    return bytes;
}

} // namespace

End::End(int epoll, void *owner, const Flow &sends, const Flow &receives, Pattern out, Pattern in, uint64_t to_send)
    : epoll_(epoll), owner_(owner), sends_(sends), receives_(receives), out_(out), in_(in), to_send_(to_send),
      may_send_(to_send), random_(unsigned(to_send) + 1)
{}

void End::open(UniqueFd fd, const Plan &plan)
{
    fd_ = std::move(fd);
    opened_ = true;
    if (plan.buffer_bytes > 0)
        for (const int option : {SO_SNDBUF, SO_RCVBUF})
            setsockopt(fd_.get(), SOL_SOCKET, option, &plan.buffer_bytes, sizeof(plan.buffer_bytes));
}

bool End::stalled(const Flow &flow, uint64_t bytes, std::array<int64_t, 2> &until, int64_t now_usec)
{
    for (size_t i = 0; i < until.size(); ++i) {
        if (flow.stall_usec[i] == 0 || bytes < flow.stall_at[i])
            continue;
        if (until[i] == 0)
            until[i] = now_usec + flow.stall_usec[i];
        if (until[i] > now_usec)
            return true;
    }
    return false;
}

// No further than to the next pause.
size_t End::piece(const Flow &flow, uint64_t bytes)
{
    uint64_t size = flow.vary ? 1 + random_() % flow.chunk_max : flow.chunk_max;
    for (size_t i = 0; i < 2; ++i)
        if (flow.stall_usec[i] != 0 && bytes < flow.stall_at[i])
            size = std::min(size, flow.stall_at[i] - bytes);
    return size_t(std::min<uint64_t>(size, scratch().size()));
}

void End::receive(int64_t now_usec)
{
    for (int turn = 0; turn < 4 && fd_ && !eof_ && !error_; ++turn) {
        if (stalled(receives_, received_, receive_until_, now_usec))
            return;
        const size_t size = piece(receives_, received_);
        const ssize_t count = recv(fd_.get(), scratch().data(), size, 0);
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR)
                error_ = errno;
            return;
        }
        eof_ = count == 0;
        const std::span<const std::byte> data{scratch().data(), size_t(count)};
        if (const auto at = in_.first_difference(received_, data); at && !damaged_at_)
            damaged_at_ = received_ + *at;
        received_ += uint64_t(count);
    }
}

void End::send(int64_t now_usec)
{
    for (int turn = 0; turn < 4 && fd_ && !half_closed_ && !error_; ++turn) {
        const uint64_t limit = std::min(may_send_, to_send_);
        if (sent_ >= limit || stalled(sends_, sent_, send_until_, now_usec))
            return;
        const std::span<std::byte> data{scratch().data(),
                                        size_t(std::min<uint64_t>(piece(sends_, sent_), limit - sent_))};
        out_.fill(sent_, data);
        for (uint64_t i = sent_; i < Plan::header_bytes && i - sent_ < data.size() && header_ != decltype(header_){};
             ++i)
            data[size_t(i - sent_)] = header_[size_t(i)];
        const ssize_t count = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR)
                error_ = errno;
            return;
        }
        sent_ += uint64_t(count);
    }
}

void End::step(int64_t now_usec, uint32_t events)
{
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
        receive(now_usec);
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
        send(now_usec);
}

void End::arm(int64_t now_usec)
{
    if (!fd_)
        return;
    uint32_t wanted = 0;
    if (!eof_ && !error_ && !stalled(receives_, received_, receive_until_, now_usec))
        wanted |= EPOLLIN;
    if (sent_ < std::min(may_send_, to_send_) && !half_closed_ && !error_ &&
        !stalled(sends_, sent_, send_until_, now_usec))
        wanted |= EPOLLOUT;
    if (wanted == armed_)
        return;
    epoll_event event{wanted, {.ptr = owner_}};
    // one who wants nothing would hear of a hang-up all the same, again and again
    const int operation = wanted == 0 ? EPOLL_CTL_DEL : armed_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    must(epoll_ctl(epoll_, operation, fd_.get(), &event), "epoll_ctl");
    armed_ = wanted;
}

void End::half_close()
{
    if (half_closed_ || !fd_)
        return;
    half_closed_ = true;
    if (shutdown(fd_.get(), SHUT_WR) != 0 && error_ == 0)
        error_ = errno;
}

void End::close()
{
    fd_.reset();
    armed_ = 0;
}

void End::reset()
{
    if (fd_)
        reset_on_close(fd_.get());
    close();
}

} // namespace sluice::bench
