// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the workers of one daemon have in common. Made before them, gone after them;
// everything is safe from any thread.

#include <atomic>
#include <cstdint>
#include <functional>

#include "util/net/journal.hpp"

namespace sluice::proxyd {

struct Shared {
    explicit Shared(Log &l) : log(l) {}

    Log &log;
    std::atomic<uint64_t> next_connection_id{1};
    std::atomic<int64_t> last_end_usec{0}; // when a connection ended last
    std::atomic<bool> draining{false};
    // A worker's last connection has ended while draining. Set before there are workers.
    std::function<void()> on_drained;
};

} // namespace sluice::proxyd
