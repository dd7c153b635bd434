// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Addresses for tests.

#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "util/net/socket_address.hpp"

namespace sluice {

inline SocketAddress inet_address(const std::string &host, uint16_t port)
{
    SocketAddress address;
    auto *v4 = reinterpret_cast<sockaddr_in *>(&address.storage);
    auto *v6 = reinterpret_cast<sockaddr_in6 *>(&address.storage);
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address.size = sizeof *v4;
    } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        address.size = sizeof *v6;
    } else {
        throw std::runtime_error("no address: " + host);
    }
    return address;
}

inline SocketAddress unix_path(const std::string &path)
{
    return to_socket_address(UnixPath{path}).value();
}

// As accept() gives it for a client that is bound to no name.
inline SocketAddress unnamed_unix()
{
    SocketAddress address;
    address.storage.ss_family = AF_UNIX;
    address.size = sizeof(sa_family_t);
    return address;
}

} // namespace sluice
