// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The status of a sluiced as sluice shows it, read from the JSON of GET /status. Every
// text is fit for a line on a terminal, whatever the daemon or its clients made of it.

#include <cstdint>
#include <string>
#include <vector>

#include "util/base/result.hpp"

namespace sluice::cli {

struct Lane {
    std::string state, mode, waits_for;
    uint64_t bytes = 0;
};

struct Connection {
    uint64_t id = 0;
    std::string service, peer, upstream, state;
    double age_seconds = 0, idle_seconds = 0;
    Lane up, down;
};

struct Upstream {
    std::string address, state, last_error;
    uint64_t active = 0, connects = 0, failures = 0;
};

struct Service {
    std::string name, state;
    std::vector<std::string> listen;
    std::vector<Upstream> upstreams;
    uint64_t active = 0, limit = 0;
    uint64_t accepted = 0, rejected = 0; // for all reasons together
    uint64_t bytes_up = 0, bytes_down = 0;
};

struct Status {
    std::string version, state, last_reload_error;
    uint64_t pid = 0;
    double uptime_seconds = 0;
    uint64_t reloads = 0, reloads_failed = 0, fds_open = 0, fds_max = 0;
    double loop_lag_seconds = 0; // of the worker that is latest
    std::vector<Service> services;
    std::vector<Connection> connections;
};

// Code: EPROTO, where the text is no JSON or no status.
Result<Status> parse_status(const std::string &json);

} // namespace sluice::cli
