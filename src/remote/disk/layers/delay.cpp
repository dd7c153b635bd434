// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The layer `delay`: what is below seems further away. Each kind of request waits its time,
// any number of them at once, as on a line with that latency; `bandwidth` is what goes over
// the line in a second, one byte after the other.

#include <algorithm>
#include <chrono>

#include "remote/disk/layer.hpp"
#include "remote/disk/layers/layers.hpp"
#include "util/base/clock.hpp"

namespace sluice::disk {
namespace {

using std::chrono::microseconds;

struct Delays {
    microseconds read{0}, write{0}, zero{0}, trim{0}, flush{0}, extents{0}, cache{0}, open{0};
    uint64_t bandwidth = 0; // bytes a second; 0: unlimited
};

class DelayLayer : public Layer {
public:
    DelayLayer(Loop loop, Delays delays, std::unique_ptr<Block> below)
        : Layer(std::move(below)), loop_(std::move(loop)), delays_(delays)
    {}

    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override
    {
        co_await wait(delays_.read, into.size());
        Result<void> done = co_await below_->read(asker, offset, into);
        co_return done;
    }
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags flags) override
    {
        co_await wait(delays_.write, from.size());
        Result<void> done = co_await below_->write(asker, offset, from, flags);
        co_return done;
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) override
    {
        co_await wait(delays_.zero, 0);
        Result<void> done = co_await below_->zero(asker, offset, length, flags);
        co_return done;
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) override
    {
        co_await wait(delays_.trim, 0);
        Result<void> done = co_await below_->trim(asker, offset, length, flags);
        co_return done;
    }
    Task<Result<void>> flush(Asker asker) override
    {
        co_await wait(delays_.flush, 0);
        Result<void> done = co_await below_->flush(asker);
        co_return done;
    }
    Task<Result<std::vector<Extent>>> extents(Asker asker, uint64_t offset, uint64_t length) override
    {
        co_await wait(delays_.extents, 0);
        Result<std::vector<Extent>> list = co_await below_->extents(asker, offset, length);
        co_return list;
    }
    Task<Result<void>> cache(Asker asker, uint64_t offset, uint64_t length) override
    {
        co_await wait(delays_.cache, 0);
        Result<void> done = co_await below_->cache(asker, offset, length);
        co_return done;
    }

private:
    Task<void> wait(microseconds latency, size_t bytes)
    {
        int64_t now = monotonic_usec(), until = now + latency.count();
        if (delays_.bandwidth > 0 && bytes > 0) {
            double usec = static_cast<double>(bytes) * 1e6 / static_cast<double>(delays_.bandwidth);
            line_free_ = std::max(line_free_, now) + static_cast<int64_t>(usec);
            until = std::max(until, line_free_ + latency.count());
        }
        if (until > now)
            co_await loop_.sleep_for(microseconds{until - now});
    }

    Loop loop_;
    Delays delays_;
    int64_t line_free_ = 0; // when the last byte of those before has gone
};

} // namespace

Task<Result<std::unique_ptr<Block>>> open_delay(Loop loop, Options options, std::unique_ptr<Block> below, Shared *)
{
    OptionReader reader(options, "delay");
    Delays delays;
    microseconds all = reader.duration("all", microseconds{0});
    delays.read = reader.duration("read", all);
    delays.write = reader.duration("write", all);
    delays.zero = reader.duration("zero", all);
    delays.trim = reader.duration("trim", all);
    delays.flush = reader.duration("flush", all);
    delays.extents = reader.duration("extents", all);
    delays.cache = reader.duration("cache", all);
    delays.open = reader.duration("open", microseconds{0});
    delays.bandwidth = reader.size("bandwidth", 0);
    Result<void> read = reader.finish();
    if (!read)
        co_return tl::unexpected(read.error());
    if (delays.open.count() > 0)
        co_await loop.sleep_for(delays.open);
    std::unique_ptr<Block> layer = std::make_unique<DelayLayer>(loop, delays, std::move(below));
    co_return layer;
}

const std::vector<std::string> &delay_keys()
{
    static const std::vector<std::string> keys{"all",   "read",    "write", "zero", "trim",
                                               "flush", "extents", "cache", "open", "bandwidth"};
    return keys;
}

} // namespace sluice::disk
