// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/cache/policy.hpp"

#include <algorithm>
#include <utility>

namespace sluice::disk {
namespace {

constexpr size_t streams_max = 32;
constexpr uint64_t gap_max = 256u << 10;      // between two reads of a stream
constexpr uint64_t steady_bytes = 256u << 10; // reads that have run on that far will run on

} // namespace

FillPolicy::FillPolicy(PolicyLimits limits) : limits_(limits) {}

FillPolicy::Stream &FillPolicy::stream_of(uint64_t client, uint64_t offset, uint64_t length)
{
    auto at = std::find_if(streams_.begin(), streams_.end(), [&](const Stream &stream) {
        return stream.client == client && offset >= stream.end && offset - stream.end <= gap_max;
    });
    if (at == streams_.end()) {
        if (streams_.size() >= streams_max)
            streams_.pop_back();
        at = streams_.insert(streams_.begin(), {client, offset + length, 0, offset + length});
    } else {
        at->end = offset + length;
        at->bytes += length;
        std::rotate(streams_.begin(), at, at + 1);
    }
    return streams_.front();
}

void FillPolicy::add(std::vector<Range> &ranges, uint64_t begin, uint64_t end) const
{
    begin = begin / limits_.block * limits_.block;
    if (begin >= limits_.disk_size || end <= begin)
        return;
    uint64_t past_last = (limits_.disk_size - 1) / limits_.block * limits_.block + limits_.block;
    uint64_t length = (std::min(end, limits_.disk_size) - begin + limits_.block - 1) / limits_.block * limits_.block;
    ranges.push_back({begin, std::min(length, past_last - begin)});
}

std::vector<Range> FillPolicy::on_read(uint64_t client, uint64_t offset, uint64_t length, bool missed)
{
    std::vector<Range> ranges;
    if (limits_.ahead_max == 0)
        return ranges;
    Stream &stream = stream_of(client, offset, length);
    uint64_t end = stream.end;
    uint64_t want = missed ? limits_.window : 0;
    if (stream.bytes >= steady_bytes)
        want = std::max(want, 2 * stream.bytes);
    want = std::min(want, limits_.ahead_max);
    // half of what is wanted is there yet: time for more
    if (want > 0 && (missed || stream.asked_until < end + want / 2)) {
        add(ranges, missed ? offset : std::max(stream.asked_until, offset), end + want);
        stream.asked_until = end + want;
    }
    if (std::exchange(first_, false)) {
        add(ranges, 0, limits_.head);
        add(ranges, limits_.disk_size - std::min(limits_.disk_size, limits_.tail), limits_.disk_size);
    }
    return ranges;
}

} // namespace sluice::disk
