// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Listening sockets, and the acceptor that takes connections off them on a loop. It
// accepts a bounded batch a turn, so that other work goes on under a pile of clients,
// and when the process or the machine runs out of descriptors or memory it stops
// watching for a while instead of spinning: one report, then tries at growing
// intervals, and at once when it is told that a descriptor has been freed. Everything
// on the loop's thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <sluice/event.hpp>

#include "util/base/result.hpp"
#include "util/base/unique_fd.hpp"
#include "util/net/address.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

struct ListenOptions {
    int backlog = SOMAXCONN; // the kernel cuts it to net.core.somaxconn
    // of a unix path; without them, as the umask and our own ids say
    std::optional<mode_t> mode;
    std::optional<uid_t> owner;
    std::optional<gid_t> group;
};

// Sockets that listen: one, or one for each address that a TCP name stands for. The
// path of a unix one that we made ourselves goes away with it, unless another socket
// has taken its place by then; a descriptor that was handed in leaves nothing removed.
class Listener {
public:
    // O_NONBLOCK is set on `fd`; the path it is bound to stays the business of whoever made it.
    static Result<Listener> adopt(UniqueFd fd);

    Listener(Listener &&other) noexcept
        : fds_(std::move(other.fds_)), path_(std::exchange(other.path_, {})), inode_(other.inode_)
    {}
    Listener &operator=(Listener &&) = delete;
    ~Listener();

    // The same sockets in other descriptors, for another loop; the path stays this one's business.
    Result<Listener> share() const;
    // Mode, owner and group of the path, if it is ours; `address` is for messages.
    Result<void> set_ownership(const Address &address, const ListenOptions &options) const;
    // The sockets live on elsewhere: leave their path where it is.
    void keep_path() noexcept { path_.clear(); }

    const std::vector<UniqueFd> &fds() const noexcept { return fds_; }
    // Where it listens now, with the port that the kernel chose.
    std::vector<SocketAddress> addresses() const;

private:
    friend Result<Listener> listen_on(const Address &, const ListenOptions &);
    struct Inode {
        dev_t device = 0;
        ino_t number = 0;
        bool operator==(const Inode &) const = default;
    };
    Listener() = default;

    static Result<UniqueFd> bind_and_listen(const Address &address, const SocketAddress &at, bool ipv6_only,
                                            const ListenOptions &options);
    Result<void> listen_on_path(const UnixPath &address, const ListenOptions &options);

    std::vector<UniqueFd> fds_;
    std::string path_; // to be removed
    Inode inode_;
};

// A unix socket left behind by a process that is gone is replaced; one on which
// somebody listens is EADDRINUSE, and a path that is no socket is never touched
// (ENOTSOCK). Names are looked up on the spot: for use at a start.
Result<Listener> listen_on(const Address &address, const ListenOptions &options = {});

class Acceptor {
public:
    struct Callbacks {
        // Is there a place for one more? Asked before each connection is taken; if not,
        // the acceptor holds until it is released. May be empty.
        std::function<bool()> reserve = {};
        // The place just reserved is not needed: nobody was there. With `reserve` only.
        std::function<void()> unreserve = {};
        // A new connection, O_NONBLOCK and O_CLOEXEC. May destroy the acceptor.
        std::function<void(UniqueFd connection, const SocketAddress &peer)> accepted = {};
        // Accepting has paused for want of a resource; once for each time of want, which
        // ends when the queue of waiting clients has been emptied. May be empty.
        std::function<void(const Error &why)> paused = {};
        // That time has ended. May be empty.
        std::function<void()> recovered = {};
    };
    struct Limits {
        int batch = 16; // connections of one socket a turn
        std::chrono::milliseconds pause{10};
        std::chrono::milliseconds pause_max{1000};
    };

    // Throws std::system_error where the loop takes no more watches.
    Acceptor(Loop loop, Listener listener, Callbacks callbacks, Limits limits);
    Acceptor(Loop loop, Listener listener, Callbacks callbacks)
        : Acceptor(std::move(loop), std::move(listener), std::move(callbacks), Limits{})
    {}
    Acceptor(const Acceptor &) = delete;
    Acceptor &operator=(const Acceptor &) = delete;
    ~Acceptor();

    // A descriptor or memory has become free: if paused, try again at the next turn.
    void resource_freed();
    // Leave clients in the backlog, and take them again: for a limit on connections.
    void hold();
    void release();

    bool paused() const noexcept { return paused_; }
    const Listener &listener() const noexcept { return listener_; }

    struct Counters {
        uint64_t accepted = 0;
        uint64_t failed = 0;   // accepts that failed for want of a resource
        uint64_t pauses = 0;   // times of want
        uint64_t vanished = 0; // clients that were gone before they were accepted
    };
    const Counters &counters() const noexcept { return counters_; }

private:
    // Shared with the batches that are running, so that a callback which destroys the
    // acceptor neither loses its own captures under its feet nor is called again.
    struct Owner {
        Callbacks callbacks;
        bool gone = false;
    };

    void accept_batch(int fd);
    bool accept_one(int fd);
    void pause(int code);
    void queue_is_empty();
    void arm();

    Loop loop_;
    Listener listener_;
    std::shared_ptr<Owner> owner_;
    Limits limits_;
    Counters counters_;
    std::chrono::milliseconds next_pause_;
    bool want_ = false; // a time of want has been reported and has not ended
    bool paused_ = false;
    bool held_ = false;
    std::vector<Handle> watches_;
    Timeout resume_;
};

} // namespace sluice
