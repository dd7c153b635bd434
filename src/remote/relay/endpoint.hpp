// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One end of a relay: a descriptor that is read, written or both, used without
// blocking and without leaving a trace. O_NONBLOCK belongs to the file description,
// which standard input and output share with other processes: so sockets are used
// with MSG_DONTWAIT, pipes and terminals are opened anew under /proc, and only where
// that fails is the flag set, to be put back by the destructor.
//
// Results are byte counts or negative errno, as from the system; SIGPIPE must be
// ignored by the program. Names are for messages and are not copied: they outlive the
// endpoint.

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "util/base/result.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice::relay {

class Endpoint {
public:
    enum class Kind : uint8_t {
        pipe,
        socket,
        terminal,
        other, // regular files, /dev/null and the like: never block
    };
    enum class Use : uint8_t { read = 1, write = 2, both = 3 };

    // Takes the descriptor over. `name` is what messages call it ("standard input").
    static Result<Endpoint> adopt(UniqueFd fd, Use use, std::string_view name);
    // Takes over a stream socket that is known to be O_NONBLOCK on a description of its
    // own, as one that was just accepted or connected. No system call.
    static Endpoint socket(UniqueFd fd, std::string_view name) noexcept;
    Endpoint(Endpoint &&other) noexcept;
    Endpoint &operator=(Endpoint &&) = delete;
    ~Endpoint();

    int fd() const noexcept { return fd_.get(); }
    Kind kind() const noexcept { return kind_; }
    std::string_view name() const noexcept { return name_; }
    bool is_open() const noexcept { return static_cast<bool>(fd_); }
    // Reads and writes by splice() do not block either. For a socket that needs
    // O_NONBLOCK on a description that is ours alone.
    bool can_splice_to() const noexcept { return kind_ == Kind::pipe || (kind_ == Kind::socket && own_nonblocking_); }
    bool can_splice_from() const noexcept { return kind_ == Kind::pipe || kind_ == Kind::socket; }

    ssize_t read(const iovec *parts, int count) noexcept;
    ssize_t write(const iovec *parts, int count) noexcept;

    // Ask the kernel to hold so many bytes between us and the other side, where that is
    // ours to ask: pipes, and what we send on a unix socket (TCP sizes its own better).
    // Never less than now.
    void widen(size_t bytes) noexcept;

    // Bytes that can be read from a pipe or socket now. One system call.
    size_t waiting() const noexcept;
    // Of a socket (AF_UNIX, ...); 0 for others. One system call the first time.
    int family() noexcept;

    // Has the other side ended its stream, whatever may still be left to read? One system call.
    bool ended_by_peer() const noexcept;

    // Pass the end of the stream on: sockets are shut down for writing, what was
    // written alone is closed.
    void finish_writing() noexcept;
    // Both ways at once.
    void close() noexcept;

private:
    Endpoint(UniqueFd fd, Kind kind, Use use, std::string_view name) noexcept;
    void make_nonblocking();

    std::string_view name_;
    UniqueFd fd_;
    Kind kind_;
    Use use_;
    bool own_nonblocking_ = false; // O_NONBLOCK is set on a description that is ours alone
    int family_ = -1;              // not asked for yet
    int restore_flags_ = -1;       // the flags to put back on one that is not
};

} // namespace sluice::relay
