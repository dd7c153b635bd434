// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One value of the configuration at a time, from TOML to the type it is for. Each
// function leaves `into` as it was where the value is not what was expected, and says so
// as a Problem at the value's place.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/proxyd/config/toml_value.hpp"
#include "util/base/result.hpp"

namespace sluice::proxyd {

using Problems = std::vector<Problem>;

inline constexpr std::chrono::microseconds config_time_max = std::chrono::hours{1000};

// What is read: the value, and the name of its key for messages.
struct Field {
    std::string name;
    const TomlValue &value;
    Problems &problems;

    void problem(const std::string &message) const;
    // "NAME: found X, expected Y"
    void expected(const std::string &what) const;
    // Each element of an array, or the value itself where it is none.
    std::vector<Field> elements() const;
};

std::optional<uint64_t> read_number(const Field &field, uint64_t min, uint64_t max);
bool read_flag(const Field &field, bool &into);
std::optional<std::string> read_text(const Field &field, const std::string &expected);
// Seconds, or a time span.
std::optional<std::chrono::microseconds> read_duration(const Field &field);
// The same in whole seconds, within bounds.
std::optional<std::chrono::seconds> read_seconds(const Field &field, std::chrono::seconds min,
                                                 std::chrono::seconds max);
// Bytes, or a number with K, M or G.
std::optional<uint64_t> read_size(const Field &field);
// The index of the word that it is.
std::optional<size_t> read_choice(const Field &field, const std::vector<std::string> &words);
// Permissions: "0660", or 0o660.
std::optional<mode_t> read_mode(const Field &field);

// A number, or a name that the machine knows.
std::optional<uid_t> read_user(const Field &field);
std::optional<gid_t> read_group(const Field &field);
// The same from text; the error says what is wrong with it.
Result<uid_t> find_user(const std::string &text);
Result<gid_t> find_group(const std::string &text);

// "a, b or c", with quotes.
std::string list_words(const std::vector<std::string> &words);

} // namespace sluice::proxyd
