// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The layer `fault`, for tests: a share of the requests of each kind fails, the same ones
// for the same seed and the same order of requests.

#include <unistd.h>

#include <random>

#include "remote/disk/layer.hpp"
#include "remote/disk/layers/layers.hpp"

namespace sluice::disk {
namespace {

struct Faults {
    double read = 0, write = 0, zero = 0, trim = 0, flush = 0, extents = 0, cache = 0;
    int error = EIO;
    uint64_t seed = 0;
    uint64_t after = 0;    // so many requests are let through first
    std::string only_with; // faults only while this file exists; empty: always
};

class FaultLayer : public Layer {
public:
    FaultLayer(Faults faults, std::unique_ptr<Block> below)
        : Layer(std::move(below)), faults_(std::move(faults)), random_(faults_.seed)
    {}

    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override
    {
        return hit(faults_.read) ? failed() : below_->read(asker, offset, into);
    }
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags flags) override
    {
        return hit(faults_.write) ? failed() : below_->write(asker, offset, from, flags);
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) override
    {
        return hit(faults_.zero) ? failed() : below_->zero(asker, offset, length, flags);
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) override
    {
        return hit(faults_.trim) ? failed() : below_->trim(asker, offset, length, flags);
    }
    Task<Result<void>> flush(Asker asker) override { return hit(faults_.flush) ? failed() : below_->flush(asker); }
    Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) override
    {
        return hit(faults_.extents) ? failed_extents() : below_->extents(asker, offset, length);
    }
    Task<Result<void>> cache(Asker asker, uint64_t offset, uint64_t length) override
    {
        return hit(faults_.cache) ? failed() : below_->cache(asker, offset, length);
    }

private:
    bool hit(double share)
    {
        bool chosen = std::uniform_real_distribution<>(0, 1)(random_) < share;
        if (requests_++ < faults_.after || !chosen)
            return false;
        return faults_.only_with.empty() || access(faults_.only_with.c_str(), F_OK) == 0;
    }
    Task<Result<void>> failed() { co_return fail_errno(faults_.error, "fault"); }
    Task<Result<std::vector<Extent>>> failed_extents() { co_return fail_errno(faults_.error, "fault"); }

    Faults faults_;
    std::mt19937_64 random_;
    uint64_t requests_ = 0;
};

} // namespace

Task<Result<std::unique_ptr<Block>>> open_fault(Loop, Options options, std::unique_ptr<Block> below, Shared *)
{
    static const std::vector<std::string> names{"EIO", "ENOSPC", "EPERM", "ENOMEM", "ETIMEDOUT", "ESHUTDOWN"};
    static const int values[] = {EIO, ENOSPC, EPERM, ENOMEM, ETIMEDOUT, ESHUTDOWN};
    OptionReader reader(options, "fault");
    Faults faults;
    double all = reader.fraction("all", 0);
    faults.read = reader.fraction("read", all);
    faults.write = reader.fraction("write", all);
    faults.zero = reader.fraction("zero", all);
    faults.trim = reader.fraction("trim", all);
    faults.flush = reader.fraction("flush", all);
    faults.extents = reader.fraction("extents", all);
    faults.cache = reader.fraction("cache", all);
    faults.error = values[reader.choice("error", 0, names)];
    faults.seed = reader.number("seed", 0, 0, UINT64_MAX);
    faults.after = reader.number("after", 0, 0, UINT64_MAX);
    faults.only_with = reader.text("file", "");
    Result<void> read = reader.finish();
    if (!read)
        co_return tl::unexpected(read.error());
    std::unique_ptr<Block> layer = std::make_unique<FaultLayer>(std::move(faults), std::move(below));
    co_return layer;
}

const std::vector<std::string> &fault_keys()
{
    static const std::vector<std::string> keys{"all",     "read",  "write", "zero", "trim",  "flush",
                                               "extents", "cache", "error", "seed", "after", "file"};
    return keys;
}

} // namespace sluice::disk
