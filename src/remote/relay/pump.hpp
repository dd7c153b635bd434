// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay between two sides, each with an end that is read and one that is written
// (the same descriptor for a socket): two lanes, the watches that they need, and the
// timeouts that bound them. What to wait for is derived from the lanes' state in one
// place, watch_mask().
//
// A side that ends its stream is half-closed: the other direction goes on. The pump
// ends when both lanes have, when the server side is gone and all that it sent was
// delivered, when a lane fails (what the other holds is still delivered), or by a
// timeout. It calls `on_end` once, from the loop, and may be destroyed there.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sluice/event.hpp>

#include "remote/relay/lane.hpp"

namespace sluice::relay {

struct PumpConfig {
    LaneConfig up;   // client to server
    LaneConfig down; // server to client
    // Without a byte moved, for that long (0: no bound):
    std::chrono::microseconds idle_timeout{0}; // at any time
    std::chrono::microseconds fin_timeout{0};  // once one direction has ended
    // and once a source has ended while bytes of it are still undelivered. Apart from
    // the other, since a reply may take long, but nobody gains by waiting for this.
    std::chrono::microseconds stuck_timeout{0};
};

// How a pump ended.
struct Outcome {
    enum class Kind {
        complete,     // all that was sent was delivered
        failed,       // see error and at
        idle_timeout, // nothing moved
        fin_timeout,  // nothing moved after one direction had ended, or was about to
    };
    Kind kind = Kind::complete;
    int error = 0;            // errno
    std::string at;           // name of the end that failed
    bool at_source = false;   // it was being read
    uint64_t undelivered = 0; // bytes taken from a source that did not reach their sink
};

class Pump {
public:
    // Moments of a pump's life, for debug lines.
    enum class Moment { first_byte_up, first_byte_down, end_up, end_down };

    // `client_write` is empty where the client's one descriptor serves both ways.
    Pump(Loop loop, PumpConfig config, Endpoint client_read, std::optional<Endpoint> client_write, Endpoint server);
    Pump(const Pump &) = delete;
    Pump &operator=(const Pump &) = delete;
    ~Pump();

    // Start moving. `on_end` is called once, later, from the loop.
    void start(std::function<void(const Outcome &)> on_end);
    void on_moment(std::function<void(Moment)> callback) { on_moment_ = std::move(callback); }

    const Lane &up() const noexcept { return *up_; }
    const Lane &down() const noexcept { return *down_; }

private:
    // An end and what is known of it.
    struct Port {
        explicit Port(Endpoint e) : end(std::move(e)) {}
        Endpoint end;
        Lane *reads = nullptr;  // the lane that reads from it
        Lane *writes = nullptr; // the lane that writes to it
        Handle watch;
        int mask = -1;
        bool paused = false; // is left alone for a while, see Lane::may_pause()
        bool gone = false;   // hung up, or nobody reads what is written to it
    };

    int watch_mask(const Port &port) const noexcept;
    void on_events(Port &port, int events);
    void run();
    void settle_gone();
    static void wind_up(Lane &lane);
    bool half_closed() const noexcept;
    bool stuck() const noexcept;
    void note_moments();
    bool over() const noexcept;
    void update_watches();
    void end_pauses();
    void check_timeout();
    void end(Outcome outcome);
    Outcome lanes_outcome() const;

    Loop loop_;
    PumpConfig config_;
    std::unique_ptr<Port> client_in_, client_out_, server_; // client_out_ may be empty
    std::unique_ptr<Lane> up_, down_;
    Timeout timer_;
    Timeout pause_timer_;
    int64_t last_activity_ = 0; // microseconds, monotonic
    bool ended_ = false;
    unsigned seen_moments_ = 0;
    std::function<void(const Outcome &)> on_end_;
    std::function<void(Moment)> on_moment_;
};

} // namespace sluice::relay
