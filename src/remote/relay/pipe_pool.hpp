// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pipes for splicing between sockets, of which a lane has one only while bytes move. An
// empty one that is given back is kept for the next; one with bytes left in it is closed.
// One thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "util/base/unique_fd.hpp"

namespace sluice::relay {

// Both ends do not block.
struct Pipe {
    UniqueFd read, write;
    uint32_t bytes = 0; // that it can hold, if its pages are full

    explicit operator bool() const noexcept { return static_cast<bool>(read); }
    // One that is as close to `bytes` as the kernel lets it, or none.
    static Pipe open(size_t bytes) noexcept;
};

class PipePool {
public:
    // Smaller ones, which the kernel gives to a user who has very many pages in pipes
    // (pipe-user-pages-soft), are slower than copying and are not used.
    static constexpr size_t pipe_bytes_min = 64 << 10;

    // Asks for `pipe_bytes` in each; opens at most `pipes_max`, two descriptors each.
    PipePool(size_t pipe_bytes, size_t pipes_max);
    PipePool(const PipePool &) = delete;
    PipePool &operator=(const PipePool &) = delete;

    // An empty pipe; or none, and then bytes have to be copied.
    Pipe take() noexcept;
    void give_back(Pipe pipe, bool empty) noexcept;

    size_t pipe_bytes() const noexcept { return pipe_bytes_; }
    size_t open() const noexcept { return open_; }
    // How often none could be had: because there were too many, or too small ones.
    uint64_t refused() const noexcept { return refused_; }
    // The kernel has given less than asked for, or too little.
    bool short_of_pages() const noexcept { return short_of_pages_; }

private:
    const size_t pipe_bytes_;
    const size_t pipes_max_;
    size_t open_ = 0; // in use or kept
    uint64_t refused_ = 0;
    int64_t retry_at_ = 0; // after a refusal by the kernel, not to ask again before
    bool short_of_pages_ = false;
    std::vector<Pipe> kept_;
};

} // namespace sluice::relay
