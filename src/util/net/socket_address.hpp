// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// An address as the kernel takes it, of whatever family.

#include <optional>
#include <string>

#include <sys/socket.h>

#include "util/net/address.hpp"

namespace sluice {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    int family() const noexcept { return storage.ss_family; }
    const sockaddr *get() const noexcept { return reinterpret_cast<const sockaddr *>(&storage); }
    sockaddr *get() noexcept { return reinterpret_cast<sockaddr *>(&storage); }
};

// nullopt where the name does not fit (longer than unix_name_bytes_max).
std::optional<SocketAddress> to_socket_address(const UnixPath &address);
std::optional<SocketAddress> to_socket_address(const UnixAbstract &address);
SocketAddress to_socket_address(const VsockAddress &address);

// For messages and logs: HOST:PORT in numbers, or what to_string() says of the others.
std::string to_string(const SocketAddress &address);

// Where a socket is bound, or whom it is connected to; empty (size 0) where the kernel cannot say.
SocketAddress local_address(int fd);
SocketAddress peer_address(int fd);

// The message for a unix name that does not fit; its code is ENAMETOOLONG.
Error name_too_long(const Address &address, size_t bytes);

} // namespace sluice
