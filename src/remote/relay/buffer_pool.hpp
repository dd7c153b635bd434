// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The buffers of many lanes on one loop, of which each has one only while bytes wait in
// it. Those given back are kept, last in first out, so that the next user finds warm
// memory. With a limit, who cannot have one waits in a queue and is called from the loop,
// in the order of coming, when one is free. The loop's thread only, but for
// in_use_bytes(). The pool outlives its users.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sluice/event.hpp>

#include "util/base/ring.hpp"

namespace sluice::relay {

class BufferPool {
public:
    // Somebody in the queue. Leaves it when destroyed.
    class Waiter {
    public:
        Waiter() = default;
        Waiter(const Waiter &) = delete;
        Waiter &operator=(const Waiter &) = delete;
        virtual ~Waiter() { leave(); }
        bool waiting() const noexcept { return pool_ != nullptr; }

    protected:
        void leave() noexcept
        {
            if (pool_)
                pool_->unqueue(*this);
        }

    private:
        friend BufferPool;
        // It is out of the queue, and take() gives it a buffer now. From the loop, under
        // nobody else's call; may destroy itself and others.
        virtual void buffer_free() = 0;

        BufferPool *pool_ = nullptr; // whose queue it is in
        Waiter *before_ = nullptr, *after_ = nullptr;
    };

    // Each buffer has `buffer_bytes` (a power of two, at least 4096); `keep` stay mapped
    // while nobody uses them. At most `limit_bytes` are in use together, but always room
    // for one (0: no limit).
    BufferPool(Loop loop, size_t buffer_bytes, size_t keep, uint64_t limit_bytes = 0);
    BufferPool(const BufferPool &) = delete;
    BufferPool &operator=(const BufferPool &) = delete;
    ~BufferPool();

    // An empty buffer, or nullptr: the limit is reached, or others were there first.
    // Throws std::bad_alloc where the system has no memory.
    std::unique_ptr<Ring> take();
    // Whatever is still in it is lost.
    void give_back(std::unique_ptr<Ring> ring) noexcept;
    // To be called after take() has said no.
    void queue(Waiter &waiter);

    size_t buffer_bytes() const noexcept { return buffer_bytes_; }
    // From any thread.
    uint64_t in_use_bytes() const noexcept { return in_use_.load(std::memory_order_relaxed) * buffer_bytes_; }

private:
    bool has_room() const noexcept { return in_use_.load(std::memory_order_relaxed) < buffers_max_; }
    void unqueue(Waiter &waiter) noexcept;
    void serve_soon() noexcept;
    void serve();

    Loop loop_;
    const size_t buffer_bytes_;
    const uint64_t buffers_max_;
    const size_t keep_;
    std::atomic<uint64_t> in_use_{0}; // written by the loop's thread alone
    std::vector<std::unique_ptr<Ring>> kept_;
    Waiter *first_ = nullptr, *last_ = nullptr;
    size_t waiting_ = 0;
    bool due_ = false;     // serve() has been asked for
    bool granted_ = false; // the next take() is for one that has left the queue for it
    Timeout soon_;         // none until somebody has had to wait
};

} // namespace sluice::relay
