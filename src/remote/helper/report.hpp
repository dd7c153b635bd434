// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the helper says on stderr: messages by level, a live line of progress, and the
// final line of figures. Each line is one write, and a stderr that nobody reads is no
// reason to end.

#include <cstdint>
#include <string>
#include <string_view>

#include <sluice/event.hpp>

#include "remote/helper/options.hpp"
#include "remote/relay/pump.hpp"

namespace sluice::helper {

class Reporter {
public:
    // `start` is when the program began, in microseconds of the monotonic clock.
    Reporter(const Options &options, int64_t start) : options_(options), start_(start) {}

    double seconds() const;

    void error(std::string_view message) const;
    // "0.001234 connect: unix:/run/x.sock", for those who look for lost time.
    void debug(std::string_view step, std::string_view detail = {}) const;
    bool debugging() const noexcept { return options_.log_level == LogLevel::debug; }

    // Show progress from now on, if that was asked for. `pump` must outlive the reporter
    // or stop_progress().
    void start_progress(Loop &loop, const relay::Pump &pump);
    void stop_progress();

    void stats(const relay::Pump &pump, uint64_t waits) const;

private:
    void show_progress(const relay::Pump &pump, bool last);

    const Options &options_;
    int64_t start_;
    Timeout progress_timer_;
    const relay::Pump *progress_of_ = nullptr;
    uint64_t progress_bytes_ = 0;
    int64_t progress_time_ = 0;
};

} // namespace sluice::helper
