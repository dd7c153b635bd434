// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a cache should fetch beyond what it was asked for. It sees every read, says which
// ranges are likely to be next, and does no I/O of its own: the cache leaves out what it
// has or is already fetching, and fetches the rest behind what clients wait for.
//
// A disk that is looked into is read at few places far from each other, and around each of
// them forward. So a miss asks for the window behind it, the first read of all for both ends
// of the disk (partition tables), and reads that run on for more and more of what follows.

#include <cstdint>
#include <vector>

namespace sluice::disk {

struct Range {
    uint64_t offset = 0;
    uint64_t length = 0;
    bool operator==(const Range &) const = default;
};

struct PolicyLimits {
    uint64_t disk_size = 0;
    uint64_t block = 64u << 10;     // of the cache; all ranges are multiples of it
    uint64_t ahead_max = 32u << 20; // bytes that may be asked for by one read; 0: none at all
    uint64_t window = 4u << 20;     // behind a miss
    uint64_t head = 8u << 20;       // of the disk, at the first read
    uint64_t tail = 1u << 20;
};

class FillPolicy {
public:
    explicit FillPolicy(PolicyLimits limits);

    // A client's read, and whether the source had to be asked. The ranges are aligned, within
    // the disk, best first, and may be ones that the cache has.
    std::vector<Range> on_read(uint64_t client, uint64_t offset, uint64_t length, bool missed);

private:
    // Reads of one client that follow each other.
    struct Stream {
        uint64_t client = 0;
        uint64_t end = 0;         // of its last read
        uint64_t bytes = 0;       // that it has read on
        uint64_t asked_until = 0; // what has been asked for ends here
    };

    Stream &stream_of(uint64_t client, uint64_t offset, uint64_t length);
    void add(std::vector<Range> &ranges, uint64_t begin, uint64_t end) const;

    PolicyLimits limits_;
    bool first_ = true;
    std::vector<Stream> streams_; // the one read last is the first
};

} // namespace sluice::disk
