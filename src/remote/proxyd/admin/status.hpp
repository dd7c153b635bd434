// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What sluiced tells of itself, as plain values: taken on the threads where things
// happen, read on the one that answers. `Control` is the daemon as the admin server
// sees it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "util/base/result.hpp"

namespace sluice::proxyd {

// Seconds that connecting to an upstream took.
struct Histogram {
    static constexpr std::array<double, 12> bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                   0.01,   0.05,    0.1,    0.5,   1,      5};
    std::array<uint64_t, bounds.size() + 1> counts{}; // the last: above all bounds
    double sum_seconds = 0;
};

struct Tally {
    std::string reason; // "limit", "per-peer", "access", ... ; "complete", "idle-timeout", ...
    uint64_t count = 0;
};

struct LaneStatus {
    std::string state;     // flowing, draining, finished, failed
    std::string mode;      // copying, spliced, piped
    std::string waits_for; // source, sink, rate, memory, nothing
    uint64_t bytes = 0;
    size_t held_bytes = 0;
};

struct ConnectionStatus {
    uint64_t id = 0;
    std::string service;
    std::string peer;     // "uid 1000 pid 4711", "[::1]:5432"
    std::string upstream; // empty while there is none
    std::string state;    // header, connecting, waiting, relaying
    double age_seconds = 0;
    double idle_seconds = 0;
    LaneStatus up, down;
};

struct UpstreamStatus {
    std::string address;
    std::string state; // up, down
    std::string last_error;
    uint64_t active = 0;
    uint64_t connects = 0;
    uint64_t failures = 0;
};

struct ServiceStatus {
    std::string name;
    std::string state; // open, full, draining, paused
    std::vector<std::string> listen;
    std::vector<UpstreamStatus> upstreams;
    uint64_t active = 0;
    uint64_t limit = 0;
    uint64_t accepted = 0;
    std::vector<Tally> rejected;
    std::vector<Tally> closed;
    uint64_t bytes_up = 0, bytes_down = 0;
    uint64_t relayed_copying = 0, relayed_spliced = 0; // bytes by mode, both directions
    uint64_t buffer_bytes = 0;                         // in use now
    Histogram connect_seconds;
};

struct WorkerStatus {
    std::string name;
    uint64_t connections = 0;
    double loop_lag_seconds = 0; // how late a timer was of late
    double loop_lag_max_seconds = 0;
};

struct DaemonStatus {
    std::string version;
    int pid = 0;
    std::string state;             // ready, draining
    double start_time_seconds = 0; // Unix time; taken once, so that it stays the same
    double uptime_seconds = 0;     // of the monotonic clock
    uint64_t reloads = 0, reloads_failed = 0;
    std::string last_reload_error;
    uint64_t fds_open = 0, fds_max = 0;
    std::vector<WorkerStatus> workers;
    std::vector<ServiceStatus> services;
    std::vector<ConnectionStatus> connections; // newest first; only if asked for
};

class Control {
public:
    virtual ~Control() = default;
    // Calls back on the main loop, at once or soon.
    virtual void snapshot(bool with_connections, std::function<void(DaemonStatus)> done) = 0;
    // Stop taking connections, those there are run on; and take them again. ENOENT: no such service.
    virtual Result<void> drain(const std::string &service) = 0;
    virtual Result<void> resume(const std::string &service) = 0;
    // Calls back with ENOENT where there is none (any more).
    virtual void close_connection(uint64_t id, std::function<void(Result<void>)> done) = 0;
};

} // namespace sluice::proxyd
