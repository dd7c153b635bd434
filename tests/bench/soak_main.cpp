// SPDX-License-Identifier: LGPL-2.1-or-later

// proxy-soak [OPTION...] NAME COMMAND [ARGUMENT...]
//
// Randomised conversations through a proxy, many at a time, on several paths at once: sizes,
// pieces and pauses, half-closes by either end, resets, and an upstream that is killed and
// comes back. No byte may be lost but where an end was cut off on purpose; no conversation
// may get stuck; when everything stands still, or is over, the proxy may not spin; in the
// end it may not hold more descriptors and memory than after the warm-up. %l, %u and %d in
// the command as in proxy-bench. Exit status 1 if there was a fault; with --expect, if there
// was none of that kind: so a proxy that is known to lose bytes shows that it would be seen.

#include <getopt.h>
#include <signal.h>

#include <functional>

#include "soak_run.hpp"

using namespace sluice::bench;

namespace {

[[noreturn]] void usage(const std::string &complaint)
{
    fmt::print(stderr,
               "proxy-soak: {}\n"
               "usage: proxy-soak [--seconds=N] [--clients=N] [--seed=N] [--bytes-max=N] [--stuck=SECONDS]\n"
               "                  [--memory-slack=BYTES] [--path=unix-unix]...\n"
               "                  [--expect=lost|damaged|stuck|spins|leak|error|died] NAME COMMAND [ARGUMENT...]\n",
               complaint);
    std::exit(64);
}

SoakOptions parse(int argc, char **argv)
{
    SoakOptions options;
    options.seed = std::random_device{}();
    const option names[] = {
        {"seconds", required_argument, nullptr, 't'},
        {"clients", required_argument, nullptr, 'c'},
        {"seed", required_argument, nullptr, 's'},
        {"bytes-max", required_argument, nullptr, 'b'},
        {"stuck", required_argument, nullptr, 'S'},
        {"memory-slack", required_argument, nullptr, 'm'},
        {"path", required_argument, nullptr, 'p'},
        {"expect", required_argument, nullptr, 'e'},
        {nullptr, 0, nullptr, 0},
    };
    const std::map<int, std::function<void(const char *)>> set{
        {'t', [&](const char *text) { options.seconds = std::stod(text); }},
        {'c', [&](const char *text) { options.clients = std::stoi(text); }},
        {'s', [&](const char *text) { options.seed = std::stoull(text); }},
        {'b', [&](const char *text) { options.bytes_max = std::stoull(text); }},
        {'S', [&](const char *text) { options.stuck_s = std::stod(text); }},
        {'m', [&](const char *text) { options.memory_slack_bytes = std::stoull(text); }},
        {'e', [&](const char *text) { options.expect = text; }},
        {'p', [&](const char *text) { options.paths.push_back(Path::parse(text)); }},
    };
    for (int c; (c = getopt_long(argc, argv, "+", names, nullptr)) != -1;) {
        const auto found = set.find(c);
        if (found == set.end())
            usage("unknown option");
        found->second(optarg);
    }
    if (optind + 2 > argc)
        usage("a proxy is needed");
    options.contestant = {argv[optind], {argv + optind + 1, argv + argc}};
    if (options.paths.empty())
        for (const char *path : {"unix-unix", "tcp-unix", "unix-tcp", "tcp-tcp"})
            options.paths.push_back(Path::parse(path));
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        signal(SIGPIPE, SIG_IGN);
        const SoakOptions options = parse(argc, argv);
        fmt::print("proxy-soak: --seed={} for {} s\n", options.seed, options.seconds);
        std::fflush(stdout);
        return Soak(options).run() ? 0 : 1;
    } catch (const NotInstalled &error) {
        fmt::print(stderr, "proxy-soak: {}\n", error.what());
        return std::getenv("CI") ? 1 : 77;
    } catch (const std::exception &error) {
        fmt::print(stderr, "proxy-soak: {}\n", error.what());
        return 1;
    }
}
