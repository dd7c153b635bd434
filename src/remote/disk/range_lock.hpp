// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Ranges of a disk that are in use: one at a time where they overlap, in the order in which
// they came; shared ones overlap each other. For one loop's thread.
//
//     RangeLock::Held held = co_await lock.exclusive(offset, length);
//
// A lock of n ranges costs O(n) to take: n is the number of requests in flight.

#include <cstdint>
#include <utility>

#include "util/async/task.hpp"
#include "util/async/waiters.hpp"

namespace sluice::disk {

class RangeLock {
    struct Entry {
        uint64_t begin = 0, end = 0;
        bool shared = false;
        Entry *next = nullptr;
        Entry *previous = nullptr;
    };

public:
    // Lets go when it is destroyed. Outlived by its lock.
    class Held {
    public:
        Held() noexcept = default;
        Held(Held &&other) noexcept
            : lock_(std::exchange(other.lock_, nullptr)), entry_(std::exchange(other.entry_, nullptr))
        {}
        Held &operator=(Held &&other) noexcept
        {
            if (this != &other) {
                release();
                lock_ = std::exchange(other.lock_, nullptr);
                entry_ = std::exchange(other.entry_, nullptr);
            }
            return *this;
        }
        ~Held() { release(); }

        void release() noexcept;
        explicit operator bool() const noexcept { return entry_ != nullptr; }

    private:
        friend RangeLock;
        Held(RangeLock *lock, Entry *entry) noexcept : lock_(lock), entry_(entry) {}

        RangeLock *lock_ = nullptr;
        Entry *entry_ = nullptr;
    };

    RangeLock() noexcept = default;
    RangeLock(const RangeLock &) = delete;
    RangeLock &operator=(const RangeLock &) = delete;

    Task<Held> exclusive(uint64_t offset, uint64_t length) { return take(offset, length, false); }
    Task<Held> shared(uint64_t offset, uint64_t length) { return take(offset, length, true); }

    // At once, or not at all.
    Held try_exclusive(uint64_t offset, uint64_t length) { return try_take(offset, length, false); }
    Held try_shared(uint64_t offset, uint64_t length) { return try_take(offset, length, true); }

    bool empty() const noexcept { return first_ == nullptr; }

private:
    Task<Held> take(uint64_t offset, uint64_t length, bool shared);
    Held try_take(uint64_t offset, uint64_t length, bool shared);
    Held add(uint64_t offset, uint64_t length, bool shared);
    // One that came before and must go first.
    bool must_wait(const Entry &entry) const noexcept;

    Entry *first_ = nullptr; // newest first
    WaitList released_;
};

} // namespace sluice::disk
