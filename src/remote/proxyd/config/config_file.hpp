// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// From a TOML file and the drop-ins in FILE.d/*.toml, in the order of their names, to a
// Config. A drop-in may add services, and may change single keys of those that are there.
// Everything wrong is reported, not just the first.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/proxyd/config/config.hpp"

namespace sluice::proxyd {

struct Problem {
    Place place;
    std::string message; // what was found, and what was expected
};

// "FILE:LINE:COLUMN: message".
std::string to_string(const Problem &problem);

// The Config, or at least one Problem. `adjust` changes what was read before it is checked
// as a whole: the command line has the last word.
tl::expected<Config, std::vector<Problem>> read_config(const std::string &path,
                                                       const std::function<void(Config &)> &adjust = {});

// The same of one text, for tests and fuzzing; `file` is for messages.
tl::expected<Config, std::vector<Problem>> parse_config(std::string_view text, const std::string &file);

} // namespace sluice::proxyd
