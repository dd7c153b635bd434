// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Listening sockets handed over by systemd, or by anything that speaks its protocol
// (LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, sd_listen_fds(3)): from a socket unit, and
// out of the service's descriptor store. To be asked once, before any thread is there.

#include <string>
#include <vector>

#include "util/base/result.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice {

struct PassedFd {
    UniqueFd fd;      // FD_CLOEXEC is set
    std::string name; // FileDescriptorName=, or "unknown" where whoever passed it gave none
};

// Takes them all, in the order they came, and unsets the variables, so that no child
// takes them for its own. None where there are none, or where they are meant for another
// process. Each is a stream socket that listens; else the error says which one (number
// and name) is what, and what to write in the unit. EINVAL, EBADF, ENOTSOCK, EPROTOTYPE.
Result<std::vector<PassedFd>> take_passed_sockets();

} // namespace sluice
