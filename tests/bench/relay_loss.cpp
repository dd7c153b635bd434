// SPDX-License-Identifier: LGPL-2.1-or-later

// relay-loss [OPTION...] -- COMMAND [ARGUMENT...]
//
// Runs randomised conversations through a relay (%s stands for the path of the
// socket) and checks each byte at both ends, that the relay ends by itself, without a
// word, and with which exit code. A run that fails is printed with the options that
// repeat it alone.

#include <getopt.h>
#include <sys/mman.h>

#include <cstdlib>

#include "relay_scenario.hpp"
#include "support/relay_session.hpp"

using namespace sluice;
using namespace sluice::bench;

namespace {

struct Options {
    uint64_t runs = 1000;
    uint64_t first = 0;
    uint64_t seed = 0;
    uint64_t bytes_max = 100'000'000;
    bool up = true;
    bool down = true;
    bool any_exit = false;
    double hang_s = 30;
    std::vector<std::string> argv;
};

[[noreturn]] void usage()
{
    fmt::print(stderr, "usage: relay-loss [--runs=N] [--first=N] [--seed=N] [--bytes-max=N] [--direction=up|down]\n"
                       "                  [--hang=SECONDS] [--any-exit] -- COMMAND [ARGUMENT...]\n");
    std::exit(64);
}

Options parse(int argc, char **argv)
{
    Options options;
    const option names[] = {
        {"runs", required_argument, nullptr, 'r'},      {"first", required_argument, nullptr, 'f'},
        {"seed", required_argument, nullptr, 's'},      {"bytes-max", required_argument, nullptr, 'b'},
        {"direction", required_argument, nullptr, 'd'}, {"hang", required_argument, nullptr, 'h'},
        {"any-exit", no_argument, nullptr, 'a'},        {nullptr, 0, nullptr, 0},
    };
    const auto number = [] { return std::strtoull(optarg, nullptr, 10); };
    options.seed = std::random_device{}();
    for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        switch (c) {
        case 'r':
            options.runs = number();
            break;
        case 'f':
            options.first = number();
            break;
        case 's':
            options.seed = number();
            break;
        case 'b':
            options.bytes_max = number();
            break;
        case 'h':
            options.hang_s = std::atof(optarg);
            break;
        case 'a':
            options.any_exit = true;
            break;
        case 'd':
            options.up = std::string(optarg) == "up";
            options.down = std::string(optarg) == "down";
            break;
        default:
            usage();
        }
    }
    options.argv.assign(argv + optind, argv + argc);
    if (options.argv.empty() || (!options.up && !options.down))
        usage();
    return options;
}

// The ends of one conversation, and what is to be found true when it is over.
class Conversation {
public:
    Conversation(const Scenario &scenario, const Options &options, Listener &listener)
        : scenario_(scenario), options_(options), deadline_(options.hang_s)
    {
        Command command(options.argv);
        start(command);
        session_.server = listener.accept(deadline_);
    }

    // What went wrong; empty when nothing did.
    std::vector<std::string> run()
    {
        if (!session_.server)
            return {"hung: did not connect"};
        set_buffer(session_.server.get(), SO_SNDBUF, scenario_.buffer_sizes[0]);
        set_buffer(session_.server.get(), SO_RCVBUF, scenario_.buffer_sizes[3]);
        set_flows();
        const bool ended = traffic_.run_until([this] { return at_end(); }, deadline_);
        std::vector<std::string> faults;
        if (!ended)
            faults.push_back("hung: an end saw no EOF");
        if (reads_up())
            check(*arrived_up_, "up", scenario_.up_bytes, faults);
        check(*arrived_down_, "down", scenario_.down_bytes, faults);
        // the ends that are still open are those of a client that waits
        if (const std::optional<Exit> exit = session_.child.wait(Deadline{ended ? options_.hang_s : 0}); !exit)
            faults.push_back("hung: did not exit");
        else if (!options_.any_exit && !right(*exit))
            faults.push_back(exit->signal
                                 ? fmt::format("wrong exit: signal {}", exit->signal)
                                 : fmt::format("wrong exit: code {}: {}", exit->code, session_.child.errors()));
        else if (!options_.any_exit && exit->code == 0 && !session_.child.errors().empty())
            faults.push_back("wrong exit: code 0 with a message: " + session_.child.errors());
        return faults;
    }

private:
    void start(Command &command)
    {
        RelayStdio stdio = RelayStdio::make(scenario_.input == Input::socketpair ? Stdio::socketpair : Stdio::pipes);
        if (scenario_.input == Input::socketpair) {
            set_buffer(stdio.input.get(), SO_SNDBUF, scenario_.buffer_sizes[1]);
            set_buffer(stdio.child_output.get(), SO_SNDBUF, scenario_.buffer_sizes[2]);
        } else {
            set_pipe_size(stdio.input.get(), scenario_.pipe_sizes[0]);
            set_pipe_size(stdio.output.get(), scenario_.pipe_sizes[1]);
        }
        if (scenario_.input == Input::file) {
            stdio.child_input = whole_input();
            stdio.input.reset();
        }
        command.input(stdio.child_input.get()).output(stdio.child_output.get());
        session_ = {command.start(), std::move(stdio.input), std::move(stdio.output), UniqueFd{}};
    }

    UniqueFd whole_input() const
    {
        UniqueFd file{must(memfd_create("input", MFD_CLOEXEC), "memfd_create")};
        std::vector<std::byte> bytes(1 << 20);
        for (uint64_t offset = 0; offset < scenario_.up_bytes;) {
            const size_t count = size_t(std::min<uint64_t>(bytes.size(), scenario_.up_bytes - offset));
            up_pattern.fill(offset, {bytes.data(), count});
            offset += uint64_t(must(int(pwrite(file.get(), bytes.data(), count, off_t(offset))), "pwrite"));
        }
        return file;
    }

