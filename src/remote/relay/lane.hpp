// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One direction of a relay: takes bytes from a source and gives them to a sink, in
// order, holding at most `held_max` in between. It never blocks and never waits; it
// moves what it can and says what it waits for, which follows from its state alone.
//
// Bytes go by one of three ways:
//   copying    through a ring, for small messages and for anything that can be read
//   spliced    by splice() straight from source to sink, where one of them is a pipe
//   piped      by splice() through a pipe of our own, between two sockets
// A lane starts copying, changes over once reads have been large for a while, and
// goes back for good where the kernel refuses, or for as long as messages are small.
//
// The end of the source is passed on once everything has been delivered.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "remote/relay/endpoint.hpp"
#include "util/base/ring.hpp"

namespace sluice::relay {

struct LaneConfig {
    size_t held_max = 1 << 20;  // a power of two, at least 4096
    size_t chunk_max = 1 << 20; // moved by one splice
    size_t widen_to = 1 << 20;  // asked of the kernel for either end
    bool may_splice = true;
};

class Lane {
public:
    enum class State {
        flowing,
        draining, // the source has ended, or is not to be read any more
        finished, // everything was delivered and the end passed on
        failed,   // see error(); what is held cannot be delivered
    };
    enum class Mode { copying, spliced, piped };

    Lane(Endpoint &source, Endpoint &sink, LaneConfig config);
    Lane(const Lane &) = delete;
    Lane &operator=(const Lane &) = delete;

    State state() const noexcept { return state_; }
    bool ended() const noexcept { return state_ == State::finished || state_ == State::failed; }
    // What the source ended with: false when the lane was told to stop.
    bool saw_end() const noexcept { return saw_end_; }
    // errno of the failure, and whether it came from the source or the sink.
    int error() const noexcept { return error_; }
    bool source_failed() const noexcept { return source_failed_; }

    // What the lane waits for now.
    bool wants_source() const noexcept;
    bool wants_sink() const noexcept;

    // A poll has found an end ready (or in error, which the next call finds out).
    void source_ready() noexcept { source_ready_ = true; }
    void sink_ready() noexcept { sink_ready_ = sink_polled_ = true; }

    // A large pipe with a slow reader is writable again as soon as a page of it is free,
    // and waiting for that means a turn for each page. Better to let it run half empty:
    // while this is so, call pause_over() after `pause` in the place of waiting for the sink.
    bool may_pause() const noexcept;
    void pause_over() noexcept;
    static constexpr std::chrono::microseconds pause{1000};

    // Move bytes until something would block, or for long enough to let others run.
    // True if any were moved, or the lane ended.
    bool run();

    // Read no more; deliver what is held and end. With `gone` nobody takes it any
    // more: ends at once, as failed (EPIPE) where bytes were held.
    void stop(bool gone);

    const Endpoint &source() const noexcept { return source_; }
    const Endpoint &sink() const noexcept { return sink_; }
    size_t held() const noexcept { return ring_.size() + in_pipe_; }
    // Held, or left in a source that has ended, where a splice would have taken it from.
    size_t undelivered() const noexcept;
    uint64_t bytes() const noexcept { return bytes_; } // delivered
    uint64_t calls() const noexcept { return calls_; } // system calls that move bytes
    Mode mode() const noexcept { return mode_; }
    // The mode that moved most of the bytes.
    Mode main_mode() const noexcept;

private:
    bool has_room() const noexcept;
    bool step();
    bool step_copying();
    bool step_spliced();
    bool step_piped();
    bool fill_ring();
    bool empty_ring();
    bool fill_pipe();
    bool empty_pipe();
    bool source_has_more() noexcept;
    void lay_to(bool sink) noexcept;
    // What a system call answered, at one end of the lane.
    bool took(ssize_t n) noexcept;
    bool gave(ssize_t n) noexcept;
    void end_of_source() noexcept;
    void fail(int error, bool at_source) noexcept;
    void finish_if_delivered() noexcept;

    void weigh(bool large) noexcept;
    void change_mode() noexcept;
    bool refused(int error) noexcept;
    bool make_pipe() noexcept;

    Endpoint &source_;
    Endpoint &sink_;
    LaneConfig config_;
    State state_ = State::flowing;
    Mode mode_ = Mode::copying;
    bool saw_end_ = false;
    bool source_failed_ = false;
    int error_ = 0;

    // Optimistic: a lane tries before it waits. EAGAIN says otherwise.
    bool source_ready_ = false;
    bool sink_ready_ = true;
    bool sink_polled_ = false; // sink_ready_ is what a poll said
    int refusals_ = 0;
    bool sink_was_last_ = false; // which end the last EAGAIN of a straight splice was laid to

    Ring ring_;
    UniqueFd pipe_read_, pipe_write_;
    size_t in_pipe_ = 0;

    bool may_splice_;
    int pauses_dry_ = 0; // the more of them in a row, the fewer are tried
    int no_pauses_ = 0;  // so many more times the sink is waited for and not left alone
    int weight_ = 0;     // recent reads: up for large ones, down for small ones
    uint64_t bytes_ = 0, spliced_bytes_ = 0, calls_ = 0;
};

} // namespace sluice::relay
