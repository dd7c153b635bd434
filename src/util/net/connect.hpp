// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Connect to an address without blocking the loop. The descriptor that comes out is
// O_NONBLOCK and O_CLOEXEC, and a TCP one has TCP_NODELAY. Where the answer is known
// at once it is given at once; else the timeout bounds all steps together.
//
//  - unix: a full backlog (EAGAIN) is waited out with a growing pause.
//  - tcp: every address of the name is tried, the next one when the last has failed
//    or has not answered for 250 ms (RFC 8305), and the first that answers is taken.
//    One that comes out of this never leads to itself, as may happen on loopback.
//  - Destroying the task gives up.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "util/async/task.hpp"
#include "util/base/unique_fd.hpp"
#include "util/net/address.hpp"
#include "util/net/resolve.hpp"

namespace sluice {

struct ConnectOptions {
    // < 0: no limit; 0: only what can be had without waiting.
    std::chrono::microseconds timeout = std::chrono::seconds{10};

    // What is being done, for debug lines: `step` is one of resolve, resolved, connect,
    // retry, failed, start (of a daemon), connected; `detail` says of what. Not translated.
    std::function<void(const char *step, const std::string &detail)> on_step;

    void report(const char *step, const std::string &detail) const
    {
        if (on_step)
            on_step(step, detail);
    }
};

// The Error's code says what kind of failure it was, its message names the address,
// the cause and what to try, in the user's language:
//  ENOENT, ENOTDIR, ELOOP    no such socket
//  ENOTSOCK                  the path is something else (the kernel says ECONNREFUSED)
//  ENAMETOOLONG              the path does not fit into a unix address
//  ECONNREFUSED              nobody listens (for vsock too, where the kernel says ECONNRESET)
//  ETIMEDOUT                 no answer, or a full backlog, for the whole of the timeout
//  EACCES, EPERM             not permitted
//  name_not_found, EAGAIN    no such host or service; no name server
//  others                    as the kernel has them
Task<Result<UniqueFd>> connect_to(Loop loop, Address address, ConnectOptions options);

// The part of it that comes after the look-up: `addresses` (tcp or vsock) in turn;
// `name` is what the messages call them.
Task<Result<UniqueFd>> connect_to_any(Loop loop, Address name, std::vector<SocketAddress> addresses,
                                      ConnectOptions options);

// For those that connect very often: try without waiting and without a task. 0, and `fd`
// is connected; EINPROGRESS, and it is on its way, see finish_connect(); or an errno,
// `fd` untouched. EAGAIN means that only waiting can tell, as connect_to() does: the
// backlog of a unix socket is full, or it is a vsock. ECONNREFUSED may also mean that a
// path is no socket.
int connect_now(const SocketAddress &to, UniqueFd &fd) noexcept;

// The rest of the way for a descriptor that connect_now() has begun with. Errors as above;
// `name` is what the messages call the address.
Task<Result<UniqueFd>> finish_connect(Loop loop, Address name, SocketAddress to, UniqueFd begun,
                                      ConnectOptions options);

} // namespace sluice
