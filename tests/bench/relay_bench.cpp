// SPDX-License-Identifier: LGPL-2.1-or-later

// relay-bench [OPTION...] NAME=COMMAND...
//
// Measures relays between stdin/stdout and a unix socket side by side. In a command,
// %s stands for the path of the socket. The first contestant is the one that is
// judged: its medians are set against those of the others, and against the targets
// given by --target. The contestants take turns within each round, and the one to
// begin changes from round to round, so that a disturbance does not hit one alone.

#include <getopt.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "relay_run.hpp"

using namespace sluice::bench;

namespace {

struct Options {
    uint64_t bytes = uint64_t{4} << 30;
    uint64_t strace_bytes = uint64_t{1} << 30;
    int rounds = 7;
    int first_byte_rounds = 21;
    int round_trips = 20000;
    std::string socket;
    std::vector<Stdio> kinds{Stdio::pipes, Stdio::socketpair};
    std::map<std::string, double> targets;
    std::vector<Contestant> contestants;
};

[[noreturn]] void usage(const std::string &complaint)
{
    fmt::print(stderr,
               "relay-bench: {}\n"
               "usage: relay-bench [--bytes=N] [--strace-bytes=N] [--rounds=N] [--first-byte-rounds=N]\n"
               "                   [--round-trips=N] [--socket=PATH] [--stdio=pipes|socketpair|both]\n"
               "                   [--target=METRIC/PEER=LIMIT]... NAME=COMMAND...\n"
               "A COMMAND has %s where the path of the socket goes. 0 rounds or bytes leave a measurement out.\n"
               "METRIC is wall, cpu, calls, first-byte, rss or ping-pong; PEER a name, `all` others, or `limit`\n"
               "for a limit in the unit of the table.\n",
               complaint);
    std::exit(64);
}

std::pair<std::string, std::string> split(const std::string &text, char at)
{
    const size_t found = text.find(at);
    if (found == std::string::npos || found == 0)
        usage(fmt::format("`{}` has no `{}`", text, at));
    return {text.substr(0, found), text.substr(found + 1)};
}

uint64_t number(const char *text)
{
    char *end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0')
        usage(fmt::format("`{}` is no number", text));
    return value;
}

Options parse(int argc, char **argv)
{
    Options options;
    const option names[] = {
        {"bytes", required_argument, nullptr, 'b'},
        {"strace-bytes", required_argument, nullptr, 's'},
        {"rounds", required_argument, nullptr, 'r'},
        {"first-byte-rounds", required_argument, nullptr, 'f'},
        {"round-trips", required_argument, nullptr, 'p'},
        {"socket", required_argument, nullptr, 'u'},
        {"stdio", required_argument, nullptr, 'k'},
        {"target", required_argument, nullptr, 't'},
        {nullptr, 0, nullptr, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        switch (c) {
        case 'b':
            options.bytes = number(optarg);
            break;
        case 's':
            options.strace_bytes = number(optarg);
            break;
        case 'r':
            options.rounds = int(number(optarg));
            break;
        case 'f':
            options.first_byte_rounds = int(number(optarg));
            break;
        case 'p':
            options.round_trips = int(number(optarg));
            break;
        case 'u':
            options.socket = optarg;
            break;
        case 'k':
            if (std::string(optarg) == "pipes")
                options.kinds = {Stdio::pipes};
            else if (std::string(optarg) == "socketpair")
                options.kinds = {Stdio::socketpair};
            break;
        case 't': {
            const auto [name, limit] = split(optarg, '=');
            options.targets[name] = std::atof(limit.c_str());
            break;
        }
        default:
            usage("unknown option");
        }
    }
    for (int i = optind; i < argc; ++i) {
        const auto [name, command] = split(argv[i], '=');
        Contestant contestant{name, {}};
        std::istringstream words(command);
        for (std::string word; words >> word;)
            contestant.argv.push_back(word);
        options.contestants.push_back(contestant);
    }
    if (options.contestants.empty())
        usage("nobody to measure");
    return options;
}

double median(std::vector<double> values)
{
    if (values.empty())
        return std::nan("");
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One line of the result: a metric under some conditions, with the values of each contestant.
class Table {
public:
    explicit Table(const Options &options) : options_(options)
    {
        fmt::print("{:<28}", "");
        for (const Contestant &contestant : options.contestants)
            fmt::print(" {:>15}", contestant.name);
        fmt::print("\n");
    }

    // The medians, and for the first contestant its ratio to each of the others.
    void row(const std::string &metric, const std::string &conditions, const char *unit,
             const std::vector<std::vector<double>> &values)
    {
        fmt::print("{:<28}", metric + " " + conditions + " " + unit);
        const double ours = median(values[0]);
        fmt::print(" {:>15}", figure(ours));
        std::vector<double> ratios(values.size(), std::nan(""));
        double lowest = std::nan("");
        for (size_t i = 1; i < values.size(); ++i) {
            const double theirs = median(values[i]);
            const bool is_relay = !options_.contestants[i].argv.empty();
            if (!is_relay && (metric == "cpu" || metric == "rss" || metric == "calls")) {
                fmt::print(" {:>15}", "-");
                continue;
            }
            ratios[i] = ours / theirs;
            if (is_relay)
                lowest = std::fmin(lowest, theirs);
            fmt::print(" {:>15}", fmt::format("{} ({:.2f})", figure(theirs), ratios[i]));
        }
        std::string verdicts;
        for (size_t i = 1; i < values.size(); ++i)
            verdicts += verdict(metric + "/" + options_.contestants[i].name, ratios[i], "x");
        verdicts += verdict(metric + "/all", ours / lowest, "x");
        verdicts += verdict(metric + "/limit", ours, "");
        fmt::print("{}\n", verdicts);
        std::fflush(stdout);
    }

    int missed() const { return missed_; }

private:
    static std::string figure(double value)
    {
        if (std::isnan(value))
            return "failed";
        return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
    }

    std::string verdict(const std::string &target, double value, const char *unit)
    {
        const auto found = options_.targets.find(target);
        if (found == options_.targets.end())
            return "";
        const bool met = value <= found->second;
        missed_ += !met;
        return fmt::format("  {} <= {:g}{}: {}", target.substr(target.find('/') + 1), found->second, unit,
                           met ? "met" : "MISSED");
    }

    const Options &options_;
    int missed_ = 0;
};

// Let each contestant be measured so many times, by turns.
template <class Measure>
std::vector<std::vector<Measured>> take_turns(const Options &options, int rounds, Measure measure)
{
    const size_t count = options.contestants.size();
    std::vector<std::vector<Measured>> results(count);
    for (int round = 0; round < rounds; ++round) {
        for (size_t turn = 0; turn < count; ++turn) {
            const size_t who = (turn + size_t(round)) % count;
            const Measured measured = measure(options.contestants[who]);
            if (measured.complete)
                results[who].push_back(measured);
            else
                fmt::print(stderr, "relay-bench: {} did not complete\n", options.contestants[who].name);
        }
    }
    return results;
}

std::vector<std::vector<double>> pick(const std::vector<std::vector<Measured>> &results, double Measured::*field,
                                      double factor)
{
    std::vector<std::vector<double>> values(results.size());
    for (size_t i = 0; i < results.size(); ++i)
        for (const Measured &measured : results[i])
            values[i].push_back(measured.*field * factor);
    return values;
}

void measure_all(const Options &options, Table &table, Listener &listener, const TempDir &scratch)
{
    const double gib = double(uint64_t{1} << 30);
    for (const Stdio kind : options.kinds) {
        for (const Direction direction : {Direction::up, Direction::down}) {
            const std::string conditions = fmt::format("{} {}", name_of(direction), name_of(kind));
            if (options.bytes > 0 && options.rounds > 0) {
                const auto results = take_turns(options, options.rounds, [&](const Contestant &contestant) {
                    return transfer(contestant, kind, direction, options.bytes, listener);
                });
                table.row("wall", conditions, "s", pick(results, &Measured::wall_s, 1));
                table.row("cpu", conditions, "s/GiB", pick(results, &Measured::cpu_s, gib / double(options.bytes)));
                table.row("rss", conditions, "KiB", pick(results, &Measured::rss_peak_kib, 1));
            }
            if (options.strace_bytes > 0) {
                const auto results = take_turns(options, 1, [&](const Contestant &contestant) {
                    if (contestant.argv.empty())
                        return Measured{true};
                    return count_system_calls(contestant, kind, direction, options.strace_bytes, listener, scratch);
                });
                table.row("calls", conditions, "/GiB",
                          pick(results, &Measured::system_calls, gib / double(options.strace_bytes)));
            }
            if (options.first_byte_rounds > 0) {
                const auto results = take_turns(options, options.first_byte_rounds, [&](const Contestant &contestant) {
                    return first_byte(contestant, kind, direction, listener);
                });
                table.row("first-byte", conditions, "ms", pick(results, &Measured::wall_s, 1000));
            }
        }
        if (options.round_trips > 0 && options.rounds > 0) {
            const auto results = take_turns(options, options.rounds, [&](const Contestant &contestant) {
                return ping_pong(contestant, kind, options.round_trips, listener);
            });
            table.row("ping-pong", name_of(kind), "us", pick(results, &Measured::wall_s, 1e6));
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    try {
        signal(SIGPIPE, SIG_IGN);
        Options options = parse(argc, argv);
        const TempDir scratch;
        if (options.socket.empty())
            options.socket = scratch / "socket";
        for (Contestant &contestant : options.contestants)
            for (std::string &word : contestant.argv)
                if (const size_t at = word.find("%s"); at != std::string::npos)
                    word.replace(at, 2, options.socket);
        Listener listener = Listener::unix_socket(options.socket);
        Table table(options);
        measure_all(options, table, listener, scratch);
        if (!options.targets.empty())
            fmt::print("targets missed: {}\n", table.missed());
    } catch (const std::exception &error) {
        fmt::print(stderr, "relay-bench: {}\n", error.what());
        return 1;
    }
    return 0;
}
