// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Map from positive ids to pointers, for ids that are handed out in rising order:
// open addressing where an id is its own hash, so that neighbours lie side by side
// and a look-up is one probe. Not thread-safe; owns nothing.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::event {

template <class T>
class IdTable {
public:
    T *find(int id) const noexcept
    {
        if (slots_.empty() || id <= 0)
            return nullptr;
        for (size_t at = home(id); slots_[at].id != 0; at = next(at)) {
            if (slots_[at].id == id)
                return slots_[at].value;
        }
        return nullptr;
    }

    // `id` must not be in the table. May throw std::bad_alloc, the table unchanged.
    void insert(int id, T *value)
    {
        if (2 * (size_ + 1) > slots_.size())
            grow();
        place(id, value);
        ++size_;
    }

    // The value that was there, or nullptr.
    T *erase(int id) noexcept
    {
        if (slots_.empty() || id <= 0)
            return nullptr;
        size_t at = home(id);
        while (slots_[at].id != id) {
            if (slots_[at].id == 0)
                return nullptr;
            at = next(at);
        }
        T *value = slots_[at].value;
        close_gap(at);
        --size_;
        return value;
    }

    size_t size() const noexcept { return size_; }

    template <class F>
    void for_each(F &&f) const
    {
        for (const Slot &slot : slots_) {
            if (slot.id != 0)
                f(*slot.value);
        }
    }

private:
    struct Slot {
        int id = 0;
        T *value = nullptr;
    };

    size_t home(int id) const noexcept { return static_cast<size_t>(id) & (slots_.size() - 1); }
    size_t next(size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }

    // How far a slot's id sits from where it would like to be.
    size_t displaced(size_t at) const noexcept { return (at - home(slots_[at].id)) & (slots_.size() - 1); }

    void place(int id, T *value) noexcept
    {
        Slot incoming{id, value};
        size_t at = home(id);
        for (size_t away = 0; slots_[at].id != 0; at = next(at), ++away) {
            if (displaced(at) < away) {
                std::swap(incoming, slots_[at]);
                away = (at - home(incoming.id)) & (slots_.size() - 1);
            }
        }
        slots_[at] = incoming;
    }

    void grow()
    {
        std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
        old.swap(slots_);
        for (const Slot &slot : old) {
            if (slot.id != 0)
                place(slot.id, slot.value);
        }
    }

    // Moves later members of the probe sequence up, so that no tombstone is needed.
    void close_gap(size_t gap) noexcept
    {
        for (size_t at = next(gap); slots_[at].id != 0 && displaced(at) > 0; at = next(at)) {
            slots_[gap] = slots_[at];
            gap = at;
        }
        slots_[gap] = {};
    }

    std::vector<Slot> slots_;
    size_t size_ = 0;
};

} // namespace sluice::event