    bool reads_up() const
    {
        return scenario_.ending == Ending::client_first || scenario_.ending == Ending::server_half;
    }

    void set_flows()
    {
        if (session_.input) {
            sent_up_ = &traffic_.feed(session_.input.get(), scenario_.up_bytes, up_pattern);
            sent_up_->pace = scenario_.paces[0];
            if (reads_up())
                sent_up_->when_done = [this] { end_input(); };
        }
        arrived_up_ = &traffic_.drain(session_.server.get(), up_pattern);
        arrived_up_->pace = scenario_.paces[1];
        arrived_up_->paused = !reads_up();
        arrived_up_->when_done = [this] { end_server(); };
        sent_down_ = &traffic_.feed(session_.server.get(), scenario_.down_bytes, down_pattern);
        sent_down_->pace = scenario_.paces[2];
        sent_down_->when_done = [this] { end_server(); };
        arrived_down_ = &traffic_.drain(session_.output.get(), down_pattern);
        arrived_down_->pace = scenario_.paces[3];
    }

    void end_input()
    {
        shutdown(session_.input.get(), SHUT_WR);
        traffic_.close(session_.input);
    }

    void end_server()
    {
        if (!reads_up())
            return traffic_.close(session_.server);
        if (sent_down_->done && scenario_.ending == Ending::server_half)
            shutdown(session_.server.get(), SHUT_WR);
        if (sent_down_->done && arrived_up_->done)
            traffic_.close(session_.server);
    }

    bool at_end() const
    {
        return (arrived_down_->done || arrived_down_->error) &&
               (!reads_up() || arrived_up_->done || arrived_up_->error);
    }

    // A relay that ends before it has read all of a socket pair resets our end of it. With
    // nobody to give it to that is right, and comes after the last byte.
    bool may_be_reset() const
    {
        return scenario_.ending == Ending::server_unread && scenario_.input == Input::socketpair;
    }

    void check(const Drain &drain, const char *name, uint64_t expected, std::vector<std::string> &faults) const
    {
        if (!drain.intact)
            faults.push_back(fmt::format("damaged: {} at byte {}", name, drain.damaged_at));
        else if (drain.bytes != expected)
            faults.push_back(fmt::format("lost: {} {} of {} bytes arrived", name, drain.bytes, expected));
        if (drain.error != 0 && !(drain.error == ECONNRESET && may_be_reset()))
            faults.push_back(fmt::format("lost: {} ended by errno {}", name, drain.error));
    }

    // Bytes that the server did not want are an I/O error, if the relay came to know of it.
    bool right(const Exit &exit) const
    {
        return exit.code == 0 || (scenario_.ending == Ending::server_unread && exit.code == 74);
    }

    static constexpr int up_seed = 11, down_seed = 12;
    const Pattern up_pattern{up_seed};
    const Pattern down_pattern{down_seed};
    const Scenario &scenario_;
    const Options &options_;
    Deadline deadline_;
    RelaySession session_;
    Traffic traffic_;
    Feed *sent_up_ = nullptr;
    Feed *sent_down_ = nullptr;
    Drain *arrived_up_ = nullptr;
    Drain *arrived_down_ = nullptr;
};

class Tally {
public:
    void add(const Options &options, bool up, uint64_t run, const Scenario &scenario,
             const std::vector<std::string> &faults)
    {
        ++runs_;
        bytes_ += scenario.up_bytes + scenario.down_bytes;
        failed_ += !faults.empty();
        for (const std::string &fault : faults) {
            ++kinds_[fault.substr(0, fault.find(':'))];
            fmt::print("--seed={} --first={} --runs=1 --direction={}: {}\n", options.seed, run, up ? "up" : "down",
                       fault);
        }
        if (!faults.empty())
            fmt::print("    {}\n", scenario.text());
        std::fflush(stdout);
    }

    int result(const Options &options) const
    {
        fmt::print("{} runs, {:.1f} GB, seed {}: {} failed", runs_, double(bytes_) / 1e9, options.seed, failed_);
        for (const auto &[kind, count] : kinds_)
            fmt::print(", {} {}", kind, count);
        fmt::print("\n");
        return failed_ == 0 ? 0 : 1;
    }

private:
    uint64_t runs_ = 0;
    uint64_t bytes_ = 0;
    uint64_t failed_ = 0;
    std::map<std::string, uint64_t> kinds_;
};

} // namespace

int main(int argc, char **argv)
{
    try {
        Options options = parse(argc, argv);
        const TempDir scratch;
        for (std::string &word : options.argv)
            if (const size_t at = word.find("%s"); at != std::string::npos)
                word.replace(at, 2, scratch / "socket");
        Tally tally;
        for (uint64_t run = options.first; run < options.first + options.runs; ++run) {
            for (const bool up : {true, false}) {
                if (!(up ? options.up : options.down))
                    continue;
                // a listener for each run: a relay that connects twice would meet the next one
                std::filesystem::remove(scratch / "socket");
                Listener listener = Listener::unix_socket(scratch / "socket");
                const Scenario scenario = Scenario::random(options.seed, run, up, options.bytes_max);
                tally.add(options, up, run, scenario, Conversation(scenario, options, listener).run());
            }
        }
        return tally.result(options);
    } catch (const std::exception &error) {
        fmt::print(stderr, "relay-loss: {}\n", error.what());
        return 1;
    }
}
