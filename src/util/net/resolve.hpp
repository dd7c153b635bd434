// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// From a TCP address to the addresses it stands for, in the order in which they are
// to be tried (getaddrinfo's, RFC 6724). Numbers are converted on the spot; names are
// looked up in a thread, so that the loop runs on however long a name server takes.

#include <optional>
#include <vector>

#include "util/async/task.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

// Code of the Error for a host or service that nobody knows.
inline constexpr int name_not_found = EADDRNOTAVAIL;

// Are host and service both numbers, so that no look-up is needed?
bool is_numeric(const TcpAddress &address);
// Then its one address. Not where there is a scope: which interface that is may change.
std::optional<SocketAddress> numeric_address(const TcpAddress &address);

// Codes: name_not_found, EAGAIN (a name server did not answer), ETIMEDOUT (nor did
// anybody by `deadline_usec`, monotonic), ENODEV (no interface of the scope's name),
// or what went wrong on this machine. The message does not repeat the address.
Task<Result<std::vector<SocketAddress>>> resolve(Loop loop, TcpAddress address, int64_t deadline_usec);

// The same on the spot, waiting as long as it takes; for listening sockets at a start.
Result<std::vector<SocketAddress>> resolve_to_listen(const TcpAddress &address);

} // namespace sluice
