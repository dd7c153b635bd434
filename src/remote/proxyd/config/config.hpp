// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What sluiced is told to do, checked and in values; sluiced.toml(5) is the text form.
// Read once and never changed afterwards: a reload makes another one. 0 is "no limit"
// or "off" wherever it could be meant.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "util/net/access.hpp"
#include "util/net/address.hpp"

namespace sluice::proxyd {

// Where a line of the configuration stands, for messages: "/etc/sluiced.toml:12:3".
struct Place {
    std::string file; // empty: the command line
    unsigned line = 0;
    unsigned column = 0;
    // What is configured is the same wherever it stands.
    constexpr bool operator==(const Place &) const noexcept { return true; }
};

// A socket that systemd hands over, by its FileDescriptorName=; an empty name means
// every one that no other service names.
struct PassedSocket {
    std::string name;
    bool operator==(const PassedSocket &) const = default;
};

struct ListenConfig {
    std::variant<PassedSocket, Address> at;
    // of a unix path
    std::optional<mode_t> mode;
    std::optional<uid_t> owner;
    std::optional<gid_t> group;
    Place place;
    bool operator==(const ListenConfig &) const = default;
};

inline constexpr size_t upstreams_max = 64;
inline constexpr unsigned workers_max = 256;
inline constexpr unsigned connections_max = 1'000'000;
inline constexpr uint32_t buffer_bytes_min = 4 << 10;
inline constexpr uint32_t buffer_bytes_max = 1 << 20;

enum class Balance { first, round_robin };
enum class WhenFull { wait, refuse };
enum class ProxyProtocol { none, v1, v2 };
// Which connections leave a record when they end.
enum class LogConnections { none, failed, all };
// SCM_RIGHTS on unix sockets. `detect` refuses what it sees, and it sees what is copied:
// a lane that has moved on to splice is not looked into. The others always copy.
enum class PassFds { detect, refuse, pass };

struct Keepalive {
    bool on = true;
    std::chrono::seconds idle{60};
    std::chrono::seconds interval{10};
    int count = 6;
    bool operator==(const Keepalive &) const = default;
};

struct Limits {
    unsigned connections = 256;
    WhenFull when_full = WhenFull::wait;
    unsigned per_peer = 0;     // of one uid, or of one address
    uint64_t memory_bytes = 0; // in buffers, all connections of the service together
    uint64_t rate_up = 0;      // bytes per second, all connections together, client to upstream
    uint64_t rate_down = 0;
    uint64_t connection_rate_up = 0; // the same for each connection
    uint64_t connection_rate_down = 0;
    uint32_t buffer_bytes = 128 << 10; // for each direction of a connection; a power of two, 4K to 1M
    bool operator==(const Limits &) const = default;
};

struct Timeouts {
    std::chrono::microseconds connect{std::chrono::seconds{10}};
    // How long a client is kept waiting while no upstream can be had; 0: the first
    // failure of all of them is final.
    std::chrono::microseconds wait_for_upstream{0};
    std::chrono::microseconds idle{0};
    std::chrono::microseconds fin{std::chrono::seconds{30}};   // bytes that nobody takes after their source has ended
    std::chrono::microseconds half_closed{0};                  // nothing moves after one direction has ended
    std::chrono::microseconds header{std::chrono::seconds{5}}; // for a PROXY header to come in
    bool operator==(const Timeouts &) const = default;
};

struct Health {
    unsigned failures = 1;                                          // in a row make an upstream "down"
    std::chrono::microseconds retry_after{std::chrono::seconds{5}}; // then it is passed over for that long
    bool operator==(const Health &) const = default;
};

struct ServiceConfig {
    std::string name;
    std::vector<ListenConfig> listen;
    std::vector<Address> connect; // at least one, at most upstreams_max
    Balance balance = Balance::first;
    Health health;
    Limits limits;
    Timeouts timeouts;
    Keepalive keepalive;
    AccessRules access;
    ProxyProtocol send_proxy = ProxyProtocol::none;
    // Clients from whom a PROXY header is expected; from others it is not.
    std::optional<AccessRules> accept_proxy;
    PassFds pass_fds = PassFds::detect;
    bool splice = true;
    LogConnections log_connections = LogConnections::failed;
    Place place;
    bool operator==(const ServiceConfig &) const = default;
};

struct AdminConfig {
    std::vector<ListenConfig> listen; // empty: off
    AccessRules access;               // unix; root and our own uid always may
    Place place;
    bool operator==(const AdminConfig &) const = default;
};

enum class LogLevel { error, warning, info, debug };

struct Config {
    unsigned workers = 1;
    std::chrono::microseconds drain_timeout{std::chrono::seconds{30}};
    std::chrono::microseconds exit_idle_time{0};
    LogLevel log_level = LogLevel::info;
    AdminConfig admin;
    std::vector<ServiceConfig> services; // names are unique
    bool operator==(const Config &) const = default;
};

} // namespace sluice::proxyd
