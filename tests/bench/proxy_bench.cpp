// SPDX-License-Identifier: LGPL-2.1-or-later

// proxy-bench [OPTION...] NAME=COMMAND...
//
// Measures stream proxies side by side: this program is both their clients and their
// upstream, and only what they cost themselves counts as CPU time and memory. In a command
// %l stands for the address to listen on, %u for the upstream's, %d for a scratch folder;
// NAME= alone is no proxy at all. The first contestant is judged. The contestants take
// turns within each round, and the one to begin changes from round to round.

#include <getopt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>

#include "proxy_report.hpp"

using namespace sluice::bench;

namespace {

struct Scenario {
    const char *name;
    Figures (*measure)(const Contestant &, Path, const Load &);
    const char *heading;
};

constexpr Scenario scenarios[] = {
    {"bulk", measure_bulk, "one connection, bulk"},
    {"churn", measure_churn, "open, 64 bytes each way, close"},
    {"latency", measure_latency, "round trips of 64 bytes"},
    {"idle", measure_idle, "connections that do nothing"},
};

struct Options {
    Load load;
    int rounds = 3;
    std::vector<Path> paths;
    std::vector<std::string> chosen; // scenarios; empty for all
    std::vector<Target> targets;
    std::vector<Contestant> contestants;
};

[[noreturn]] void usage(const std::string &complaint)
{
    fmt::print(
        stderr,
        "proxy-bench: {}\n"
        "usage: proxy-bench [--bytes=N] [--trace-bytes=N] [--rounds=N] [--churn=SECONDS] [--latency=SECONDS]\n"
        "                   [--rate=MESSAGES] [--beside-rate=BYTES] [--idle=N] [--path=unix-unix]...\n"
        "                   [--everywhere] [--scenario=bulk|churn|latency|idle]... [--target=FIGURE/PEER<=LIMIT]...\n"
        "                   NAME=COMMAND...\n",
        complaint);
    std::exit(64);
}

Options parse(int argc, char **argv)
{
    Options options;
    const option names[] = {
        {"bytes", required_argument, nullptr, 'b'},
        {"trace-bytes", required_argument, nullptr, 't'},
        {"rounds", required_argument, nullptr, 'r'},
        {"churn", required_argument, nullptr, 'c'},
        {"latency", required_argument, nullptr, 'l'},
        {"rate", required_argument, nullptr, 'm'},
        {"beside-rate", required_argument, nullptr, 'B'},
        {"idle", required_argument, nullptr, 'i'},
        {"path", required_argument, nullptr, 'p'},
        {"scenario", required_argument, nullptr, 's'},
        {"target", required_argument, nullptr, 'T'},
        {"everywhere", no_argument, nullptr, 'e'},
        {nullptr, 0, nullptr, 0},
    };
    Load &load = options.load;
    const std::map<int, std::function<void(const char *)>> set{
        {'b', [&](const char *text) { load.bytes = std::stoull(text); }},
        {'t', [&](const char *text) { load.trace_bytes = std::stoull(text); }},
        {'r', [&](const char *text) { options.rounds = std::stoi(text); }},
        {'c', [&](const char *text) { load.churn_s = std::stod(text); }},
        {'l', [&](const char *text) { load.latency_s = std::stod(text); }},
        {'m', [&](const char *text) { load.latency_rate = std::stod(text); }},
        {'B', [&](const char *text) { load.beside_rate = std::stoull(text); }},
        {'i', [&](const char *text) { load.idle_clients = std::stoi(text); }},
        {'e', [&](const char *) { load.everywhere = true; }},
        {'p', [&](const char *text) { options.paths.push_back(Path::parse(text)); }},
        {'s', [&](const char *text) { options.chosen.push_back(text); }},
        {'T', [&](const char *text) { options.targets.push_back(Target::parse(text)); }},
    };
    for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        const auto found = set.find(c);
        if (found == set.end())
            usage("unknown option");
        found->second(optarg);
    }
    for (int i = optind; i < argc; ++i)
        options.contestants.push_back(Contestant::parse(argv[i]));
    if (options.contestants.empty())
        usage("nobody to measure");
    if (options.paths.empty())
        options.paths = {Path::parse("unix-unix"), Path::parse("tcp-unix"), Path::parse("tcp-tcp")};
    return options;
}

// Both ends of every idle connection are ours.
void need_descriptors(const Options &options)
{
    rlimit limit{};
    must(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const rlim_t wanted = rlim_t(2 * options.load.idle_clients + 200);
    if (limit.rlim_max < wanted)
        throw std::runtime_error(
            fmt::format("{} descriptors are needed and {} allowed; raise the limit (ulimit -n), or "
                        "take fewer idle connections (--idle)",
                        wanted, limit.rlim_max));
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

std::vector<std::vector<Figures>> take_turns(const Options &options, const Scenario &scenario, Path path)
{
    const size_t count = options.contestants.size();
    std::vector<std::vector<Figures>> results(count);
    for (int round = 0; round < options.rounds; ++round) {
        for (size_t turn = 0; turn < count; ++turn) {
            const size_t who = (turn + size_t(round)) % count;
            const Contestant &contestant = options.contestants[who];
            fmt::print(stderr, "{} {} round {}: {}\n", scenario.name, path.name(), round + 1, contestant.name);
            Load load = options.load;
            if (round > 0)
                load.trace_bytes = 0; // the calls are the same every time
            try {
                results[who].push_back(scenario.measure(contestant, path, load));
            } catch (const std::exception &error) {
                fmt::print(stderr, "proxy-bench: {}: {}\n", contestant.name, error.what());
            }
        }
    }
    return results;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        signal(SIGPIPE, SIG_IGN);
        const Options options = parse(argc, argv);
        need_descriptors(options);
        std::vector<std::string> names;
        for (const Contestant &contestant : options.contestants)
            names.push_back(contestant.name);
        Report report(names, options.targets);
        for (const Scenario &scenario : scenarios) {
            if (!options.chosen.empty() &&
                std::find(options.chosen.begin(), options.chosen.end(), scenario.name) == options.chosen.end())
                continue;
            report.heading(scenario.heading);
            for (const Path path : options.paths)
                report.add(path.name(), take_turns(options, scenario, path));
        }
        if (options.targets.empty())
            return 0;
        fmt::print("\n");
        fmt::print("targets not met: {}\n", report.verdicts());
    } catch (const std::exception &error) {
        fmt::print(stderr, "proxy-bench: {}\n", error.what());
        return 1;
    }
    return 0;
}
