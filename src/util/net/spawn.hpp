// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Start a daemon that outlives us: in a session of its own, as a child of init, in
// the root folder, with /dev/null as its only descriptors (0, 1 and 2), default
// signals, and of our environment no more than what says who and where the user is,
// so that nothing of a login that has ended stays in it.

#include <string>
#include <vector>

#include "util/base/result.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice {

// Returns once the program runs (or could not be run): a matter of milliseconds, in
// which it blocks. The result is a pidfd that becomes readable when the daemon's
// first process ends; it is empty where the kernel has none (before Linux 5.3).
// `binary` is a path. May be called while other threads run.
Result<UniqueFd> spawn_detached(const std::string &binary, const std::vector<std::string> &arguments);

} // namespace sluice
