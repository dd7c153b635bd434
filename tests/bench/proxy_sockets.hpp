// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Both ends of a proxy under test: addresses in the notation of sluiced (a path, or
// tcp:127.0.0.1:PORT), and stream sockets to and at them.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <random>
#include <stdexcept>
#include <string>

#include "support/channels.hpp"

namespace sluice::bench {

using namespace sluice::test;

enum class Kind { unix_path, tcp };

struct Endpoint {
    std::string text;
    Kind kind = Kind::unix_path;
    sockaddr_storage address{};
    socklen_t size = 0;

    const sockaddr *sockaddr_ptr() const { return reinterpret_cast<const sockaddr *>(&address); }

    static Endpoint path(const std::string &name)
    {
        Endpoint endpoint{name};
        auto &address = reinterpret_cast<sockaddr_un &>(endpoint.address);
        address.sun_family = AF_UNIX;
        if (name.size() >= sizeof(address.sun_path))
            throw std::length_error("socket path too long: " + name);
        name.copy(address.sun_path, name.size());
        endpoint.size = sizeof(sockaddr_un);
        return endpoint;
    }

    static Endpoint port(uint16_t number)
    {
        Endpoint endpoint{"tcp:127.0.0.1:" + std::to_string(number), Kind::tcp};
        auto &address = reinterpret_cast<sockaddr_in &>(endpoint.address);
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(number);
        endpoint.size = sizeof(sockaddr_in);
        return endpoint;
    }

    // One that nobody uses. Ports are taken from below those that the kernel hands out, else
    // one of the connections of a benchmark might have it by the time somebody listens there.
    static Endpoint unused(Kind kind, const std::string &path_name)
    {
        if (kind == Kind::unix_path)
            return path(path_name);
        static std::mt19937 random{std::random_device{}()};
        for (int i = 0; i < 1000; ++i) {
            Endpoint endpoint = port(uint16_t(20000 + random() % 12000));
            UniqueFd probe{must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
            if (bind(probe.get(), endpoint.sockaddr_ptr(), endpoint.size) == 0)
                return endpoint;
        }
        throw std::runtime_error("no port is free");
    }
};

inline UniqueFd make_socket(const Endpoint &endpoint, int flags = 0)
{
    UniqueFd fd{must(socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket")};
    if (endpoint.kind == Kind::tcp) {
        const int on = 1;
        must(setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
    }
    return fd;
}

// Connected, or nothing and errno.
inline UniqueFd try_connect(const Endpoint &endpoint)
{
    UniqueFd fd = make_socket(endpoint);
    if (::connect(fd.get(), endpoint.sockaddr_ptr(), endpoint.size) != 0)
        return {};
    return fd;
}

// Non-blocking; whatever listened there before is replaced.
inline UniqueFd listen_at(const Endpoint &endpoint)
{
    UniqueFd fd = make_socket(endpoint, SOCK_NONBLOCK);
    const int on = 1;
    if (endpoint.kind == Kind::unix_path)
        unlink(endpoint.text.c_str());
    else
        must(setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
    must(bind(fd.get(), endpoint.sockaddr_ptr(), endpoint.size), "bind");
    must(listen(fd.get(), 4096), "listen");
    return fd;
}

// The next close() of it is a reset: what is under way is thrown away.
inline void reset_on_close(int fd)
{
    const linger now{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

// How a proxy is used: the client's side, then the upstream's.
struct Path {
    Kind client;
    Kind upstream;

    static Path parse(const std::string &text)
    {
        const auto kind = [&](const std::string &word) {
            if (word != "unix" && word != "tcp")
                throw std::invalid_argument("no path of sockets: " + text);
            return word == "tcp" ? Kind::tcp : Kind::unix_path;
        };
        const size_t dash = text.find('-');
        if (dash == std::string::npos)
            throw std::invalid_argument("no path of sockets: " + text);
        return {kind(text.substr(0, dash)), kind(text.substr(dash + 1))};
    }

    std::string name() const
    {
        return std::string(client == Kind::tcp ? "tcp" : "unix") + (upstream == Kind::tcp ? "-tcp" : "-unix");
    }
};

} // namespace sluice::bench
