// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A daemon's status for the tests of this folder, with awkward texts in it.

#include "remote/proxyd/admin/status.hpp"

namespace sluice::proxyd {

inline DaemonStatus sample_status()
{
    DaemonStatus status;
    status.version = "1.2.3";
    status.pid = 4711;
    status.state = "ready";
    status.start_time_seconds = 1700000000.25;
    status.uptime_seconds = 60.5;
    status.reloads = 3;
    status.reloads_failed = 1;
    status.last_reload_error = "line 3: \"x\"\nis no number";
    status.fds_open = 42;
    status.fds_max = 1024;
    status.workers = {{"main", 2, 0.001, 0.25}, {"worker-1", 1, 0, 0}};

    ServiceStatus web;
    web.name = "web";
    web.state = "open";
    web.listen = {"tcp:[::]:80", "unix:/run/web.sock"};
    web.upstreams = {{"unix:/run/app.sock", "up", "", 2, 11, 0}, {"tcp:10.0.0.1:80", "down", "timed out", 0, 0, 4}};
    web.active = 2;
    web.limit = 256;
    web.accepted = 12;
    web.rejected = {{"limit", 3}, {"access", 0}};
    web.closed = {{"complete", 9}, {"idle-timeout", 1}};
    web.bytes_up = 1000;
    web.bytes_down = UINT64_MAX;
    web.relayed_copying = 24;
    web.relayed_spliced = 976;
    web.buffer_bytes = 65536;
    web.connect_seconds.counts = {5, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    web.connect_seconds.sum_seconds = 20.0035;
    ServiceStatus odd;
    odd.name = "odd \"name\\\nof\xff two lines";
    odd.state = "paused";
    odd.upstreams = {{"unix:/a", "down", "gone", 1, 2, 3}, {"unix:/a", "up", "", 10, 20, 30}};
    status.services = {web, odd};

    ConnectionStatus connection;
    connection.id = 17;
    connection.service = "web";
    connection.peer = "uid 1000 pid 4712";
    connection.upstream = "unix:/run/app.sock";
    connection.state = "relaying";
    connection.age_seconds = 12.5;
    connection.idle_seconds = 0.125;
    connection.up = {"finished", "copying", "nothing", 300, 0};
    connection.down = {"flowing", "spliced", "source", 5000, 4096};
    status.connections = {connection};
    return status;
}

} // namespace sluice::proxyd
