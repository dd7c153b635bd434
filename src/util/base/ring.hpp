// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Byte ring of fixed capacity (a power of two) between one reader and one writer on
// one thread. Its memory is mapped once and never moved; a page costs nothing until
// bytes have been in it, and a ring that runs empty starts again at its first page,
// so that small traffic stays in few pages. Indices run freely and are masked on use.
//
//     n = readv(in, ring.space().parts);    ring.produced(n);
//     n = writev(out, ring.filled().parts); ring.consumed(n);

#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace sluice {

class Ring {
public:
    // At most two pieces, since bytes may run across the end.
    struct Pieces {
        iovec parts[2];
        int count = 0;
        size_t bytes = 0;

        // No more than the first `limit` bytes of them.
        Pieces first(size_t limit) const noexcept
        {
            Pieces result = *this;
            result.bytes = std::min(bytes, limit);
            result.parts[0].iov_len = std::min(parts[0].iov_len, limit);
            result.parts[1].iov_len = result.bytes - result.parts[0].iov_len;
            result.count = result.parts[1].iov_len > 0 ? 2 : 1;
            return result;
        }
    };

    // Throws std::bad_alloc.
    explicit Ring(size_t capacity) : capacity_(capacity)
    {
        void *memory =
            mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        memory_ = static_cast<char *>(memory);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    ~Ring() { munmap(memory_, capacity_); }

    size_t capacity() const noexcept { return capacity_; }
    size_t size() const noexcept { return written_ - read_; }
    size_t room() const noexcept { return capacity_ - size(); }
    bool empty() const noexcept { return written_ == read_; }

    // Where to put up to `limit` bytes; then say how many there were.
    Pieces space(size_t limit) const noexcept { return pieces(written_, std::min(limit, room())); }
    void produced(size_t n) noexcept { written_ += n; }

    // Where up to `limit` bytes are; then say how many were taken.
    Pieces filled(size_t limit) const noexcept { return pieces(read_, std::min(limit, size())); }
    void consumed(size_t n) noexcept
    {
        read_ += n;
        if (empty())
            read_ = written_ = 0;
    }

private:
    Pieces pieces(size_t from, size_t bytes) const noexcept
    {
        Pieces result;
        size_t at = from & (capacity_ - 1);
        size_t first = std::min(bytes, capacity_ - at);
        result.parts[0] = {memory_ + at, first};
        result.parts[1] = {memory_, bytes - first};
        result.count = bytes > first ? 2 : 1;
        result.bytes = bytes;
        return result;
    }

    char *memory_;
    size_t capacity_;
    size_t written_ = 0;
    size_t read_ = 0;
};

} // namespace sluice
