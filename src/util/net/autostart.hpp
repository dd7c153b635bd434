// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Connect to a daemon's unix socket, and start the daemon first where nobody
// listens, as libvirt's client does for the session daemons: one at a time, under
// the lock file that libvirt's client takes as well, and then trying until the
// socket answers or the connect timeout has gone by.

#include <string>
#include <vector>

#include "util/net/connect.hpp"

namespace sluice {

struct DaemonStart {
    std::string binary; // a path
    std::vector<std::string> arguments;
    std::string run_dir;   // made, for the user alone, where it is missing
    std::string lock_path; // in run_dir; gone again afterwards

    bool operator==(const DaemonStart &) const = default;
};

// Errors are connect_to()'s; and where the daemon could not be started its errno, or
// ETIMEDOUT where it runs but does not listen, or ECONNREFUSED where it ended at once.
Task<Result<UniqueFd>> connect_or_start(Loop loop, Address address, DaemonStart daemon, ConnectOptions options);

} // namespace sluice
