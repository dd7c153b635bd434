// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bytes, rates and times as people read them.

#include <cmath>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "util/net/format.hpp"

namespace sluice::cli {

// "300 B", "4.9 KiB", "1.0 GiB".
inline std::string bytes_text(double bytes)
{
    static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    // 1023.96 KiB would show as 1024.0
    for (; bytes >= (unit == 0 ? 1023.5 : 1023.95) && unit + 1 < std::size(units); ++unit)
        bytes /= 1024;
    return unit == 0 ? fmt::format("{:.0f} {}", bytes, units[unit]) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

inline std::string rate_text(double bytes_per_second)
{
    return bytes_text(bytes_per_second) + "/s";
}

// The two largest units: "0.3 s", "42 s", "3 min 4 s", "2 h 5 min", "9 d 3 h".
inline std::string time_text(double seconds)
{
    if (!(seconds > 0))
        seconds = 0;
    if (seconds < 9.95)
        return format(_("{:.1f} s"), seconds);
    const auto whole = static_cast<uint64_t>(std::llround(std::min(seconds, 1e12)));
    if (whole < 60)
        return format(_("{} s"), whole);
    if (whole < 3600)
        return format(_("{} min {} s"), whole / 60, whole % 60);
    if (whole < 86400)
        return format(_("{} h {} min"), whole / 3600, whole / 60 % 60);
    return format(_("{} d {} h"), whole / 86400, whole / 3600 % 24);
}

} // namespace sluice::cli
