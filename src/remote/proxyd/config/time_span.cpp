// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/time_span.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::proxyd {
namespace {

constexpr std::string_view blanks = " \t\n\r";
constexpr std::string_view digits = "0123456789";

constexpr uint64_t usec = 1;
constexpr uint64_t msec = 1000 * usec;
constexpr uint64_t second = 1000 * msec;
constexpr uint64_t minute = 60 * second;
constexpr uint64_t hour = 60 * minute;
constexpr uint64_t day = 24 * hour;
constexpr uint64_t week = 7 * day;
constexpr uint64_t month = 2629800 * second; // a twelfth of a year
constexpr uint64_t year = 31557600 * second; // 365.25 days

// The first that fits is taken, so a word stands before those that it begins with.
constexpr std::pair<std::string_view, uint64_t> units[] = {
    {"seconds", second}, {"second", second}, {"sec", second},  {"s", second},  {"minutes", minute}, {"minute", minute},
    {"min", minute},     {"months", month},  {"month", month}, {"M", month},   {"msec", msec},      {"ms", msec},
    {"m", minute},       {"hours", hour},    {"hour", hour},   {"hr", hour},   {"h", hour},         {"days", day},
    {"day", day},        {"d", day},         {"weeks", week},  {"week", week}, {"w", week},         {"years", year},
    {"year", year},      {"y", year},        {"usec", usec},   {"us", usec},   {"\u03bcs", usec},   {"\u00b5s", usec},
};

void skip_blanks(std::string_view &text)
{
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
}

std::string_view take_digits(std::string_view &text)
{
    size_t count = std::min(text.find_first_not_of(digits), text.size());
    std::string_view taken = text.substr(0, count);
    text.remove_prefix(count);
    return taken;
}

// How many microseconds the number before stands for, each; seconds where no unit follows.
// 0 where something follows that is neither a unit nor set off by a blank.
uint64_t take_unit(std::string_view &text)
{
    bool at_end = text.empty() || blanks.find(text.front()) != std::string_view::npos;
    skip_blanks(text);
    for (auto [name, value] : units) {
        if (text.starts_with(name)) {
            text.remove_prefix(name.size());
            return value;
        }
    }
    return at_end ? second : 0;
}

bool add(uint64_t &sum, uint64_t value)
{
    return !__builtin_add_overflow(sum, value, &sum) && sum <= static_cast<uint64_t>(INT64_MAX);
}

} // namespace

std::optional<std::chrono::microseconds> parse_time_span(std::string_view text)
{
    constexpr std::string_view infinity = "infinity";
    skip_blanks(text);
    if (text.starts_with(infinity)) {
        bool alone = text.find_first_not_of(blanks, infinity.size()) == std::string_view::npos;
        return alone ? std::optional(infinite_time) : std::nullopt;
    }
    uint64_t sum = 0;
    bool any = false;
    for (;; any = true) {
        skip_blanks(text);
        if (text.empty())
            return any ? std::optional(std::chrono::microseconds{static_cast<int64_t>(sum)}) : std::nullopt;
        if (text.size() > 1 && text[0] == '+' && digits.find(text[1]) != std::string_view::npos)
            text.remove_prefix(1);
        std::string_view whole = take_digits(text), fraction;
        bool has_point = text.starts_with('.');
        if (has_point) {
            text.remove_prefix(1);
            fraction = take_digits(text);
        }
        if (has_point ? fraction.empty() : whole.empty())
            return std::nullopt;
        uint64_t unit = take_unit(text);
        if (unit == 0)
            return std::nullopt;
        uint64_t value = 0;
        for (char digit : whole) {
            if (__builtin_mul_overflow(value, 10, &value) || !add(value, static_cast<uint64_t>(digit - '0')))
                return std::nullopt;
        }
        if (__builtin_mul_overflow(value, unit, &value) || !add(sum, value))
            return std::nullopt;
        uint64_t weight = unit / 10;
        for (char digit : fraction) {
            if (!add(sum, static_cast<uint64_t>(digit - '0') * weight))
                return std::nullopt;
            weight /= 10;
        }
    }
}

} // namespace sluice::proxyd
