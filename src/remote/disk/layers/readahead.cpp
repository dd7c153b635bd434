// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The layer `readahead`: where reads run on, what comes next is fetched before it is asked
// for, in pieces side by side, and kept in memory until it has been read or must make room.
// For a source that a cache is too much for; `cache` reads ahead by itself.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <vector>

#include "remote/disk/cache/policy.hpp"
#include "remote/disk/layer.hpp"
#include "remote/disk/layers/layers.hpp"
#include "util/async/task_set.hpp"
#include "util/async/waiters.hpp"

namespace sluice::disk {
namespace {

struct Config {
    uint64_t piece = 256u << 10;
    uint64_t ahead = 16u << 20;
    uint64_t memory = 64u << 20;
};

struct Piece {
    std::vector<std::byte> bytes; // as long as the disk goes on
    bool fetching = true;
    bool stale = false; // written to, or not to be had: nobody finds it any more
    WaitList fetched;
};

class ReadaheadLayer : public Layer {
public:
    ReadaheadLayer(Loop loop, Config config, std::unique_ptr<Block> below)
        : Layer(std::move(below)), loop_(std::move(loop)), config_(config), policy_({.disk_size = info_.size,
                                                                                     .block = config.piece,
                                                                                     .ahead_max = config.ahead,
                                                                                     .window = 0,
                                                                                     .head = 0,
                                                                                     .tail = 0})
    {}

    Task<Result<void>> read(Asker asker, uint64_t offset, std::span<std::byte> into) override;
    Task<Result<void>> write(Asker asker, uint64_t offset, std::span<const std::byte> from, WriteFlags flags) override
    {
        uint64_t length = from.size();
        forget(offset, length);
        Result<void> done = co_await below_->write(asker, offset, from, flags);
        forget(offset, length); // what was fetched meanwhile may be either
        co_return done;
    }
    Task<Result<void>> zero(Asker asker, uint64_t offset, uint64_t length, ZeroFlags flags) override
    {
        forget(offset, length);
        Result<void> done = co_await below_->zero(asker, offset, length, flags);
        forget(offset, length);
        co_return done;
    }
    Task<Result<void>> trim(Asker asker, uint64_t offset, uint64_t length, WriteFlags flags) override
    {
        forget(offset, length);
        Result<void> done = co_await below_->trim(asker, offset, length, flags);
        forget(offset, length);
        co_return done;
    }
    Task<Result<void>> close() override
    {
        while (!fetches_.empty()) {
            co_await fetch_ended_.wait();
            co_await loop_.sleep_for(std::chrono::seconds{0}); // it is still in the set while it says so
        }
        Result<void> done = co_await below_->close();
        co_return done;
    }

private:
    using Pieces = std::map<uint64_t, std::shared_ptr<Piece>>; // shared with its fetch and its readers

    void look_ahead(Asker asker, uint64_t offset, uint64_t length, bool missed);
    void begin(Asker asker, uint64_t index);
    Task<void> fetch(Asker asker, uint64_t index, std::shared_ptr<Piece> piece);
    bool make_room();
    void forget(uint64_t offset, uint64_t length);
    bool has_all(uint64_t offset, uint64_t length) const;

