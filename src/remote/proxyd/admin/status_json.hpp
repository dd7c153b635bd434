// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The status as JSON, for GET /status. docs/admin.md lists the keys; they are only ever
// added to. Times are in seconds, sizes in bytes, counters run since the daemon started.

#include <string>

#include "remote/proxyd/admin/status.hpp"

namespace sluice::proxyd {

// The key "connections" is there only `with_connections`, even if there are none.
std::string to_json(const DaemonStatus &status, bool with_connections);

} // namespace sluice::proxyd
