// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The proxy that is measured: started from a command, and read through /proc with
// whatever processes it has started itself. Our own time and memory never count.
//
// In a command %l stands for the address to listen on, %u for that of the upstream, and
// %d for a folder to write to. Without a command there is no proxy, and a client goes to
// the upstream directly.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "proxy_sockets.hpp"
#include "support/child.hpp"

namespace sluice::bench {

struct Contestant {
    std::string name;
    std::vector<std::string> argv;
    bool is_proxy() const { return !argv.empty(); }

    static Contestant parse(const std::string &text); // NAME=COMMAND, split at blanks
};

class Subject {
public:
    // Started, but not yet known to listen.
    Subject(const Contestant &contestant, Path path, const Endpoint &upstream);
    ~Subject();
    Subject(const Subject &) = delete;
    Subject &operator=(const Subject &) = delete;

    // Where a client has to connect to.
    const Endpoint &endpoint() const { return endpoint_; }
    bool alive() const;
    // How it ended, once it is not; the status is -1 after a signal.
    std::string ending() const;
    int exit_status() const;
    // It and its children; empty for none.
    std::vector<pid_t> processes() const;
    double cpu_s() const;          // user and system time of all of them, those that ended included
    uint64_t memory_bytes() const; // what they would free if they ended (PSS)
    size_t descriptors() const;
    size_t pipe_descriptors() const; // those of them that are ends of pipes
    std::string errors() const { return child_ ? child_->errors() : std::string{}; }

private:
    TempDir folder_;
    Endpoint endpoint_;
    std::optional<Child> child_;
};

// Count the system calls of a running subject while it does something.
class Trace {
public:
    explicit Trace(const Subject &subject);
    // Total so far; ends the trace. Nothing where strace could not be had.
    std::optional<double> finish();

private:
    TempDir folder_;
    std::optional<Child> strace_;
};

} // namespace sluice::bench
