// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A disk as a pipeline of stages. A `Block` is one stage: a source at the far end, and
// layers each of which owns the stage below it. Requests go down, results come up.
//
//  - All of it is on one loop's thread. A stage never blocks that thread.
//  - A request is a task. Its buffer belongs to whoever asks and lives until the task has
//    ended; tasks are not destroyed half-way but run to their end, and a stage lives until
//    every request on it has ended.
//  - Requests may come at once and end in any order. As with any disk, two that overlap
//    and of which one changes something have no order unless the first had ended.
//  - offset + length <= info().size, and length > 0; the server has checked that. Lengths
//    of reads and writes are at most `request_bytes_max`, others may be the whole disk.
//  - Errors are errno values as NBD knows them: EIO, EPERM (read-only), ENOSPC, EINVAL,
//    ENOTSUP (a fast zero that would not be fast), ETIMEDOUT, ESHUTDOWN.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "util/async/task.hpp"
#include "util/base/result.hpp"

namespace sluice::disk {

inline constexpr uint32_t request_bytes_max = 32u << 20;

// Who waits: what is not waited for by a client gives way (demand first).
enum class Urgency : uint8_t { demand, prefetch, write_back };

// Who asks, for scheduling at the source: fair over `client`, in the order of `urgency`.
struct Asker {
    uint64_t client = 0; // a number for each connection; 0 for the pipeline's own work
    Urgency urgency = Urgency::demand;
};

struct WriteFlags {
    bool fua = false; // durable before it is answered
};

struct ZeroFlags {
    bool fua = false;
    bool may_punch = true;  // a hole will do (NBD: without NO_HOLE)
    bool fast_only = false; // ENOTSUP at once where it would be no faster than a write
};

// A run of bytes of the same kind; a list of them covers a range without gaps.
struct Extent {
    uint64_t length = 0;
    bool hole = false; // not allocated
    bool zero = false; // reads as zeros
    bool operator==(const Extent &) const = default;
};

struct BlockInfo {
    uint64_t size = 0;
    bool read_only = false;
    bool can_flush = false;
    bool can_fua = false; // else the server flushes after the write
    bool can_trim = false;
    bool can_zero = false;      // else the server writes zeros
    bool can_fast_zero = false; // `fast_only` is understood
    bool can_extents = false;   // else all is data
    bool can_cache = false;
    // A flush on one connection covers what any other has been told is written, and no
    // connection has a cache of its own. True of everything here but a source that is not.
    bool multi_conn = true;
    uint32_t block_min = 1;          // a power of two; offsets and lengths are multiples of it
    uint32_t block_preferred = 4096; // a power of two
    uint32_t block_max = request_bytes_max;
    // What the content comes from and which version of it, so that a copy of it can be told
    // from another's: "nbd+unix:///x?socket=/y", "http://h/d.img etag=\"77\" size=123".
    // Empty if nothing is known that would change with the content.
    std::string identity;
};

// Bytes that can go to a socket without passing through us.
struct FileRange {
    int fd = -1;
    uint64_t offset = 0;
};

class Block {
public:
    Block() = default;
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    virtual ~Block() = default;

    virtual const BlockInfo &info() const noexcept = 0;

    virtual Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) = 0;
    virtual Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from,
                                     WriteFlags flags) = 0;
    virtual Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) = 0;
    virtual Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) = 0;
    virtual Task<Result<void>> flush(Asker asker) = 0;

    // At least one extent, from `offset` on, together at most `length`; fewer than asked for
    // is all right, and so is more than one of a kind in a row.
    virtual Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) = 0;

    // Get the range nearer, if there is somewhere nearer; success if not.
    virtual Task<Result<void>> cache(Asker asker, uint64_t offset, uint64_t length) = 0;

    // The whole of the range lies in a file, as it is now and without waiting for a disk:
    // the server may send it from there. Valid until the loop's next turn.
    virtual std::optional<FileRange> direct(uint64_t offset, uint64_t length) noexcept
    {
        (void)offset, (void)length;
        return std::nullopt;
    }

    // No request is running and none will come: write back what is owed, end background
    // work, let go of the source. Once, before the destructor; the result is what was lost.
    virtual Task<Result<void>> close() = 0;
};

} // namespace sluice::disk
