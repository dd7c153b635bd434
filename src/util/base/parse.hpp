// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Numbers out of text, strictly: digits alone (no sign, space or prefix), the whole
// of the text, and within the bounds that the caller gives.

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>

namespace sluice {

// nullopt where `text` is not a decimal number in [min, max].
template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text, T min = 0, T max = std::numeric_limits<T>::max()) noexcept
{
    T value = 0;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value, 10);
    if (text.empty() || error != std::errc{} || stop != end || value < min || value > max)
        return std::nullopt;
    return value;
}

} // namespace sluice
