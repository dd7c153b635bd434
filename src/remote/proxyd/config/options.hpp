// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The command line of sluiced. It names a file, or it is a configuration of its own: one
// service, "default", to one ADDRESS, as with systemd-socket-proxyd, whose options are
// taken as they are.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "remote/proxyd/config/config_file.hpp"
#include "util/base/result.hpp"

namespace sluice::proxyd {

struct Options {
    bool show_version = false;
    bool check = false;      // the file is to be read, and no more
    std::string config_path; // empty: the service below is all there is
    ServiceConfig service;

    // In the place of what the file says.
    std::optional<unsigned> workers;
    std::optional<std::chrono::microseconds> drain_timeout, exit_idle_time;
    std::optional<LogLevel> log_level;
    std::vector<ListenConfig> admin;
};

// Prints the help and ends the program where that is asked for. Errors say what is
// wrong with which argument, and what to write instead.
Result<Options> parse_options(int argc, char **argv);

// What the options stand for. Reads the file anew each time.
tl::expected<Config, std::vector<Problem>> load_config(const Options &options);

} // namespace sluice::proxyd
