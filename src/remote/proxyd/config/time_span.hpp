// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Time spans as systemd.time(7) writes them: numbers with or without a unit, one after
// the other, added up: "5min 20s", "1h30min", "90", "1.5h", "infinity". A number without
// a unit is in seconds. What `systemd-analyze timespan` takes is taken here, and means
// the same.

#include <chrono>
#include <optional>
#include <string_view>

namespace sluice::proxyd {

inline constexpr std::chrono::microseconds infinite_time = std::chrono::microseconds::max();

// nullopt where `text` is no time span, is negative, or is too long for microseconds;
// "infinity" is infinite_time. Fractions of a microsecond are cut off.
std::optional<std::chrono::microseconds> parse_time_span(std::string_view text);

} // namespace sluice::proxyd
