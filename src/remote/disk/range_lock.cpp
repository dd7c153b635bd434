// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/range_lock.hpp"

namespace sluice::disk {

bool RangeLock::must_wait(const Entry &entry) const noexcept
{
    for (const Entry *other = entry.next; other != nullptr; other = other->next)
        if (other->begin < entry.end && entry.begin < other->end && !(other->shared && entry.shared))
            return true;
    return false;
}

RangeLock::Held RangeLock::add(uint64_t offset, uint64_t length, bool shared)
{
    auto *entry = new Entry{offset, offset + length, shared, first_, nullptr};
    if (first_ != nullptr)
        first_->previous = entry;
    first_ = entry;
    return {this, entry};
}

void RangeLock::Held::release() noexcept
{
    if (entry_ == nullptr)
        return;
    Entry *entry = std::exchange(entry_, nullptr);
    RangeLock *lock = std::exchange(lock_, nullptr);
    if (entry->next != nullptr)
        entry->next->previous = entry->previous;
    (entry->previous != nullptr ? entry->previous->next : lock->first_) = entry->next;
    delete entry;
    lock->released_.wake_all();
}

Task<RangeLock::Held> RangeLock::take(uint64_t offset, uint64_t length, bool shared)
{
    Held held = add(offset, length, shared); // its place in the queue, from now on
    while (must_wait(*held.entry_))
        co_await released_.wait();
    co_return held;
}

RangeLock::Held RangeLock::try_take(uint64_t offset, uint64_t length, bool shared)
{
    Held held = add(offset, length, shared);
    if (must_wait(*held.entry_))
        held.release();
    return held;
}

} // namespace sluice::disk
