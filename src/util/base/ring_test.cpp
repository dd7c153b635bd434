// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/base/ring.hpp"

#include <cstring>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Ring, KeepsOrderAcrossTheSeam)
{
    std::mt19937 random(20201123);
    Ring ring(4096);
    std::deque<char> model;
    char next = 0;
    for (int step = 0; step < 100'000; ++step) {
        size_t limit = random() % 5000;
        if (random() % 2) {
            Ring::Pieces space = ring.space(limit);
            EXPECT_EQ(space.bytes, std::min(limit, ring.room()));
            for (int i = 0; i < space.count; ++i) {
                for (size_t at = 0; at < space.parts[i].iov_len; ++at) {
                    static_cast<char *>(space.parts[i].iov_base)[at] = next;
                    model.push_back(next++);
                }
            }
            ring.produced(space.bytes);
        } else {
            Ring::Pieces filled = ring.filled(limit);
            EXPECT_EQ(filled.bytes, std::min(limit, ring.size()));
            for (int i = 0; i < filled.count; ++i) {
                for (size_t at = 0; at < filled.parts[i].iov_len; ++at) {
                    ASSERT_EQ(static_cast<char *>(filled.parts[i].iov_base)[at], model.front());
                    model.pop_front();
                }
            }
            ring.consumed(filled.bytes);
        }
        ASSERT_EQ(ring.size(), model.size());
    }
}

TEST(Ring, StartsAtItsFirstPageWhenEmpty)
{
    Ring ring(8192);
    void *first = ring.space(1).parts[0].iov_base;
    ring.produced(5000);
    ring.consumed(4999);
    EXPECT_NE(ring.space(1).parts[0].iov_base, first);
    ring.consumed(1);
    EXPECT_EQ(ring.space(1).parts[0].iov_base, first);
}

} // namespace
} // namespace sluice
