// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How many descriptors there may be, and what they are for. The soft limit is raised to
// the hard one at the start; a configuration that cannot fit is refused with the numbers
// rather than failing at some client.

#include <cstdint>

#include "remote/proxyd/config/config.hpp"
#include "util/base/result.hpp"

namespace sluice::proxyd {

// The limit after raising it.
uint64_t raise_file_limit();

struct FileBudget {
    uint64_t limit = 0;
    uint64_t connections = 0; // both ends of each
    uint64_t own = 0;         // listening sockets, loops, the journal, ...
    uint64_t pipes = 0;       // pipes that may be pooled in the rest, over all workers
};

// EMFILE where the connections that are allowed do not fit; `listeners` sockets are
// listened on.
Result<FileBudget> plan_files(const Config &config, uint64_t listeners, uint64_t limit);

} // namespace sluice::proxyd
