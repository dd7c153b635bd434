// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A TOML text (toml.io, version 1.0) as a tree of plain values, each with its place in
// the file. The library that parses it is seen by toml_value.cpp alone. It stops at
// the first fault; here what is at fault is left out and the rest is read again, so that
// further faults come to light too.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "remote/proxyd/config/config_file.hpp"

namespace sluice::proxyd {

struct TomlEntry;
struct TomlDate {}; // dates and times, which nothing here wants

struct TomlValue {
    using Array = std::vector<TomlValue>;
    using Table = std::vector<TomlEntry>;

    std::variant<Table, Array, std::string, int64_t, double, bool, TomlDate> data;
    bool octal = false; // an integer written as 0o...
    Place place;

    const Table *table() const noexcept { return std::get_if<Table>(&data); }
    const Array *array() const noexcept { return std::get_if<Array>(&data); }
    const std::string *text() const noexcept { return std::get_if<std::string>(&data); }
    const int64_t *integer() const noexcept { return std::get_if<int64_t>(&data); }
};

struct TomlEntry {
    std::string key;
    Place place; // of the key
    TomlValue value;
};

// What was found, for messages: `"x"`, `5`, `a table`.
std::string describe(const TomlValue &value);

struct TomlText {
    TomlValue root; // a table, in the order of the text; without what is at fault
    std::vector<Problem> problems;
};

TomlText parse_toml(std::string_view text, const std::string &file);

} // namespace sluice::proxyd
