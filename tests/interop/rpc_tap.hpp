// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stands between one libvirt client and its daemon, passes the bytes on and counts
// the keepalive messages, so that a test sees pings and pongs rather than guessing
// from elapsed time. Framing as in libvirt's virnetprotocol.x: a 32-bit length that
// counts itself, then program, version, procedure, each 32 bits, big-endian.

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "support/channels.hpp"

namespace sluice::test {

class RpcTap {
public:
    // Listens on `path` for one connection to be led to `daemon`; `changed` is called,
    // on the tap's thread, after a counter has changed.
    RpcTap(const std::string &path, const std::string &daemon, std::function<void()> changed);
    ~RpcTap();
    RpcTap(const RpcTap &) = delete;
    RpcTap &operator=(const RpcTap &) = delete;

    int pings() const { return pings_; } // from the client
    int pongs() const { return pongs_; } // from the daemon

private:
    // One direction: its bytes so far that are not yet a whole message.
    struct Lane {
        int from;
        int to;
        std::string pending;
    };

    void run();
    bool forward(Lane &lane);
    void count(const std::string &message);

    std::string daemon_;
    std::function<void()> changed_;
    Listener listener_;
    Ends stop_ = make_pipe();
    std::atomic<int> pings_ = 0;
    std::atomic<int> pongs_ = 0;
    std::thread thread_;
};

} // namespace sluice::test
