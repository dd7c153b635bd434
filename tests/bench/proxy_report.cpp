// SPDX-License-Identifier: LGPL-2.1-or-later

#include "proxy_report.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace sluice::bench {

namespace {

struct Row {
    const char *figure;
    const char *text;
};

// In the order of the table.
constexpr Row rows[] = {
    {"wall-up", "wall up s/GiB"},
    {"cpu-up", "cpu up s/GiB"},
    {"calls-up", "calls up /GiB"},
    {"wall-down", "wall down s/GiB"},
    {"cpu-down", "cpu down s/GiB"},
    {"calls-down", "calls down /GiB"},
    {"wall-up-one", "one core: wall up s/GiB"},
    {"cpu-up-one", "one core: cpu up s/GiB"},
    {"wall-down-one", "one core: wall down s/GiB"},
    {"cpu-down-one", "one core: cpu down s/GiB"},
    {"connections", "connections /s"},
    {"connection-cpu", "cpu of 1,000, ms"},
    {"median-1", "trip, 1: median us"},
    {"p99-1", "trip, 1: p99 us"},
    {"median-many", "trip, many: median us"},
    {"p99-many", "trip, many: p99 us"},
    {"rate-beside", "beside a transfer of MiB/s"},
    {"median-1-beside", "trip, 1: median us"},
    {"p99-1-beside", "trip, 1: p99 us"},
    {"median-many-beside", "trip, many: median us"},
    {"p99-many-beside", "trip, many: p99 us"},
    {"idle-reached", "idle connections had"},
    {"idle-memory", "memory of an idle one, B"},
    {"idle-fds", "descriptors of it"},
    {"trip-alone", "cpu of a trip us"},
    {"trip-few", "  beside a few idle us"},
    {"trip-idle", "  beside all idle us"},
    {"flat", "  all idle / alone"},
};

double median(std::vector<double> values)
{
    if (values.empty())
        return std::nan("");
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string show(double value)
{
    if (std::isnan(value))
        return "-";
    return std::fabs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

} // namespace

Target Target::parse(const std::string &text)
{
    const size_t slash = text.find('/');
    const size_t sign = text.find_first_of("<>");
    if (slash == std::string::npos || sign == std::string::npos || slash > sign || text.size() < sign + 3)
        throw std::invalid_argument("not FIGURE/PEER<=LIMIT: " + text);
    return {text.substr(0, slash), text.substr(slash + 1, sign - slash - 1), text[sign] == '<',
            std::atof(text.c_str() + sign + 2)};
}

Report::Report(std::vector<std::string> names, std::vector<Target> targets)
    : names_(std::move(names)), targets_(std::move(targets)), judged_(targets_.size())
{}

void Report::heading(const std::string &text)
{
    fmt::print("\n{:<38}", text);
    for (const std::string &name : names_)
        fmt::print(" {:>17}", name);
    fmt::print("\n");
}

void Report::add(const std::string &path, const std::vector<std::vector<Figures>> &rounds)
{
    for (const Row &row : rows) {
        std::vector<double> medians;
        bool any = false;
        for (const std::vector<Figures> &of_one : rounds) {
            std::vector<double> values;
            for (const Figures &figures : of_one)
                if (const auto found = figures.find(row.figure); found != figures.end())
                    values.push_back(found->second);
            medians.push_back(median(values));
            any = any || !values.empty();
        }
        if (!any)
            continue;
        fmt::print("{:<10} {:<27}", path, row.text);
        for (size_t i = 0; i < medians.size(); ++i) {
            const double ratio = medians[0] / medians[i];
            fmt::print(" {:>17}", i == 0 || std::isnan(ratio) ? show(medians[i])
                                                              : fmt::format("{} ({:.2f})", show(medians[i]), ratio));
        }
        fmt::print("\n");
        judge(path, row.figure, medians);
    }
    std::fflush(stdout);
}

void Report::judge(const std::string &path, const std::string &figure, const std::vector<double> &medians)
{
    for (size_t i = 0; i < targets_.size(); ++i) {
        const Target &target = targets_[i];
        if (target.figure != figure)
            continue;
        double value = medians[0];
        if (target.peer != "limit") {
            const auto peer = std::find(names_.begin(), names_.end(), target.peer);
            value = peer == names_.end() ? std::nan("") : medians[0] / medians[size_t(peer - names_.begin())];
        }
        if (std::isnan(value))
            continue;
        Judged &judged = judged_[i];
        ++((target.at_most ? value <= target.limit : value >= target.limit) ? judged.met : judged.missed);
        const bool first = judged.met + judged.missed == 1;
        if (first || (target.at_most ? value > judged.worst : value < judged.worst)) {
            judged.worst = value;
            judged.worst_path = path;
        }
    }
}

int Report::verdicts() const
{
    int short_of = 0;
    for (size_t i = 0; i < targets_.size(); ++i) {
        const Target &target = targets_[i];
        const Judged &judged = judged_[i];
        const std::string what =
            fmt::format("{}/{} {} {:g}", target.figure, target.peer, target.at_most ? "<=" : ">=", target.limit);
        const bool measured = judged.met + judged.missed > 0;
        short_of += !measured || judged.missed > 0;
        if (!measured)
            fmt::print("{:<44} NOT MEASURED\n", what);
        else
            fmt::print("{:<44} {} on {} of {} paths, worst {:.3g} ({})\n", what, judged.missed ? "SHORT" : "met",
                       judged.missed ? judged.missed : judged.met, judged.met + judged.missed, judged.worst,
                       judged.worst_path);
    }
    return short_of;
}

} // namespace sluice::bench
