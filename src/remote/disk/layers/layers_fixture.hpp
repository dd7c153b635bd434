// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A layer over a disk in memory, for tests.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "remote/disk/layers/layers.hpp"
#include "remote/disk/memory_block.hpp"
#include "remote/disk/shared.hpp"
#include "util/async/task_set.hpp"

namespace sluice::disk {

class LayerTest : public testing::Test {
protected:
    using Kind = MemoryBlock::Seen::Kind;

    // The disk below is `memory` from then on.
    void open(OpenLayer &open_layer, Options options, uint64_t size = 8u << 20)
    {
        auto source = std::make_unique<MemoryBlock>(loop, size);
        source->fill_with_pattern();
        memory = source.get();
        auto opened = run(loop, open_layer(loop, std::move(options), std::move(source), &shared));
        ASSERT_TRUE(opened) << opened.error().message;
        block = std::move(*opened);
    }
    void TearDown() override
    {
        if (block) {
            EXPECT_TRUE(run(loop, block->close()));
        }
    }

    // An errno, or 0 if the bytes are those of the pattern.
    int read(uint64_t offset, size_t length, uint64_t client = 1)
    {
        std::vector<std::byte> bytes(length);
        auto done = run(loop, block->read({client, Urgency::demand}, offset, bytes));
        if (!done)
            return done.error().code;
        for (size_t i = 0; i < length; ++i)
            if (bytes[i] != MemoryBlock::pattern(offset + i))
                return EBADMSG;
        return 0;
    }
    int write(uint64_t offset, size_t length, std::byte value)
    {
        std::vector<std::byte> bytes(length, value);
        auto done = run(loop, block->write({1, Urgency::demand}, offset, bytes, {}));
        return done ? 0 : done.error().code;
    }

    Loop loop;
    Shared shared{loop, 4};
    std::unique_ptr<Block> block;
    MemoryBlock *memory = nullptr;
};

} // namespace sluice::disk
