// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One direction of a relay: takes bytes from a source and gives them to a sink, in
// order, holding a bounded number in between. It never blocks and never waits; it moves
// what it can and says what it waits for, which follows from its state alone.
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
#include <memory>
#include <string>

#include "remote/relay/buffer_pool.hpp"
#include "remote/relay/endpoint.hpp"
#include "remote/relay/pipe_pool.hpp"
#include "util/base/clock.hpp"
#include "util/base/ring.hpp"
#include "util/base/token_bucket.hpp"

namespace sluice::relay {

class DescriptorQueue;
class Throttle;

// What becomes of file descriptors that come along with the bytes of a unix socket.
enum class Descriptors : uint8_t {
    ignore, // they are lost unseen
    detect, // an error where they are seen: reading sees them, splicing does not
    refuse, // an error, and no splicing, so that none goes unseen
    pass,   // they go along, at the same place in the stream; no splicing
};

// Everything pointed to outlives the lane.
struct LaneConfig {
    size_t held_max = 1 << 20;  // a power of two, at least 4096; with pools theirs counts
    size_t chunk_max = 1 << 20; // moved by one splice
    size_t turn_max = 0;        // and by one run(), about (0: 1 MiB with pools, else 16 MiB)
    size_t widen_to = 1 << 20;  // asked of the kernel for either end, once there is much to move
    bool may_splice = true;
    Descriptors descriptors = Descriptors::ignore;
    BufferPool *buffers = nullptr;              // else a ring of its own from the first read on
    PipePool *pipes = nullptr;                  // else a pipe of its own
    TokenBucket *rates[2] = {nullptr, nullptr}; // what it takes is within both
    std::string preface;                        // is delivered before all that comes from the source
    int64_t (*clock)() = monotonic_usec;        // for the rates
};

class LaneOwner {
public:
    // What the lane waited for and no descriptor shows has come: run it. May destroy it.
    virtual void lane_woken() = 0;

protected:
    ~LaneOwner() = default;
};

class Lane final : private BufferPool::Waiter {
public:
    enum class State : uint8_t {
        flowing,
        draining, // the source has ended, or is not to be read any more
        finished, // everything was delivered and the end passed on
        failed,   // see error(); what is held cannot be delivered
    };
    enum class Mode : uint8_t { copying, spliced, piped };
    enum class Waits : uint8_t { nothing, source, sink, rate, memory };

    // `owner` is told of what the pools and rates give; it may be nullptr where none is used.
    Lane(Endpoint &source, Endpoint &sink, LaneConfig config, LaneOwner *owner = nullptr);
    ~Lane();

    State state() const noexcept { return state_; }
    bool ended() const noexcept { return state_ == State::finished || state_ == State::failed; }
    // errno of the failure, and whether it came from the source or the sink.
    int error() const noexcept { return error_; }
    bool source_failed() const noexcept { return source_failed_; }
    // It failed (EBADMSG) because descriptors came along that may not, or cannot, be passed on.
    bool met_descriptors() const noexcept { return met_descriptors_; }

    // What the lane waits for now: the ends that are to be polled,
    bool wants_source() const noexcept;
    bool wants_sink() const noexcept;
    // the time from which on it may go on, by config.clock (INT64_MAX: it is not that),
    int64_t waits_until() const noexcept;
    // and all of it in a word.
    Waits waits_for() const noexcept;

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

    // Whoever owns the sink closes it when this lane has finished: no need to pass the end on.
    void leave_end_to_close() noexcept { closes_sink_ = true; }

    const Endpoint &source() const noexcept { return source_; }
    const Endpoint &sink() const noexcept { return sink_; }
    size_t held() const noexcept { return (ring_ ? ring_->size() : 0) + in_pipe_; }
    // Held, or left in a source that has ended, where a splice would have taken it from.
    size_t undelivered() const noexcept;
    uint64_t bytes() const noexcept { return bytes_; } // delivered, but for the preface
    uint64_t spliced_bytes() const noexcept { return spliced_bytes_; }
    size_t preface_left() const noexcept { return preface_ ? preface_->size() : 0; }
    uint64_t calls() const noexcept { return calls_; } // system calls that move bytes
    Mode mode() const noexcept { return mode_; }
    // The mode that moved most of the bytes.
    Mode main_mode() const noexcept;

private:
    bool owes() const noexcept { return held() > 0 || preface_; }
    bool has_room() const noexcept;
    bool step();
    void release() noexcept;

    bool step_copying();
    bool fill_ring();
    bool empty_ring();
    bool give_preface(const Ring::Pieces &filled);
    void delivered(size_t bytes, size_t of);
    bool take_ring();
    ssize_t read(const Ring::Pieces &space);
    ssize_t write(const Ring::Pieces &filled);

    bool step_spliced();
    bool source_has_more() noexcept;
    void lay_to(bool sink) noexcept;
    bool step_piped();
    bool fill_pipe();
    bool empty_pipe();
    bool take_pipe() noexcept;

    size_t allowed(size_t wanted) noexcept;
    void used(ssize_t bytes) noexcept;
    // What a system call answered, at one end of the lane.
    bool took(ssize_t n) noexcept;
    bool gave(ssize_t n) noexcept;
    void end_of_source() noexcept;
    void fail(int error, bool at_source) noexcept;
    void finish_if_delivered() noexcept;

    void weigh(bool large) noexcept;
    void change_mode() noexcept;
    bool refused(int error) noexcept;

    void buffer_free() override;

    Endpoint &source_;
    Endpoint &sink_;
    LaneOwner *const owner_;
    BufferPool *const buffers_;
    PipePool *const pipes_;
    std::unique_ptr<Ring> ring_;
    std::unique_ptr<std::string> preface_; // what is left of it
    std::unique_ptr<Throttle> throttle_;
    std::unique_ptr<DescriptorQueue> descriptors_;
    uint64_t bytes_ = 0, spliced_bytes_ = 0, calls_ = 0;
    Pipe pipe_;
    uint32_t in_pipe_ = 0;
    const uint32_t held_max_, pipe_max_, chunk_max_, turn_max_, widen_to_;
    int error_ = 0;

    State state_ = State::flowing;
    Mode mode_ = Mode::copying;
    const Descriptors about_descriptors_;
    bool source_failed_ = false;
    bool met_descriptors_ = false;
    bool may_splice_;
    bool widened_ = false;
    bool dear_ = false; // splicing costs more than copying between these ends
    bool closes_sink_ = false;

    // Optimistic: a lane tries before it waits. EAGAIN says otherwise.
    bool source_ready_ = false;
    bool sink_ready_ = true;
    bool sink_polled_ = false;   // sink_ready_ is what a poll said
    bool sink_was_last_ = false; // which end the last EAGAIN of a straight splice was laid to
    uint8_t refusals_ = 0;
    uint8_t pauses_dry_ = 0; // the more of them in a row, the fewer are tried
    uint8_t no_pauses_ = 0;  // so many more times the sink is waited for and not left alone
    int8_t weight_ = 0;      // recent reads: up for large ones, down for small ones
};

} // namespace sluice::relay
