// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A bound on bytes per second that any number of users on any threads share. Whoever
// wants to move bytes reserves them and is told when they may go; reservations queue up
// in the order in which they are made, so that users who ask for little at a time get
// equal shares, and nobody is woken in vain. Lock-free. The algorithm is the virtual
// scheduling form of the leaky bucket (GCRA, ITU-T I.371, annex A), counted in bytes so
// that nothing is lost by rounding.
//
//     int64_t at = bucket.reserve(bytes, now);   // at <= now: go; else wait until then
//     bucket.give_back(bytes - used);

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice {

class TokenBucket {
public:
    static constexpr uint64_t rate_max = uint64_t{1} << 36; // 64 GiB/s

    // `bytes_per_second` is at least 1; `burst_bytes` may go at once after a pause (0:
    // a tenth of a second's worth), and at least two quanta.
    explicit TokenBucket(uint64_t bytes_per_second, uint64_t burst_bytes = 0) noexcept
        : rate_(std::clamp<uint64_t>(bytes_per_second, 1, rate_max)),
          burst_(static_cast<int64_t>(std::max<uint64_t>(burst_bytes ? burst_bytes : rate_ / 10, 2 * quantum())))
    {}
    TokenBucket(const TokenBucket &) = delete;
    TokenBucket &operator=(const TokenBucket &) = delete;

    uint64_t bytes_per_second() const noexcept { return rate_; }
    // What a user should reserve at most at a time: 20 ms' worth, within bounds.
    size_t quantum() const noexcept { return std::clamp<uint64_t>(rate_ / 50, 4 << 10, 256 << 10); }

    // What could go without waiting. `now_usec` is monotonic and not negative.
    size_t available(int64_t now_usec) const noexcept
    {
        int64_t earned = earned_at(now_usec);
        int64_t left = earned + burst_ - std::max(reserved_.load(std::memory_order_relaxed), earned);
        return left > 0 ? static_cast<size_t>(left) : 0;
    }

    // The time from which on these bytes may go, now or later.
    int64_t reserve(size_t bytes, int64_t now_usec) noexcept
    {
        int64_t earned = earned_at(now_usec);
        int64_t before = reserved_.load(std::memory_order_relaxed), after = 0;
        do {
            after = std::max(before, earned) + static_cast<int64_t>(bytes);
        } while (!reserved_.compare_exchange_weak(before, after, std::memory_order_relaxed));
        int64_t missing = after - burst_ - earned;
        return missing <= 0 ? now_usec : now_usec + usec_for(missing);
    }

    // Bytes that were reserved and did not go.
    void give_back(size_t bytes) noexcept
    {
        reserved_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    }

private:
    // Both in two steps, so that nothing overflows.
    int64_t earned_at(int64_t now_usec) const noexcept
    {
        auto now = static_cast<uint64_t>(now_usec);
        return static_cast<int64_t>(rate_ * (now / 1'000'000) + rate_ * (now % 1'000'000) / 1'000'000);
    }
    int64_t usec_for(int64_t bytes) const noexcept
    {
        auto count = static_cast<uint64_t>(bytes);
        uint64_t rest = (count % rate_ * 1'000'000 + rate_ - 1) / rate_;
        return static_cast<int64_t>(count / rate_ * 1'000'000 + rest);
    }

    const uint64_t rate_;
    const int64_t burst_;
    // Bytes since time 0, at this rate, up to which all is spoken for; in the past: idle.
    std::atomic<int64_t> reserved_{0};
};

} // namespace sluice
