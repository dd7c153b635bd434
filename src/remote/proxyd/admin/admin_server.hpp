// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The admin socket: HTTP/1.1 on the daemon's main loop. It tells (GET /metrics, /status)
// and takes orders (POST /services/NAME/drain, ...), all through `Control`; routes.cpp
// knows the paths, docs/admin.md describes them. One request to a connection, then it is
// closed; what takes long is bounded by Limits, and nothing blocks.
//
// Root and the daemon's own uid are always let in, others as `permit` says; who is not
// gets 403. Requests that a web page makes (they have an Origin) are refused too.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <sluice/event.hpp>

#include "remote/proxyd/admin/status.hpp"
#include "util/net/access.hpp"
#include "util/net/listen.hpp"

namespace sluice::proxyd {

struct AdminLimits {
    unsigned clients = 64;                     // at a time; further ones wait in the backlog
    unsigned refused_clients = 8;              // of them, those that are not let in; further ones are cut off
    size_t body_bytes = 4096;                  // no request needs a body
    std::chrono::milliseconds request{10'000}; // for a request to come in
    std::chrono::milliseconds answer{30'000};  // for Control to answer, and then for the client to take it
};

class AdminServer {
public:
    // Groups are loaded, where the kernel tells them.
    using Permit = std::function<bool(const Peer &)>;

    // The loop's context must be the thread-default one. `control` must outlive the
    // server, which must not be destroyed from within a call of Control. Without a
    // `permit` only root and our own uid are let in. Throws std::system_error where the
    // loop takes no more watches.
    AdminServer(Loop loop, std::vector<Listener> listeners, Permit permit, Control &control, AdminLimits limits = {});
    AdminServer(const AdminServer &) = delete;
    AdminServer &operator=(const AdminServer &) = delete;
    ~AdminServer(); // cuts its clients off

    // Other rules, for clients that come from now on.
    void set_permit(Permit permit);
    // A descriptor has become free: accept again if that had to wait.
    void resource_freed();
    unsigned clients() const noexcept;
    // Where it listens, with the port that the kernel chose.
    std::vector<SocketAddress> addresses() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace sluice::proxyd
