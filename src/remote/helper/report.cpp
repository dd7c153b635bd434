// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/helper/report.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "util/base/clock.hpp"
#include "util/glib/i18n.hpp"

namespace sluice::helper {
namespace {

void write_stderr(std::string_view text)
{
    // nothing useful can be done about a stderr that fails
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

std::string amount(double bytes)
{
    const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
        bytes /= 1024;
    return unit == 0 ? fmt::format("{:.0f} {}", bytes, units[unit]) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

const char *mode_name(relay::Lane::Mode mode)
{
    switch (mode) {
    case relay::Lane::Mode::copying:
        return "copy";
    case relay::Lane::Mode::spliced:
        return "splice";
    case relay::Lane::Mode::piped:
        return "splice-pipe";
    }
    return "?";
}

} // namespace

double Reporter::seconds() const
{
    return static_cast<double>(monotonic_usec() - start_) / 1e6;
}

void Reporter::error(std::string_view message) const
{
    write_stderr(fmt::format("{}: {}\n", program_name(options_), message));
}

void Reporter::debug(std::string_view step, std::string_view detail) const
{
    if (debugging())
        write_stderr(fmt::format("{}: {:.6f} {}{}{}\n", program_name(options_), seconds(), step,
                                 detail.empty() ? "" : ": ", detail));
}

void Reporter::start_progress(Loop &loop, const relay::Pump &pump)
{
    bool shown =
        options_.progress == Progress::always || (options_.progress == Progress::automatic && isatty(STDERR_FILENO));
    if (!shown)
        return;
    progress_of_ = &pump;
    progress_time_ = monotonic_usec();
    progress_timer_ = loop.every(std::chrono::milliseconds{500}, [this] { show_progress(*progress_of_, false); });
}

void Reporter::stop_progress()
{
    if (!progress_of_)
        return;
    show_progress(*progress_of_, true);
    progress_timer_.remove();
    progress_of_ = nullptr;
}

void Reporter::show_progress(const relay::Pump &pump, bool last)
{
    uint64_t bytes = pump.up().bytes() + pump.down().bytes();
    int64_t now = monotonic_usec();
    // live: over the last interval; at the end: over all of it
    double span = last ? seconds() : static_cast<double>(now - progress_time_) / 1e6;
    auto moved = static_cast<double>(last ? bytes : bytes - progress_bytes_);
    progress_bytes_ = bytes;
    progress_time_ = now;
    write_stderr(
        fmt::format(fmt::runtime(_("\r{} up, {} down, {}/s, {:.1f} s")), amount(static_cast<double>(pump.up().bytes())),
                    amount(static_cast<double>(pump.down().bytes())), amount(span > 0 ? moved / span : 0), seconds()) +
        (last ? "\x1b[K\n" : "\x1b[K"));
}

void Reporter::stats(const relay::Pump &pump, uint64_t waits) const
{
    if (!options_.stats)
        return;
    // for programs: not translated, and fields are only ever added
    const relay::Lane &up = pump.up(), &down = pump.down();
    write_stderr(fmt::format("{}: stats seconds={:.6f} up_bytes={} up_calls={} up_mode={} down_bytes={} down_calls={} "
                             "down_mode={} waits={} calls={}\n",
                             program_name(options_), seconds(), up.bytes(), up.calls(), mode_name(up.main_mode()),
                             down.bytes(), down.calls(), mode_name(down.main_mode()), waits,
                             up.calls() + down.calls() + waits));
}

} // namespace sluice::helper
