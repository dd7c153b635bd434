// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Times and sizes as users write them. A time is a number, of seconds or with a unit
// (ms, s, min, h), and may have decimals: "30", "1.5s", "250ms". A size is a whole
// number of bytes or of K, M or G (powers of 1024): "64K".

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "util/base/parse.hpp"

namespace sluice {

// Up to a thousand hours, so that no sum of two can overflow.
inline std::optional<std::chrono::microseconds> parse_duration(std::string_view text)
{
    double value = 0;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    if (error != std::errc{} || !(value >= 0))
        return std::nullopt;
    std::string_view unit(stop, static_cast<size_t>(end - stop));
    double usec = unit.empty() || unit == "s" ? 1e6
                  : unit == "ms"              ? 1e3
                  : unit == "min"             ? 60e6
                  : unit == "h"               ? 3600e6
                                              : -1;
    if (usec < 0 || value * usec > 1000 * 3600e6)
        return std::nullopt;
    return std::chrono::microseconds{static_cast<int64_t>(value * usec)};
}

inline std::optional<uint64_t> parse_size(std::string_view text)
{
    unsigned shift = 0;
    if (!text.empty()) {
        switch (text.back()) {
        case 'K':
            shift = 10;
            break;
        case 'M':
            shift = 20;
            break;
        case 'G':
            shift = 30;
            break;
        default:
            break;
        }
    }
    if (shift)
        text.remove_suffix(1);
    auto number = parse_number<uint64_t>(text, 0, UINT64_MAX >> shift);
    return number ? std::optional(*number << shift) : std::nullopt;
}

} // namespace sluice
