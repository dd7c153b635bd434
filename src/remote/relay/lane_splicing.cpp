// SPDX-License-Identifier: LGPL-2.1-or-later

// A lane that splices, straight or through a pipe of its own.

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "remote/relay/lane.hpp"
#include "remote/relay/lane_limits.hpp"

namespace sluice::relay {
namespace {

ssize_t splice_some(int from, int to, size_t bytes)
{
    ssize_t n = splice(from, nullptr, to, nullptr, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    return n < 0 ? -errno : n;
}

} // namespace

// --- straight --------------------------------------------------------------------------

bool Lane::step_spliced()
{
    if (state_ != State::flowing || !source_ready_ || !sink_ready_)
        return false;
    size_t limit = allowed(chunk_max_);
    if (limit == 0)
        return false;
    ++calls_;
    ssize_t n = splice_some(source_.fd(), sink_.fd(), limit);
    used(n);
    if (n > 0) {
        auto bytes = static_cast<size_t>(n);
        bytes_ += bytes;
        spliced_bytes_ += bytes;
        refusals_ = 0;
        // Less than asked for: the source is empty or the sink is full, and which of
        // them is not told. Most likely the one that it was last time; but little is
        // either a small message, which says something about the mode, or what a full
        // sink has let through, which does not.
        if (bytes >= large_read)
            weigh(true);
        else if (!source_has_more())
            weigh(sink_was_last_ = false);
        else
            sink_was_last_ = true;
        if (bytes < limit)
            lay_to(sink_was_last_);
        change_mode();
        return true;
    }
    if (n == 0) {
        end_of_source();
        return true;
    }
    auto error = static_cast<int>(-n);
    if (error == EINTR)
        return true;
    if (error == EAGAIN) {
        bool in_vain = sink_polled_;
        lay_to(source_has_more());
        // a poll found both ready and yet nothing moves: something that splice cannot pass
        if (!in_vain || !sink_was_last_)
            return false;
        return ++refusals_ > refusals_max && refused(EINVAL);
    }
    // Said of a pipe that nobody reads before the source is looked at: reading tells
    // whether there is anything to lose, or the source has ended too.
    if (refused(error == EPIPE && sink_.kind() == Endpoint::Kind::pipe ? EINVAL : error))
        return true;
    fail(error, source_.kind() == Endpoint::Kind::socket && error != EPIPE);
    return true;
}

bool Lane::source_has_more() noexcept
{
    ++calls_;
    return source_.waiting() > 0;
}

// Something would have blocked: wait for that end.
void Lane::lay_to(bool sink) noexcept
{
    sink_was_last_ = sink;
    (sink ? sink_ready_ : source_ready_) = false;
    sink_polled_ = false;
    if (sink && no_pauses_ > 0)
        --no_pauses_;
}

// --- through a pipe of our own ------------------------------------------------------

bool Lane::step_piped()
{
    bool moved = fill_pipe();
    moved |= empty_pipe();
    change_mode();
    return moved;
}

bool Lane::fill_pipe()
{
    if (state_ != State::flowing || !source_ready_ || !has_room())
        return false;
    size_t limit = allowed(std::min(chunk_max_, pipe_max_ - in_pipe_));
    if (limit == 0)
        return false;
    if (!take_pipe()) {
        mode_ = Mode::copying;
        weight_ = 0;
        return true;
    }
    ++calls_;
    ssize_t n = splice_some(source_.fd(), pipe_.write.get(), limit);
    if (n == -EAGAIN && in_pipe_ > 0) {
        // full by slots, however few bytes they hold: the sink's turn
        used(0);
        return false;
    }
    if (n < 0 && refused(static_cast<int>(-n))) {
        used(0);
        return in_pipe_ == 0; // else once the pipe is empty
    }
    if (!took(n))
        return false;
    in_pipe_ += static_cast<uint32_t>(n);
    // a message, and not a stream that goes on: the next try would be in vain
    if (static_cast<size_t>(n) < std::min(limit, message_max))
        source_ready_ = false;
    weigh(static_cast<size_t>(n) >= large_read);
    return true;
}

bool Lane::empty_pipe()
{
    if (in_pipe_ == 0 || !sink_ready_)
        return false;
    ++calls_;
    ssize_t n = splice_some(pipe_.read.get(), sink_.fd(), in_pipe_);
    if (!gave(n))
        return false;
    auto bytes = static_cast<uint32_t>(n);
    in_pipe_ -= bytes;
    bytes_ += bytes;
    spliced_bytes_ += bytes;
    if (in_pipe_ > 0)
        sink_ready_ = false;
    finish_if_delivered();
    return true;
}

bool Lane::take_pipe() noexcept
{
    if (pipe_)
        return true;
    pipe_ = pipes_ ? pipes_->take() : Pipe::open(pipe_max_);
    if (!pipe_ && !pipes_)
        may_splice_ = false;
    return static_cast<bool>(pipe_);
}

} // namespace sluice::relay
