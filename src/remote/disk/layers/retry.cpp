// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The layer `retry`: a request that failed below is tried again, with pauses that grow.
// Every request of a block device may be: the same bytes at the same place. What another
// try cannot change is not tried (EPERM, EINVAL, ENOTSUP, ENOSPC).

#include <algorithm>
#include <chrono>

#include "remote/disk/layer.hpp"
#include "remote/disk/layers/layers.hpp"

namespace sluice::disk {
namespace {

using std::chrono::microseconds;

struct Patience {
    uint64_t tries = 5; // after the first
    microseconds pause{std::chrono::milliseconds{100}};
    microseconds pause_max{std::chrono::seconds{10}};
};

bool may_help(int error)
{
    return error != EPERM && error != EINVAL && error != ENOTSUP && error != ENOSPC;
}

class RetryLayer : public Layer {
public:
    RetryLayer(Loop loop, Patience patience, std::unique_ptr<Block> below)
        : Layer(std::move(below)), loop_(std::move(loop)), patience_(patience)
    {}

    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override
    {
        return retried<Result<void>>([this, asker, offset, into] { return below_->read(asker, offset, into); });
    }
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags flags) override
    {
        return retried<Result<void>>(
            [this, asker, offset, from, flags] { return below_->write(asker, offset, from, flags); });
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) override
    {
        return retried<Result<void>>(
            [this, asker, offset, length, flags] { return below_->zero(asker, offset, length, flags); });
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) override
    {
        return retried<Result<void>>(
            [this, asker, offset, length, flags] { return below_->trim(asker, offset, length, flags); });
    }
    Task<Result<void>> flush(Asker asker) override
    {
        return retried<Result<void>>([this, asker] { return below_->flush(asker); });
    }
    Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) override
    {
        return retried<Result<std::vector<Extent>>>(
            [this, asker, offset, length] { return below_->extents(asker, offset, length); });
    }
    std::optional<FileRange> direct(uint64_t offset, uint64_t length) noexcept override
    {
        return below_->direct(offset, length);
    }

private:
    // `request` makes the task of one try; it lives in the frame, as a parameter.
    template <class Answer, class Request>
    Task<Answer> retried(Request request)
    {
        microseconds pause = patience_.pause;
        for (uint64_t left = patience_.tries;; --left) {
            Answer answer = co_await request();
            if (answer || left == 0 || !may_help(answer.error().code))
                co_return answer;
            co_await loop_.sleep_for(pause);
            pause = std::min(pause * 2, patience_.pause_max);
        }
    }

    Loop loop_;
    Patience patience_;
};

} // namespace

Task<Result<std::unique_ptr<Block>>> open_retry(Loop loop, Options options, std::unique_ptr<Block> below, Shared *)
{
    OptionReader reader(options, "retry");
    Patience patience;
    patience.tries = reader.number("tries", patience.tries, 0, 1000);
    patience.pause = reader.duration("pause", patience.pause);
    patience.pause_max = reader.duration("pause-max", std::max(patience.pause, patience.pause_max));
    Result<void> read = reader.finish();
    if (!read)
        co_return tl::unexpected(read.error());
    std::unique_ptr<Block> layer = std::make_unique<RetryLayer>(loop, patience, std::move(below));
    co_return layer;
}

const std::vector<std::string> &retry_keys()
{
    static const std::vector<std::string> keys{"tries", "pause", "pause-max"};
    return keys;
}

} // namespace sluice::disk
