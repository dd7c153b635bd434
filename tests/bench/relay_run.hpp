// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One measurement of one relay: a feeder and a drain at its ends, and what the relay
// itself cost. Times in seconds, CPU is user and system time of the relay's process
// alone. Blocking calls and one thread at each end; a relay that gets stuck is killed
// after `stuck_s`, which ends the ends too, and the result says so.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/relay_session.hpp"

namespace sluice::bench {

using namespace sluice::test;

enum class Direction { up, down };

inline const char *name_of(Direction direction)
{
    return direction == Direction::up ? "up" : "down";
}

// A relay to be measured; the command is split at blanks, and has already the address.
// Without a command there is no relay: the client is connected to the socket itself.
struct Contestant {
    std::string name;
    std::vector<std::string> argv;
};

struct Measured {
    bool complete = false;
    double wall_s = 0;
    double cpu_s = 0;
    double rss_peak_kib = 0;
    double system_calls = 0;
};

inline constexpr size_t block_size = 256 * 1024;
inline constexpr double stuck_s = 300;

// The blocks are made once and used by every run: writing them costs one copy, as it
// does sshd and the daemon.
inline std::vector<char> &block()
{
    static std::vector<char> bytes(block_size, 'x');
    return bytes;
}

inline void write_all(int fd, uint64_t count)
{
    while (count > 0) {
        const ssize_t done = write(fd, block().data(), size_t(std::min<uint64_t>(count, block_size)));
        if (done <= 0)
            return;
        count -= uint64_t(done);
    }
}

// Read until so many bytes have come, or EOF; how many came.
inline uint64_t read_all(int fd, uint64_t count)
{
    static std::vector<char> sink(block_size);
    uint64_t got = 0;
    while (got < count) {
        const ssize_t done = read(fd, sink.data(), sink.size());
        if (done <= 0)
            break;
        got += uint64_t(done);
    }
    return got;
}

// The ends of a running relay, or of none.
class Run {
public:
    Run(const Contestant &contestant, Stdio kind, Listener &listener, std::vector<std::string> wrapper = {})
    {
        started_usec_ = monotonic_usec();
        if (contestant.argv.empty()) {
            connect_directly(listener);
        } else {
            wrapper.insert(wrapper.end(), contestant.argv.begin(), contestant.argv.end());
            session_ = RelaySession::start(kind, Command(wrapper));
        }
    }

    bool accept(Listener &listener)
    {
        session_.server = listener.accept(Deadline{20});
        return bool(session_.server);
    }

    RelaySession &ends() { return session_; }
    double since_start_s() const { return double(monotonic_usec() - started_usec_) / 1e6; }

