// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Monotonic time in microseconds, the unit of the event library. The clock that
// g_get_monotonic_time() reads, so that both can be compared.

#include <cstdint>
#include <ctime>

namespace sluice {

inline int64_t monotonic_usec() noexcept
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

} // namespace sluice
