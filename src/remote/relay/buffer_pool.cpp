// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/buffer_pool.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::relay {

BufferPool::BufferPool(Loop loop, size_t buffer_bytes, size_t keep, uint64_t limit_bytes)
    : loop_(std::move(loop)), buffer_bytes_(buffer_bytes),
      buffers_max_(limit_bytes == 0 ? UINT64_MAX : std::max<uint64_t>(limit_bytes / buffer_bytes, 1)), keep_(keep)
{
    kept_.reserve(keep);
}

BufferPool::~BufferPool() = default;

std::unique_ptr<Ring> BufferPool::take()
{
    if (!has_room() || (first_ && !std::exchange(granted_, false)))
        return nullptr;
    std::unique_ptr<Ring> ring;
    if (kept_.empty()) {
        ring = std::make_unique<Ring>(buffer_bytes_);
    } else {
        ring = std::move(kept_.back());
        kept_.pop_back();
    }
    in_use_.store(in_use_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return ring;
}

void BufferPool::give_back(std::unique_ptr<Ring> ring) noexcept
{
    ring->consumed(ring->size());
    in_use_.store(in_use_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    if (kept_.size() < keep_)
        kept_.push_back(std::move(ring));
    serve_soon();
}

void BufferPool::queue(Waiter &waiter)
{
    if (!soon_)
        soon_ = loop_.every(std::chrono::microseconds{-1}, [this] { serve(); });
    waiter.pool_ = this;
    waiter.before_ = last_;
    waiter.after_ = nullptr;
    (last_ ? last_->after_ : first_) = &waiter;
    last_ = &waiter;
    ++waiting_;
    serve_soon();
}

void BufferPool::unqueue(Waiter &waiter) noexcept
{
    (waiter.before_ ? waiter.before_->after_ : first_) = waiter.after_;
    (waiter.after_ ? waiter.after_->before_ : last_) = waiter.before_;
    waiter.pool_ = nullptr;
    --waiting_;
}

// Not from here: whoever gives a buffer back is in the middle of something.
void BufferPool::serve_soon() noexcept
{
    if (first_ && has_room() && !std::exchange(due_, true))
        soon_.update(std::chrono::microseconds{0});
}

void BufferPool::serve()
{
    soon_.park();
    due_ = false;
    // who queues up again meanwhile comes after those who are there already
    for (size_t count = waiting_; count > 0 && first_ && has_room(); --count) {
        Waiter &next = *first_;
        unqueue(next);
        granted_ = true;
        next.buffer_free();
        granted_ = false;
    }
    serve_soon();
}

} // namespace sluice::relay
