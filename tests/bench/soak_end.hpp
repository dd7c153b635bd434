// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One end of a conversation: a non-blocking socket that sends a pattern and checks the
// one it receives, with pauses of its own. It does what it is told and knows nothing of
// how the conversation is meant to end.

#include <sys/epoll.h>

#include <optional>
#include <random>
#include <vector>

#include "proxy_sockets.hpp"
#include "soak_plan.hpp"
#include "support/pattern.hpp"

namespace sluice::bench {

class End {
public:
    // What it has to send, and how; `header` goes before the pattern and counts.
    End(int epoll, void *owner, const Flow &sends, const Flow &receives, Pattern out, Pattern in, uint64_t to_send);
    End(const End &) = delete;
    End &operator=(const End &) = delete;

    void open(UniqueFd fd, const Plan &plan);
    // The first bytes it sends are these, not the pattern's; or the first that it has
    // received were, and somebody else has read them.
    void send_header(const std::array<std::byte, Plan::header_bytes> &header) { header_ = header; }
    void header_was_read() { received_ = Plan::header_bytes; }
    void limit_sending(uint64_t bytes) { may_send_ = bytes; }

    // Move bytes, as far as that goes without waiting, but not for ever.
    void step(int64_t now_usec, uint32_t events);
    // Wait for what it wants now; also when a pause is over.
    void arm(int64_t now_usec);

    void half_close();
    void close();
    void reset();

    bool is_open() const { return bool(fd_); }
    bool opened() const { return opened_; }
    bool all_sent() const { return sent_ == to_send_; }
    bool half_closed() const { return half_closed_; }
    bool at_eof() const { return eof_; }
    int error() const { return error_; }
    uint64_t sent() const { return sent_; }
    uint64_t received() const { return received_; }
    std::optional<uint64_t> damaged_at() const { return damaged_at_; }

private:
    bool stalled(const Flow &flow, uint64_t bytes, std::array<int64_t, 2> &until, int64_t now_usec);
    size_t piece(const Flow &flow, uint64_t bytes);
    void receive(int64_t now_usec);
    void send(int64_t now_usec);

    const int epoll_;
    void *const owner_;
    const Flow sends_, receives_;
    const Pattern out_, in_;
    const uint64_t to_send_;
    uint64_t may_send_;
    std::array<std::byte, Plan::header_bytes> header_{};

    UniqueFd fd_;
    uint32_t armed_ = 0;
    std::array<int64_t, 2> send_until_{}, receive_until_{}; // of each pause, once it has begun
    std::minstd_rand random_;
    bool opened_ = false, half_closed_ = false, eof_ = false;
    int error_ = 0;
    uint64_t sent_ = 0, received_ = 0;
    std::optional<uint64_t> damaged_at_;
};

} // namespace sluice::bench
