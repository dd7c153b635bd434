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
// timeout. It tells its owner once, from the loop, and may be destroyed there. Sockets
// of a pump that ended as complete are closed by then.

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
    // The client has most likely sent something already: look before the first poll.
    bool client_first = false;
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
    int error = 0;                // errno
    std::string at;               // name of the end that failed
    bool at_source = false;       // it was being read
    bool met_descriptors = false; // see Lane::met_descriptors()
    uint64_t undelivered = 0;     // bytes taken from a source that did not reach their sink
};

class PumpOwner {
public:
    // Moments of a pump's life, for debug lines.
    enum class Moment : uint8_t { first_byte_up, first_byte_down, end_up, end_down };

    // Called once; may destroy the pump.
    virtual void pump_ended(const Outcome &outcome) = 0;
    virtual void pump_moment(Moment) {}

protected:
    ~PumpOwner() = default;
};

class Pump final : private LaneOwner {
public:
    using Moment = PumpOwner::Moment;

    // `client_write` is empty where the client's one descriptor serves both ways.
    Pump(Loop loop, PumpConfig config, Endpoint client_read, std::optional<Endpoint> client_write, Endpoint server);
    Pump(const Pump &) = delete;
    Pump &operator=(const Pump &) = delete;
    ~Pump();

    // Start moving. `owner`, which outlives the pump, is told of the end later, from the loop.
    void start(PumpOwner &owner);
    // The same for those that prefer functions.
    void start(std::function<void(const Outcome &)> on_end);
    void on_moment(std::function<void(Moment)> callback);

    const Lane &up() const noexcept { return up_; }
    const Lane &down() const noexcept { return down_; }
    // Monotonic; when bytes last moved (or it was started), and when the first was delivered (0: none yet).
    int64_t last_activity_usec() const noexcept { return last_activity_; }
    int64_t first_byte_usec() const noexcept { return first_byte_; }

private:
    // An end and what is known of it.
    struct Port {
        Port(Pump &p, Endpoint e) noexcept : end(std::move(e)), pump(p) {}
        Endpoint end;
        Pump &pump;
        Lane *reads = nullptr;  // the lane that reads from it
        Lane *writes = nullptr; // the lane that writes to it
        Handle watch;
        int mask = -1;
        bool paused = false;       // is left alone for a while, see Lane::may_pause()
        bool gone = false;         // hung up, or nobody reads what is written to it
        bool end_reported = false; // readable though its source has ended
    };
    class Functions;

    Port &client_out() noexcept { return client_out_ ? *client_out_ : client_in_; }
    template <class F>
    void for_each_port(F &&f)
    {
        f(client_in_);
        if (client_out_)
            f(*client_out_);
        f(server_);
    }
    static int watch_mask(const Port &port) noexcept;
    void open(Port &port);
    void on_events(Port &port, int events);
    void lane_woken() override { run(); }
    void run();
    void settle_gone();
    static void wind_up(Lane &lane);
    bool half_closed() const noexcept;
    bool stuck() const noexcept;
    void leave_last_end_to_close();
    void note_moments();
    bool over() const noexcept { return up_.ended() && down_.ended(); }
    void update_watches();
    void update_timers();
    void wake_at(int64_t when);
    void on_wake();
    unsigned bounds_possible() const noexcept;
    void check_timeouts();
    void end(Outcome outcome);
    Outcome lanes_outcome() const;
    Functions &functions();

    Loop loop_;
    Port client_in_, server_;
    std::unique_ptr<Port> client_out_; // may be empty
    Lane up_, down_;
    const std::chrono::microseconds idle_timeout_, fin_timeout_, stuck_timeout_;
    PumpOwner *owner_ = nullptr;
    std::unique_ptr<Functions> functions_; // if it has no other owner
    Timeout bounds_, wake_;                // none until there is a use for them
    int64_t wake_at_ = INT64_MAX;
    int64_t pause_until_ = INT64_MAX;
    int64_t last_activity_ = 0; // microseconds, monotonic
    int64_t first_byte_ = 0;
    unsigned bounds_armed_ = 0; // for which of the timeouts
    bool ended_ = false;
    bool client_first_ = false;
    uint8_t seen_moments_ = 0;
};

} // namespace sluice::relay
