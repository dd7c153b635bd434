// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The soak: proxies on several paths at once, each with clients that begin a new
// conversation whenever one is over, and with an upstream that now and then dies and comes
// back. One thread is all clients and all upstreams, so that it knows what each end has
// done at any moment, and can make everything stand still.

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "proxy_subject.hpp"
#include "soak_conversation.hpp"

namespace sluice::bench {

struct SoakOptions {
    double seconds = 600;
    int clients = 16; // on each path
    uint64_t seed = 0;
    uint64_t bytes_max = 16 << 20; // of one direction of one conversation
    double stuck_s = 25;           // without a byte or an end, pauses of ours aside
    // What the proxy may hold more at the end than after the warm-up: heap that is in pieces;
    // and pipes, which it keeps for later, as many as were once in use together: one for each
    // direction of each client. Nothing else, not one socket.
    uint64_t memory_slack_bytes = 1 << 20;
    size_t pipe_descriptors_slack() const { return size_t(clients) * 4; }
    std::string expect; // a kind of fault that there has to be; empty: there may be none
    std::vector<Path> paths;
    Contestant contestant;
};

struct NotInstalled : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Soak {
public:
    explicit Soak(const SoakOptions &options);
    // Whether it went as it should; all faults have been printed. Throws NotInstalled where
    // the command ends with 77.
    bool run();

private:
    struct Line {
        Path path;
        Endpoint upstream;
        std::unique_ptr<Subject> subject;
        UniqueFd listener;
        // accepted, but its number has not come yet
        struct Unknown {
            UniqueFd fd;
            std::array<std::byte, Plan::header_bytes> header;
            size_t filled = 0;
            int64_t since_usec;
        };
        std::list<Unknown> unknown;
        std::map<uint64_t, std::unique_ptr<Conversation>> conversations;
        bool dead = false;                    // the proxy itself
        int64_t dies_usec = 0, back_usec = 0; // 0: not planned
        struct Held {
            size_t descriptors = 0, pipe_descriptors = 0; // the latter not among the former
            uint64_t memory_bytes = 0;
        } at_start;
    };

    void open(Line &line);
    bool answers(Line &line);
    void listen(Line &line);
    // Until so much time has passed, or, when no new ones begin, all are over.
    void converse(double seconds, bool begin_new, bool disturb);
    void turn(bool begin_new, bool disturb);
    void begin(Line &line, int64_t now);
    void accept(Line &line, int64_t now);
    bool identify(Line &line, Line::Unknown &unknown, int64_t now);
    void live_and_die(Line &line, int64_t now);
    void die(Line &line, int64_t now);
    void bury(Line &line, int64_t now);
    void stand_still();
    bool empty() const;

    Line::Held settle(Line &line, std::optional<Line::Held> wanted);
    void compare(Line &line);
    void expect_rest(const char *when, double seconds);
    void fault(const Line &line, const std::string &text);
    void summary() const;

    const SoakOptions &options_;
    TempDir folder_;
    UniqueFd epoll_, arrivals_; // the ends; the listeners, and who is not known yet
    std::vector<std::unique_ptr<Line>> lines_;
    std::mt19937_64 random_;
    uint64_t next_id_ = 1;
    int64_t looked_usec_ = 0;
    // the account
    int faults_ = 0;
    uint64_t bytes_ = 0, begun_ = 0, cut_ = 0, deaths_ = 0, stood_still_ = 0, silent_ = 0;
    std::map<Ending, uint64_t> endings_;
    std::map<std::string, uint64_t> kinds_;
};

} // namespace sluice::bench
