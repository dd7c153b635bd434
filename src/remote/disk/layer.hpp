// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A layer that hands everything on: the base of those that change a part of it.

#include <utility>

#include "remote/disk/block.hpp"

namespace sluice::disk {

class Layer : public Block {
public:
    explicit Layer(std::unique_ptr<Block> below) : below_(std::move(below)), info_(below_->info()) {}

    const BlockInfo &info() const noexcept override { return info_; }
    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override
    {
        return below_->read(asker, offset, into);
    }
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags flags) override
    {
        return below_->write(asker, offset, from, flags);
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) override
    {
        return below_->zero(asker, offset, length, flags);
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) override
    {
        return below_->trim(asker, offset, length, flags);
    }
    Task<Result<void>> flush(Asker asker) override { return below_->flush(asker); }
    Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) override
    {
        return below_->extents(asker, offset, length);
    }
    Task<Result<void>> cache(Asker asker, uint64_t offset, uint64_t length) override
    {
        return below_->cache(asker, offset, length);
    }
    Task<Result<void>> close() override { return below_->close(); }

protected:
    std::unique_ptr<Block> below_;
    BlockInfo info_; // what this layer says of itself; at first what the one below says
};

} // namespace sluice::disk
