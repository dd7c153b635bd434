// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Priority queue of timers by deadline: an implicit heap with four children a node
// (half the depth of a binary one, and the children share a cache line), keys kept
// in the heap so that comparing does not touch the timers. A timer knows its place,
// so that moving or removing it is O(log n). Not thread-safe; owns nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::event {

inline constexpr uint32_t not_in_heap = UINT32_MAX;

// T has `int64_t deadline` and `uint32_t heap_index`, which is not_in_heap while outside.
template <class T>
class TimerHeap {
public:
    bool empty() const noexcept { return nodes_.empty(); }
    T *top() const noexcept { return nodes_.front().timer; }
    int64_t top_deadline() const noexcept { return nodes_.front().deadline; }

    // Put in, or move to where its deadline now belongs. May throw std::bad_alloc
    // only when `timer` is not in the heap; the heap is then unchanged.
    void put(T *timer)
    {
        if (timer->heap_index == not_in_heap) {
            nodes_.push_back({timer->deadline, timer});
            sift_up(static_cast<uint32_t>(nodes_.size() - 1));
            return;
        }
        uint32_t at = timer->heap_index;
        nodes_[at].deadline = timer->deadline;
        if (!sift_up(at))
            sift_down(at);
    }

    void remove(T *timer) noexcept
    {
        uint32_t at = timer->heap_index;
        if (at == not_in_heap)
            return;
        timer->heap_index = not_in_heap;
        Node last = nodes_.back();
        nodes_.pop_back();
        if (last.timer == timer)
            return;
        set(at, last);
        if (!sift_up(at))
            sift_down(at);
    }

private:
    struct Node {
        int64_t deadline;
        T *timer;
    };

    static constexpr uint32_t arity = 4;

    void set(uint32_t at, Node node) noexcept
    {
        nodes_[at] = node;
        node.timer->heap_index = at;
    }

    bool sift_up(uint32_t at) noexcept
    {
        Node node = nodes_[at];
        uint32_t start = at;
        while (at > 0) {
            uint32_t parent = (at - 1) / arity;
            if (nodes_[parent].deadline <= node.deadline)
                break;
            set(at, nodes_[parent]);
            at = parent;
        }
        set(at, node);
        return at != start;
    }

    void sift_down(uint32_t at) noexcept
    {
        Node node = nodes_[at];
        auto size = static_cast<uint32_t>(nodes_.size());
        for (;;) {
            uint32_t first = at * arity + 1;
            if (first >= size)
                break;
            uint32_t end = first + arity < size ? first + arity : size;
            uint32_t least = first;
            for (uint32_t child = first + 1; child < end; ++child) {
                if (nodes_[child].deadline < nodes_[least].deadline)
                    least = child;
            }
            if (nodes_[least].deadline >= node.deadline)
                break;
            set(at, nodes_[least]);
            at = least;
        }
        set(at, node);
    }

    std::vector<Node> nodes_;
};

} // namespace sluice::event