    // Close every end and take what the relay cost.
    void finish(Measured &result)
    {
        if (session_.child.pid() < 0)
            return;
        result.rss_peak_kib = double(session_.child.rss_peak_kib());
        session_.end_input();
        session_.server.reset();
        session_.output.reset();
        // some do not end by themselves; what they have used by now counts all the same
        std::optional<Exit> exit = session_.child.wait(Deadline{2});
        if (!exit) {
            session_.child.kill(SIGTERM);
            exit = session_.child.wait(Deadline{20});
        }
        if (exit)
            result.cpu_s = exit->cpu_s;
    }

private:
    void connect_directly(Listener &listener)
    {
        sockaddr_un address{};
        socklen_t size = sizeof(address);
        must(getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
        session_.input = UniqueFd{must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
        must(connect(session_.input.get(), reinterpret_cast<sockaddr *>(&address), size), "connect");
        session_.output = duplicate(session_.input.get());
    }

    RelaySession session_;
    int64_t started_usec_ = 0;
};

// Move so many bytes one way. The other direction stays open and quiet, and EOF comes
// only after the last byte has arrived, since some relays lose bytes at EOF.
inline Measured transfer(const Contestant &contestant, Stdio kind, Direction direction, uint64_t bytes,
                         Listener &listener, std::vector<std::string> wrapper = {})
{
    Measured result;
    Run run(contestant, kind, listener, std::move(wrapper));
    if (!run.accept(listener))
        return result;
    RelaySession &ends = run.ends();
    const bool up = direction == Direction::up;
    const int from = up ? ends.input.get() : ends.server.get();
    const int to = up ? ends.server.get() : ends.output.get();

    std::atomic<bool> over = false;
    std::thread guard([&, pid = ends.child.pid()] {
        const Deadline deadline{stuck_s};
        if (!eventually([&] { return over.load(); }, deadline) && pid > 0)
            kill(pid, SIGKILL);
    });
    std::thread feeder([from, bytes] { write_all(from, bytes); });
    result.complete = read_all(to, bytes) == bytes;
    result.wall_s = run.since_start_s();
    over = true;
    guard.join();
    if (result.complete)
        feeder.join();
    run.finish(result);
    if (feeder.joinable())
        feeder.join();
    return result;
}

// From just before the fork to the arrival of the first byte at the other end.
inline Measured first_byte(const Contestant &contestant, Stdio kind, Direction direction, Listener &listener)
{
    Measured result;
    Run run(contestant, kind, listener);
    RelaySession &ends = run.ends();
    if (direction == Direction::up)
        write_all(ends.input.get(), 1);
    if (!run.accept(listener))
        return result;
    if (direction == Direction::down)
        write_all(ends.server.get(), 1);
    const int to = direction == Direction::up ? ends.server.get() : ends.output.get();
    result.complete = read_all(to, 1) == 1;
    result.wall_s = run.since_start_s();
    run.finish(result);
    return result;
}

// So many messages of 64 bytes there and back, one at a time; wall_s is the median of
// one round trip.
inline Measured ping_pong(const Contestant &contestant, Stdio kind, int round_trips, Listener &listener)
{
    constexpr size_t size = 64;
    Measured result;
    Run run(contestant, kind, listener);
    if (!run.accept(listener))
        return result;
    RelaySession &ends = run.ends();
    std::thread echo([server = ends.server.get()] {
        char message[size];
        ssize_t count;
        while ((count = read(server, message, size)) > 0 && write(server, message, size_t(count)) == count)
            ;
    });
    std::vector<int64_t> taken_ns;
    taken_ns.reserve(size_t(round_trips));
    for (int i = 0; i < round_trips; ++i) {
        timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        write_all(ends.input.get(), size);
        if (read_all(ends.output.get(), size) != size)
            break;
        clock_gettime(CLOCK_MONOTONIC, &after);
        taken_ns.push_back((after.tv_sec - before.tv_sec) * 1'000'000'000L + after.tv_nsec - before.tv_nsec);
    }
    result.complete = taken_ns.size() == size_t(round_trips);
    if (!taken_ns.empty()) {
        std::nth_element(taken_ns.begin(), taken_ns.begin() + ptrdiff_t(taken_ns.size() / 2), taken_ns.end());
        result.wall_s = double(taken_ns[taken_ns.size() / 2]) / 1e9;
    }
    shutdown(ends.server.get(), SHUT_RDWR);
    echo.join();
    run.finish(result);
    return result;
}

// The transfer once more under strace, which counts the system calls of the relay and
// of its threads and children. Slow, so a run of its own.
inline Measured count_system_calls(const Contestant &contestant, Stdio kind, Direction direction, uint64_t bytes,
                                   Listener &listener, const TempDir &scratch)
{
    const std::string report = scratch / "strace";
    Measured result = transfer(contestant, kind, direction, bytes, listener,
                               {"strace", "-f", "-c", "-U", "calls,name", "-o", report});
    // the last line is the total
    std::ifstream lines(report);
    std::string line, last;
    while (std::getline(lines, line))
        if (!line.empty())
            last = line;
    if (last.find("total") == std::string::npos)
        result.complete = false;
    result.system_calls = std::atof(last.c_str());
    return result;
}

} // namespace sluice::bench