    Loop loop_;
    Config config_;
    FillPolicy policy_;
    Pieces pieces_;
    std::list<uint64_t> order_; // of pieces_, the one that was fetched longest ago first
    TaskSet fetches_;
    WaitList fetch_ended_;
};

bool ReadaheadLayer::has_all(uint64_t offset, uint64_t length) const
{
    for (uint64_t i = offset / config_.piece; i <= (offset + length - 1) / config_.piece; ++i)
        if (!pieces_.contains(i))
            return false;
    return true;
}

Task<Result<void>> ReadaheadLayer::read(Asker asker, uint64_t offset, std::span<std::byte> into)
{
    bool missed = !has_all(offset, into.size());
    look_ahead(asker, offset, into.size(), missed);
    if (missed) {
        Result<void> done = co_await below_->read(asker, offset, into);
        co_return done;
    }
    uint64_t at = offset;
    std::span<std::byte> rest = into;
    while (!rest.empty()) {
        uint64_t index = at / config_.piece, within = at % config_.piece;
        size_t part = std::min<size_t>(rest.size(), config_.piece - within);
        auto found = pieces_.find(index);
        std::shared_ptr<Piece> piece = found != pieces_.end() ? found->second : nullptr;
        while (piece && piece->fetching)
            co_await piece->fetched.wait();
        if (piece && !piece->stale) {
            std::memcpy(rest.data(), piece->bytes.data() + within, part);
        } else { // it failed, or was written to: what it holds is nobody's
            Result<void> done = co_await below_->read(asker, at, rest.first(part));
            if (!done)
                co_return done;
        }
        at += part;
        rest = rest.subspan(part);
    }
    co_return {};
}

void ReadaheadLayer::look_ahead(Asker asker, uint64_t offset, uint64_t length, bool missed)
{
    for (const Range &range : policy_.on_read(asker.client, offset, length, missed))
        for (uint64_t i = range.offset / config_.piece; i * config_.piece < range.offset + range.length; ++i) {
            bool asked_for = i * config_.piece < offset + length; // comes with the request itself
            if (!asked_for && i * config_.piece < info_.size && !pieces_.contains(i) && make_room())
                begin(asker, i);
        }
}

void ReadaheadLayer::begin(Asker asker, uint64_t index)
{
    auto piece = std::make_shared<Piece>();
    piece->bytes.resize(std::min(config_.piece, info_.size - index * config_.piece));
    pieces_.emplace(index, piece);
    order_.push_back(index);
    fetches_.spawn(fetch({asker.client, Urgency::prefetch}, index, piece));
}

Task<void> ReadaheadLayer::fetch(Asker asker, uint64_t index, std::shared_ptr<Piece> piece)
{
    Result<void> done = co_await below_->read(asker, index * config_.piece, piece->bytes);
    piece->fetching = false;
    if (!done && !piece->stale) {
        piece->stale = true;
        pieces_.erase(index);
        order_.remove(index);
    }
    piece->fetched.wake_all();
    fetch_ended_.wake_all();
}

// False where everything is still on its way.
bool ReadaheadLayer::make_room()
{
    while (pieces_.size() * config_.piece >= config_.memory) {
        auto oldest = pieces_.find(order_.front());
        if (oldest->second->fetching)
            return false;
        pieces_.erase(oldest);
        order_.pop_front();
    }
    return true;
}

void ReadaheadLayer::forget(uint64_t offset, uint64_t length)
{
    auto first = pieces_.lower_bound(offset / config_.piece);
    auto end = pieces_.upper_bound((offset + length - 1) / config_.piece);
    for (auto at = first; at != end; at = pieces_.erase(at)) {
        at->second->stale = true;
        order_.remove(at->first);
    }
}

} // namespace

Task<Result<std::unique_ptr<Block>>> open_readahead(Loop loop, Options options, std::unique_ptr<Block> below, Shared *)
{
    OptionReader reader(options, "readahead");
    Config config;
    config.piece = reader.size("piece", config.piece, 4096, request_bytes_max);
    config.ahead = reader.size("ahead", config.ahead, 0, uint64_t{1} << 30);
    config.memory = reader.size("memory", std::max(config.memory, 2 * config.ahead), config.piece);
    if ((config.piece & (config.piece - 1)) != 0)
        reader.problem("piece", "not a power of two");
    Result<void> read = reader.finish();
    if (!read)
        co_return tl::unexpected(read.error());
    std::unique_ptr<Block> layer = std::make_unique<ReadaheadLayer>(loop, config, std::move(below));
    co_return layer;
}

const std::vector<std::string> &readahead_keys()
{
    static const std::vector<std::string> keys{"piece", "ahead", "memory"};
    return keys;
}

} // namespace sluice::disk
