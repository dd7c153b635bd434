// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The layer `readonly`: nothing that comes from above changes what is below.

#include "remote/disk/layer.hpp"
#include "remote/disk/layers/layers.hpp"

namespace sluice::disk {
namespace {

class ReadonlyLayer : public Layer {
public:
    explicit ReadonlyLayer(std::unique_ptr<Block> below) : Layer(std::move(below))
    {
        info_.read_only = true;
        info_.can_trim = info_.can_zero = info_.can_fast_zero = info_.can_fua = false;
    }

    Task<Result<void>> write(Asker, uint64_t, std::span<const std::byte>, WriteFlags) override { return refused(); }
    Task<Result<void>> zero(Asker, uint64_t, uint64_t, ZeroFlags) override { return refused(); }
    Task<Result<void>> trim(Asker, uint64_t, uint64_t, WriteFlags) override { return refused(); }
    std::optional<FileRange> direct(uint64_t offset, uint64_t length) noexcept override
    {
        return below_->direct(offset, length);
    }

private:
    static Task<Result<void>> refused() { co_return fail_errno(EPERM, "readonly"); }
};

} // namespace

Task<Result<std::unique_ptr<Block>>> open_readonly(Loop, Options options, std::unique_ptr<Block> below, Shared *)
{
    OptionReader reader(options, "readonly");
    Result<void> read = reader.finish();
    if (!read)
        co_return tl::unexpected(read.error());
    std::unique_ptr<Block> layer = std::make_unique<ReadonlyLayer>(std::move(below));
    co_return layer;
}

const std::vector<std::string> &readonly_keys()
{
    static const std::vector<std::string> keys;
    return keys;
}

} // namespace sluice::disk
