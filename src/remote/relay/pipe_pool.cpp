// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/pipe_pool.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "util/base/clock.hpp"

namespace sluice::relay {
namespace {

constexpr int64_t retry_usec = 1'000'000;
// More are never of use at the same moment often enough to be worth their descriptors.
constexpr size_t kept_max = 64;

} // namespace

Pipe Pipe::open(size_t bytes) noexcept
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return {};
    Pipe pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
    int got = fcntl(fds[1], F_SETPIPE_SZ, static_cast<int>(bytes));
    if (got < 0)
        got = fcntl(fds[1], F_GETPIPE_SZ);
    pipe.bytes = static_cast<uint32_t>(std::max(got, 0));
    return pipe;
}

PipePool::PipePool(size_t pipe_bytes, size_t pipes_max) : pipe_bytes_(pipe_bytes), pipes_max_(pipes_max)
{
    kept_.reserve(std::min(kept_max, pipes_max));
}

Pipe PipePool::take() noexcept
{
    if (!kept_.empty()) {
        Pipe pipe = std::move(kept_.back());
        kept_.pop_back();
        return pipe;
    }
    if (open_ >= pipes_max_ || (retry_at_ != 0 && monotonic_usec() < retry_at_)) {
        ++refused_;
        return {};
    }
    Pipe pipe = Pipe::open(pipe_bytes_);
    short_of_pages_ |= pipe && pipe.bytes < pipe_bytes_;
    bool good = pipe && pipe.bytes >= std::min(pipe_bytes_, pipe_bytes_min);
    retry_at_ = good ? 0 : monotonic_usec() + retry_usec;
    if (!good) {
        ++refused_;
        return {};
    }
    ++open_;
    return pipe;
}

void PipePool::give_back(Pipe pipe, bool empty) noexcept
{
    if (empty && kept_.size() < kept_.capacity())
        kept_.push_back(std::move(pipe));
    else
        --open_;
}

} // namespace sluice::relay
