// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bytes that know their place. Each eight of them are a mix of the seed and of their
// own position in the stream, so that a checker who has only the offset sees every
// loss, duplication, exchange and damage, down to one byte.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace sluice::test {

class Pattern {
public:
    explicit Pattern(uint64_t seed = 1) : seed_(seed) {}

    // Write the bytes that belong at `offset` of the stream.
    void fill(uint64_t offset, std::span<std::byte> out) const
    {
        for (size_t done = 0; done < out.size();) {
            const auto [word, skip] = at(offset + done);
            const size_t count = std::min(sizeof(word) - skip, out.size() - done);
            std::memcpy(out.data() + done, reinterpret_cast<const std::byte *>(&word) + skip, count);
            done += count;
        }
    }

    // The index in `data` of the first byte that does not belong at its offset.
    std::optional<size_t> first_difference(uint64_t offset, std::span<const std::byte> data) const
    {
        for (size_t done = 0; done < data.size();) {
            const auto [word, skip] = at(offset + done);
            const size_t count = std::min(sizeof(word) - skip, data.size() - done);
            const auto *expected = reinterpret_cast<const std::byte *>(&word) + skip;
            if (std::memcmp(data.data() + done, expected, count) != 0) {
                while (data[done] == *expected)
                    ++done, ++expected;
                return done;
            }
            done += count;
        }
        return std::nullopt;
    }

private:
    struct Place {
        uint64_t word;
        size_t skip; // bytes of the word that lie before the offset
    };

    // The finalizer of MurmurHash3 (fmix64) over seed and position: one to one, so no
    // two positions of a stream share a word.
    Place at(uint64_t offset) const
    {
        uint64_t word = seed_ * 0x9e3779b97f4a7c15U + offset / sizeof(uint64_t) + 1;
        word = (word ^ (word >> 33)) * 0xff51afd7ed558ccdU;
        word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53U;
        return {word ^ (word >> 33), size_t(offset % sizeof(uint64_t))};
    }

    uint64_t seed_;
};

} // namespace sluice::test
