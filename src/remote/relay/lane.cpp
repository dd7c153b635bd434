// SPDX-License-Identifier: LGPL-2.1-or-later

// What the ways of moving bytes have in common: the state of a lane, what it waits for,
// and which way it goes. The ways themselves are in lane_copying.cpp and lane_splicing.cpp.

#include "remote/relay/lane.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "remote/relay/descriptors.hpp"
#include "remote/relay/lane_limits.hpp"
#include "remote/relay/throttle.hpp"

namespace sluice::relay {
namespace {

bool would_block(ssize_t n)
{
    return n == -EAGAIN || n == -EINTR;
}

bool is_straight(const Endpoint &source, const Endpoint &sink)
{
    return source.kind() == Endpoint::Kind::pipe || sink.kind() == Endpoint::Kind::pipe;
}

bool can_splice(const LaneConfig &config, const Endpoint &source, const Endpoint &sink)
{
    bool looked_into = config.descriptors == Descriptors::refuse || config.descriptors == Descriptors::pass;
    return config.may_splice && !looked_into && source.can_splice_from() && sink.can_splice_to();
}

// Who shares pools has others beside him that are to get their turn.
uint32_t turn_bytes(const LaneConfig &config)
{
    if (config.turn_max > 0)
        return static_cast<uint32_t>(config.turn_max);
    return config.buffers ? turn_max_shared : turn_max_alone;
}

} // namespace

Lane::Lane(Endpoint &source, Endpoint &sink, LaneConfig config, LaneOwner *owner)
    : source_(source), sink_(sink), owner_(owner), buffers_(config.buffers), pipes_(config.pipes),
      held_max_(static_cast<uint32_t>(buffers_ ? buffers_->buffer_bytes() : config.held_max)),
      pipe_max_(static_cast<uint32_t>(pipes_ ? pipes_->pipe_bytes() : config.held_max)),
      chunk_max_(static_cast<uint32_t>(config.chunk_max)), turn_max_(turn_bytes(config)),
      widen_to_(static_cast<uint32_t>(config.widen_to)), about_descriptors_(config.descriptors),
      may_splice_(can_splice(config, source, sink))
{
    if (!config.preface.empty())
        preface_ = std::make_unique<std::string>(std::move(config.preface));
    if (config.rates[0] || config.rates[1])
        throttle_ = std::make_unique<Throttle>(config.rates[0], config.rates[1], config.clock);
    if (config.descriptors == Descriptors::pass && source.kind() == Endpoint::Kind::socket)
        descriptors_ = std::make_unique<DescriptorQueue>();
}

Lane::~Lane()
{
    if (ring_ && buffers_)
        buffers_->give_back(std::move(ring_));
    if (pipe_ && pipes_)
        pipes_->give_back(std::move(pipe_), in_pipe_ == 0);
}

// --- what it waits for ---------------------------------------------------------------

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
        return may_splice_ && in_pipe_ < pipe_max_;
    case Mode::copying:
        break;
    }
    if (descriptors_ && descriptors_->full())
        return false;
    if (!ring_)
        return true;
    if (may_splice_ && weight_ == weight_max)
        return ring_->empty();
    return ring_->room() >= std::min<size_t>(copy_max, held_max_ / 2);
}

bool Lane::wants_sink() const noexcept
{
    return !ended() && !sink_ready_ && (owes() || mode_ == Mode::spliced);
}

int64_t Lane::waits_until() const noexcept
{
    return throttle_ && state_ == State::flowing && has_room() ? throttle_->until() : INT64_MAX;
}

Lane::Waits Lane::waits_for() const noexcept
{
    if (ended())
        return Waits::nothing;
    if (wants_sink() && (owes() || source_ready_))
        return Waits::sink;
    if (waiting())
        return Waits::memory;
    if (waits_until() != INT64_MAX)
        return Waits::rate;
    return wants_source() ? Waits::source : Waits::nothing;
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
    bool dry = sink_.waiting() == 0;
    pauses_dry_ = static_cast<uint8_t>(dry ? std::min(2 * pauses_dry_ + 1, pauses_left_out_max) : 0);
    no_pauses_ = pauses_dry_;
    sink_ready_ = true;
}

