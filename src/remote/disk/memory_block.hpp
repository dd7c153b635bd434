// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A disk in memory, for tests: it counts what reaches it, can be slow, fail, or hold
// requests back until it is told to go on. A write lands when its delay is over, so that
// what a slow source does to a layer can be seen.

#include <chrono>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <sluice/event.hpp>

#include "remote/disk/block.hpp"
#include "util/async/waiters.hpp"

namespace sluice::disk {

class MemoryBlock : public Block {
public:
    struct Seen {
        enum class Kind { read, write, zero, trim, flush, extents, cache } kind;
        uint64_t offset, length;
        Asker asker;
    };

    MemoryBlock(Loop loop, uint64_t size) : data(size), loop_(std::move(loop))
    {
        info_.size = size;
        info_.can_flush = info_.can_fua = info_.can_trim = info_.can_zero = info_.can_fast_zero = true;
        info_.can_extents = info_.can_cache = true;
        info_.identity = "memory size=" + std::to_string(size);
    }

    // Byte i is a function of i alone, so that any piece can be checked.
    static std::byte pattern(uint64_t i) noexcept
    {
        return static_cast<std::byte>((i * 2654435761u + (i >> 12)) >> 7 & 0xff);
    }
    void fill_with_pattern() noexcept
    {
        for (uint64_t i = 0; i < data.size(); ++i)
            data[i] = pattern(i);
    }
    BlockInfo &mutable_info() noexcept { return info_; } // before it is used
    uint64_t count(Seen::Kind kind) const noexcept
    {
        uint64_t n = 0;
        for (const Seen &one : seen)
            n += one.kind == kind;
        return n;
    }

    std::vector<std::byte> data;
    std::vector<Seen> seen;
    std::chrono::microseconds delay{0};          // of reads, writes, zeroes, trims, extents
    std::function<int(const Seen &)> fails = {}; // an errno, or 0
    bool holding = false;                        // requests wait for release()
    unsigned in_flight = 0, in_flight_max = 0;
    unsigned flushes = 0;
    bool closed = false;

    void release()
    {
        holding = false;
        held_.wake_all();
    }

    const BlockInfo &info() const noexcept override { return info_; }
    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override
    {
        int error = co_await pass({Seen::Kind::read, offset, into.size(), asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        std::memcpy(into.data(), data.data() + offset, into.size());
        co_return {};
    }
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags) override
    {
        int error = co_await pass({Seen::Kind::write, offset, from.size(), asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        std::memcpy(data.data() + offset, from.data(), from.size());
        co_return {};
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags) override
    {
        int error = co_await pass({Seen::Kind::zero, offset, length, asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        std::memset(data.data() + offset, 0, length);
        co_return {};
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags) override
    {
        int error = co_await pass({Seen::Kind::trim, offset, length, asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        std::memset(data.data() + offset, 0, length);
        co_return {};
    }
    Task<Result<void>> flush(Asker asker) override
    {
        int error = co_await pass({Seen::Kind::flush, 0, 0, asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        ++flushes;
        co_return {};
    }
    // 64 KiB at a time: a run of zeros is a hole.
    Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) override
    {
        int error = co_await pass({Seen::Kind::extents, offset, length, asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        std::vector<Extent> list;
        for (uint64_t at = offset, end = offset + length; at < end;) {
            uint64_t next = std::min(end, (at / 65536 + 1) * 65536);
            bool zero = true;
            for (uint64_t i = at; i < next && zero; ++i)
                zero = data[i] == std::byte{0};
            if (!list.empty() && list.back().zero == zero)
                list.back().length += next - at;
            else
                list.push_back({next - at, zero, zero});
            at = next;
        }
        co_return list;
    }
    Task<Result<void>> cache(Asker asker, uint64_t offset, uint64_t length) override
    {
        int error = co_await pass({Seen::Kind::cache, offset, length, asker});
        if (error != 0)
            co_return fail_errno(error, "memory");
        co_return {};
    }
    Task<Result<void>> close() override
    {
        closed = true;
        co_return {};
    }

private:
    Task<int> pass(Seen one)
    {
        seen.push_back(one);
        in_flight_max = std::max(in_flight_max, ++in_flight);
        while (holding)
            co_await held_.wait();
        if (delay.count() > 0 && one.kind != Seen::Kind::flush)
            co_await loop_.sleep_for(delay);
        --in_flight;
        co_return fails ? fails(one) : 0;
    }

    Loop loop_;
    BlockInfo info_;
    WaitList held_;
};

} // namespace sluice::disk
