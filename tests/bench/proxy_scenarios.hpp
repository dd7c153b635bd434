// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is measured of a proxy, one function for each kind of use. Each starts the proxy
// anew, waits until it passes a message on, and gives figures by name; a figure that
// could not be had is not there.

#include <map>
#include <string>

#include "proxy_backend.hpp"
#include "proxy_subject.hpp"

namespace sluice::bench {

using Figures = std::map<std::string, double>;

struct Load {
    uint64_t bytes = uint64_t{2} << 30;       // of a bulk transfer, each way
    uint64_t trace_bytes = uint64_t{1} << 29; // of one under strace; 0 for none
    double churn_s = 2;                       // for how long connections come and go
    int churn_clients = 32;                   // how many at a time
    double latency_s = 1.5;                   // for each of the latencies
    int latency_clients = 500;
    double latency_rate = 5000; // messages per second of all of these together
    uint64_t beside_rate = 0;   // bytes per second of the transfer beside them; 0: as fast as it goes
    int idle_clients = 5000;
    int idle_few = 1000; // where the cost of an event is taken for the second time
    int idle_round_trips = 10000;
    bool everywhere = false; // threads run where the scheduler likes, for proxies with several
};

// Which cores the proxy and we run on. To wake a thread on another core costs more than all
// that a proxy does with a message, in a virtual machine several times as much, and whoever
// wakes pays for it: where the scheduler puts whom would decide the figures.
enum class Cores {
    any,   // as the scheduler likes
    one,   // all on one: nobody is ever woken on another
    apart, // the proxy alone on one, we on the others
};

// A proxy that has passed on a message, and its upstream.
class Bench {
public:
    Bench(const Contestant &contestant, Path path, Cores cores);
    ~Bench();
    void place(Cores cores);
    // Whether it works at all; why not, is on stderr.
    bool ready() const { return ready_; }
    Subject &subject() { return *subject_; }
    const Endpoint &endpoint() const { return subject_->endpoint(); }
    // Connected, blocking, with a bound on every call.
    UniqueFd connect() const;

private:
    TempDir folder_;
    Backend backend_;
    std::unique_ptr<Subject> subject_;
    bool ready_ = false;
};

// cpu-up, cpu-down, wall-up, wall-down: seconds per GiB, with the proxy on a core of its own;
// with -one behind it, all on one core. calls-up, calls-down: system calls per GiB.
Figures measure_bulk(const Contestant &contestant, Path path, const Load &load);
// connections per second; connection-cpu: milliseconds of CPU for 1,000.
Figures measure_churn(const Contestant &contestant, Path path, const Load &load);
// Microseconds of a round trip, median and p99: with 1 connection and with many, alone and
// beside a transfer, whose MiB per second are given too.
Figures measure_latency(const Contestant &contestant, Path path, const Load &load);
// Bytes and descriptors of an idle connection; microseconds of CPU for a round trip beside
// none, some and many; how much dearer the last is than the first.
Figures measure_idle(const Contestant &contestant, Path path, const Load &load);

} // namespace sluice::bench
