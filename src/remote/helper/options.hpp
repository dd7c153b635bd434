// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The command line of sluice-ssh-helper, and that of virt-ssh-helper where the
// program is called by that name.

#include <chrono>
#include <cstddef>
#include <string>

#include "util/base/result.hpp"

namespace sluice::helper {

enum class LogLevel { error, warning, info, debug };
enum class Progress { never, automatic, always };

struct Options {
    std::string address;
    bool as_virt_ssh_helper = false;
    bool read_only = false;
    bool show_version = false;
    bool stats = false;
    Progress progress = Progress::never;
    LogLevel log_level = LogLevel::warning;
    std::chrono::microseconds connect_timeout = std::chrono::seconds{10};
    std::chrono::microseconds idle_timeout{0};
    std::chrono::microseconds fin_timeout{0};
    std::chrono::microseconds stuck_timeout = std::chrono::seconds{30}; // --fin-timeout sets both
    size_t buffer_bytes = 1 << 20;
};

inline constexpr size_t buffer_bytes_min = 4 << 10;
inline constexpr size_t buffer_bytes_max = 1 << 20;

// The name that the program goes by in messages.
const char *program_name(const Options &options);

// Prints the help and ends the program where that is asked for. Errors say what is
// wrong with which argument, and what to write instead.
Result<Options> parse_options(int argc, char **argv);

} // namespace sluice::helper
