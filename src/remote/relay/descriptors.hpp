// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// File descriptors that come along with the bytes of a unix socket (SCM_RIGHTS, see
// unix(7)). The kernel hands them out with the first byte they were sent with, to whoever
// reads that byte, and drops them if that reader does not ask for any.

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "util/base/ring.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice::relay {

// Read from a socket; what descriptors come along are closed, and then `met` is set.
ssize_t read_without_descriptors(int fd, const iovec *parts, int count, bool &met) noexcept;

// Those on their way from one socket to another, each bound to its byte of the stream.
// They are closed when there is nobody to take them.
class DescriptorQueue {
public:
    // With so many on their way no more is read, until some have gone. (One message may
    // bring up to 253 at once.)
    static constexpr size_t held_max = 64;

    bool full() const noexcept { return count_ >= held_max; }
    size_t count() const noexcept { return count_; }

    // Bytes, or a negative errno: EMFILE where descriptors were lost for want of room
    // for them. A read never runs across a place where descriptors are.
    ssize_t read(int fd, const Ring::Pieces &space);
    // EBADMSG where descriptors are due and it is no unix socket.
    ssize_t write(int fd, const Ring::Pieces &filled);

private:
    struct Batch {
        uint64_t at; // bytes of the stream before it
        std::vector<UniqueFd> fds;
    };

    ssize_t read_with_control(int fd, const Ring::Pieces &space);

    std::vector<Batch> batches_;
    size_t count_ = 0;
    uint64_t taken_ = 0, given_ = 0; // bytes
};

} // namespace sluice::relay
