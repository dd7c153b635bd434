// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/lane.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>

namespace sluice::relay {
namespace {

// One read while copying: enough for a 64 KiB pipe, and few pages for small traffic;
// and once reads have been large for a while.
constexpr size_t copy_max = 64 << 10;
constexpr size_t copy_max_bulk = 256 << 10;
// From this size on a read counts as large.
constexpr size_t large_read = 16 << 10;
// This many more large reads than small ones change the mode, and back.
constexpr int weight_max = 4;
// After pauses that were too long, at most this many stalls of the sink without one.
constexpr int pauses_left_out_max = 255;
// Straight splices in vain, each after a poll, before the lane goes back to copying.
constexpr int refusals_max = 8;
// Steps before others get their turn.
constexpr int steps_max = 16;

// Bytes that can be read from a pipe or socket.
size_t waiting_in(const Endpoint &end)
{
    int bytes = 0;
    return ioctl(end.fd(), FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

bool would_block(ssize_t n)
{
    return n == -EAGAIN || n == -EINTR;
}

} // namespace

Lane::Lane(Endpoint &source, Endpoint &sink, LaneConfig config)
    : source_(source), sink_(sink), config_(config), ring_(config.held_max)
{
    bool straight = source.can_splice_from() && sink.can_splice_to();
    may_splice_ = config.may_splice && straight;
    if (may_splice_) {
        source.widen(config.widen_to);
        sink.widen(config.widen_to);
    }
}

bool Lane::wants_source() const noexcept
{
    return state_ == State::flowing && !source_ready_ && has_room();
}

// Is it worth reading? With a slow sink the ring would otherwise be filled again by
// each few bytes that leave it, and never run empty, as it must to change the mode.
bool Lane::has_room() const noexcept
{
    switch (mode_) {
    case Mode::spliced:
        return true;
    case Mode::piped:
        return in_pipe_ < config_.held_max;
    case Mode::copying:
        break;
    }
    if (may_splice_ && weight_ == weight_max)
        return ring_.empty();
    return ring_.room() >= std::min(copy_max, config_.held_max / 2);
}

bool Lane::wants_sink() const noexcept
{
    return !ended() && !sink_ready_ && (held() > 0 || mode_ == Mode::spliced);
}

bool Lane::may_pause() const noexcept
{
    return mode_ == Mode::spliced && sink_.kind() == Endpoint::Kind::pipe && !sink_ready_ && sink_was_last_ &&
           no_pauses_ == 0 && !ended();
}

void Lane::pause_over() noexcept
{
    // one that ran dry meanwhile has a fast reader: better wait for it the usual way
    ++calls_;
    bool dry = waiting_in(sink_) == 0;
    pauses_dry_ = dry ? std::min(2 * pauses_dry_ + 1, pauses_left_out_max) : 0;
    no_pauses_ = pauses_dry_;
    sink_ready_ = true;
}

size_t Lane::undelivered() const noexcept
{
    bool left_behind = state_ == State::flowing && source_.ended_by_peer();
    return held() + (left_behind ? waiting_in(source_) : 0);
}

Lane::Mode Lane::main_mode() const noexcept
{
    if (2 * spliced_bytes_ <= bytes_)
        return Mode::copying;
    return pipe_write_ ? Mode::piped : Mode::spliced;
}

bool Lane::run()
{
    int steps = 0;
    while (steps < steps_max && !ended() && step())
        ++steps;
    // enough for now: whether there is more is for the next poll to say
    if (steps == steps_max)
        source_ready_ = sink_ready_ = false;
    return steps > 0 || ended();
}

bool Lane::step()
{
    if (mode_ == Mode::copying)
        return step_copying();
    return mode_ == Mode::spliced ? step_spliced() : step_piped();
}

void Lane::stop(bool gone)
{
    if (ended())
        return;
    if (gone && held() > 0) {
        fail(EPIPE, false);
        return;
    }
    state_ = State::draining;
    finish_if_delivered();
}

// --- copying ---------------------------------------------------------------------

bool Lane::step_copying()
{
    bool moved = fill_ring();
    moved |= empty_ring();
    change_mode();
    return moved;
}

bool Lane::fill_ring()
{
    if (state_ != State::flowing || !source_ready_ || !has_room())
        return false;
    Ring::Pieces space = ring_.space(weight_ == weight_max ? copy_max_bulk : copy_max);
    ++calls_;
    ssize_t n = source_.read(space.parts, space.count);
    if (!took(n))
        return false;
    auto bytes = static_cast<size_t>(n);
    ring_.produced(bytes);
    weigh(bytes >= large_read || bytes == space.bytes);
    // a short read has emptied a pipe or a socket: the next one would be in vain
    if (bytes < space.bytes && source_.kind() != Endpoint::Kind::other)
        source_ready_ = false;
    return true;
}

bool Lane::empty_ring()
{
    if (ring_.empty() || !sink_ready_)
        return false;
    Ring::Pieces filled = ring_.filled(config_.held_max);
    ++calls_;
    ssize_t n = sink_.write(filled.parts, filled.count);
    if (!gave(n))
        return false;
    ring_.consumed(static_cast<size_t>(n));
    if (static_cast<size_t>(n) < filled.bytes)
        sink_ready_ = false;
    finish_if_delivered();
    return true;
}

// --- spliced straight --------------------------------------------------------------

bool Lane::step_spliced()
{
    if (state_ != State::flowing || !source_ready_ || !sink_ready_)
        return false;
    ++calls_;
    ssize_t n =
        splice(source_.fd(), nullptr, sink_.fd(), nullptr, config_.chunk_max, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
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
        if (bytes < config_.chunk_max)
            lay_to(sink_was_last_);
        change_mode();
        return true;
    }
    if (n == 0) {
        end_of_source();
        return true;
    }
    int error = errno;
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
    return waiting_in(source_) > 0;
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
    if (state_ != State::flowing || !source_ready_ || in_pipe_ >= config_.held_max)
        return false;
    ++calls_;
    ssize_t n = splice(source_.fd(), nullptr, pipe_write_.get(), nullptr,
                       std::min(config_.chunk_max, config_.held_max - in_pipe_), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EAGAIN && in_pipe_ > 0) {
        // full by slots, however few bytes they hold: the sink's turn
        return false;
    }
    if (n < 0 && refused(errno))
        return true;
    if (!took(n < 0 ? -errno : n))
        return false;
    in_pipe_ += static_cast<size_t>(n);
    weigh(static_cast<size_t>(n) >= large_read);
    return true;
}

bool Lane::empty_pipe()
{
    if (in_pipe_ == 0 || !sink_ready_)
        return false;
    ++calls_;
    ssize_t n = splice(pipe_read_.get(), nullptr, sink_.fd(), nullptr, in_pipe_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (!gave(n < 0 ? -errno : n))
        return false;
    in_pipe_ -= static_cast<size_t>(n);
    spliced_bytes_ += static_cast<size_t>(n);
    if (in_pipe_ > 0)
        sink_ready_ = false;
    finish_if_delivered();
    return true;
}

// --- what calls answer ---------------------------------------------------------------

bool Lane::took(ssize_t n) noexcept
{
    if (n > 0)
        return true;
    if (n == 0)
        end_of_source();
    else if (would_block(n))
        source_ready_ = false;
    else if (n == -EIO && source_.kind() == Endpoint::Kind::terminal)
        end_of_source(); // the other side of the terminal was closed
    else
        fail(static_cast<int>(-n), true);
    return false;
}

bool Lane::gave(ssize_t n) noexcept
{
    if (n > 0) {
        bytes_ += static_cast<uint64_t>(n);
        return true;
    }
    if (would_block(n))
        sink_ready_ = false;
    else
        fail(n == 0 ? EIO : static_cast<int>(-n), false);
    return false;
}

void Lane::end_of_source() noexcept
{
    saw_end_ = true;
    state_ = State::draining;
    finish_if_delivered();
}

void Lane::fail(int error, bool at_source) noexcept
{
    error_ = error;
    source_failed_ = at_source;
    // what was taken before the source broke is still owed to the sink
    state_ = at_source && held() > 0 ? State::draining : State::failed;
}

void Lane::finish_if_delivered() noexcept
{
    if (state_ != State::draining || held() > 0)
        return;
    state_ = error_ ? State::failed : State::finished;
    sink_.finish_writing();
}

// --- choosing the way ------------------------------------------------------------------

void Lane::weigh(bool large) noexcept
{
    weight_ = large ? std::min(weight_ + 1, weight_max) : std::max(weight_ - 1, -weight_max);
}

void Lane::change_mode() noexcept
{
    if (!may_splice_ || state_ != State::flowing || held() > 0)
        return;
    if (mode_ == Mode::copying && weight_ == weight_max) {
        bool straight = source_.kind() == Endpoint::Kind::pipe || sink_.kind() == Endpoint::Kind::pipe;
        if (straight)
            mode_ = Mode::spliced;
        else if (make_pipe())
            mode_ = Mode::piped;
        sink_was_last_ = false;
    } else if (mode_ != Mode::copying && weight_ == -weight_max) {
        mode_ = Mode::copying;
    }
}

// Not possible for these files after all: copy from here on.
bool Lane::refused(int error) noexcept
{
    if (error != EINVAL && error != EPERM && error != ENOSYS)
        return false;
    may_splice_ = false;
    if (in_pipe_ == 0)
        mode_ = Mode::copying;
    return true;
}

bool Lane::make_pipe() noexcept
{
    int fds[2];
    if (pipe_write_)
        return true;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return may_splice_ = false;
    pipe_read_.reset(fds[0]);
    pipe_write_.reset(fds[1]);
    fcntl(fds[1], F_SETPIPE_SZ, static_cast<int>(config_.held_max)); // else its slots are the bound
    return true;
}

} // namespace sluice::relay