size_t Lane::undelivered() const noexcept
{
    bool left_behind = state_ == State::flowing && source_.ended_by_peer();
    return held() + (left_behind ? source_.waiting() : 0);
}

Lane::Mode Lane::main_mode() const noexcept
{
    if (2 * spliced_bytes_ <= bytes_)
        return Mode::copying;
    return is_straight(source_, sink_) ? Mode::spliced : Mode::piped;
}

void Lane::buffer_free()
{
    if (owner_)
        owner_->lane_woken();
}

// --- moving ---------------------------------------------------------------------------

bool Lane::run()
{
    int steps = 0;
    uint64_t enough = bytes_ + turn_max_;
    while (steps < steps_max && bytes_ < enough && !ended() && step())
        ++steps;
    // enough for now: whether there is more is for the next poll to say
    if (steps == steps_max || bytes_ >= enough) {
        source_ready_ = false;
        sink_ready_ = sink_ready_ && mode_ != Mode::spliced;
    }
    release();
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
    if (gone)
        preface_.reset();
    state_ = State::draining;
    finish_if_delivered();
}

// Others may need what is of no use just now.
void Lane::release() noexcept
{
    if (ring_ && buffers_ && ring_->empty())
        buffers_->give_back(std::move(ring_));
    if (pipe_ && pipes_ && in_pipe_ == 0)
        pipes_->give_back(std::move(pipe_), true);
}

// How much of `wanted` the rates let through now.
size_t Lane::allowed(size_t wanted) noexcept
{
    return throttle_ ? throttle_->allowed(wanted, source_) : wanted;
}

void Lane::used(ssize_t bytes) noexcept
{
    if (throttle_)
        throttle_->used(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
}

// --- what calls answer ---------------------------------------------------------------

bool Lane::took(ssize_t n) noexcept
{
    used(n);
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
    if (n > 0)
        return true;
    if (would_block(n))
        sink_ready_ = sink_polled_ = false;
    else
        fail(n == 0 ? EIO : static_cast<int>(-n), false);
    return false;
}

void Lane::end_of_source() noexcept
{
    state_ = State::draining;
    finish_if_delivered();
}

void Lane::fail(int error, bool at_source) noexcept
{
    error_ = error;
    source_failed_ = at_source;
    leave();
    // what was taken before the source broke is still owed to the sink
    state_ = at_source && owes() ? State::draining : State::failed;
}

void Lane::finish_if_delivered() noexcept
{
    if (state_ != State::draining)
        return;
    leave();
    if (owes())
        return;
    state_ = error_ ? State::failed : State::finished;
    if (!closes_sink_)
        sink_.finish_writing();
}

// --- choosing the way ------------------------------------------------------------------

void Lane::weigh(bool large) noexcept
{
    int weight = weight_ + (large ? 1 : -1);
    weight_ = static_cast<int8_t>(std::clamp(weight, -weight_max, weight_max));
}

void Lane::change_mode() noexcept
{
    if (state_ != State::flowing || owes())
        return;
    if (mode_ == Mode::copying && may_splice_ && weight_ == weight_max) {
        // The pages of a unix socket's messages are small, and TCP pays for each: dearer
        // than a copy.
        if (!is_straight(source_, sink_) && source_.family() == AF_UNIX && sink_.family() != AF_UNIX) {
            may_splice_ = false;
            dear_ = true;
            return;
        }
        if (!std::exchange(widened_, true)) {
            source_.widen(widen_to_);
            sink_.widen(widen_to_);
        }
        if (is_straight(source_, sink_))
            mode_ = Mode::spliced;
        else if (take_pipe())
            mode_ = Mode::piped;
        else
            weight_ = 0; // asked again after as many large reads
        sink_was_last_ = false;
    } else if (mode_ != Mode::copying && (weight_ == -weight_max || !may_splice_)) {
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

} // namespace sluice::relay
