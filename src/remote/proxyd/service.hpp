// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One service as all workers share it: its configuration of the moment, who may come
// in, and the counters. A connection keeps the Settings that it began with, whatever
// is reloaded meanwhile. Everything is safe from any thread.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "remote/proxyd/admin/status.hpp"
#include "remote/proxyd/config/config.hpp"
#include "remote/proxyd/reasons.hpp"
#include "remote/proxyd/upstreams.hpp"
#include "util/base/token_bucket.hpp"
#include "util/net/access.hpp"

namespace sluice::proxyd {

struct Settings {
    ServiceConfig config;
    std::shared_ptr<Upstreams> upstreams; // outlives a reload that does not change them
    // shared by all connections; null where there is no limit
    std::shared_ptr<TokenBucket> rate_up, rate_down;
};

class Service {
public:
    explicit Service(ServiceConfig config);

    const std::string &name() const noexcept { return name_; }
    std::shared_ptr<const Settings> settings() const;
    // For connections from here on. The name stays.
    void reconfigure(ServiceConfig config);

    // A place for one connection: to be had before it is accepted, or not, and to be given
    // back. Where it is refused because of the limit, `on_room` is called when there is
    // room again, by whichever thread makes it.
    bool reserve();
    void unreserve();
    void set_on_room(std::function<void()> on_room);

    // May one that was accepted stay? Counts it by peer if so; leave() is due then.
    std::optional<Rejection> enter(const Peer &peer, const Settings &settings);
    void leave(const Peer &peer, const Settings &settings);

    void drain();
    void resume();
    bool draining() const;

    unsigned active() const;

    // --- counters ---
    void count_rejected(Rejection reason) { ++rejected_[static_cast<size_t>(reason)]; }
    void count_accepted() { ++accepted_; }
    void count_connect(double seconds);
    struct Moved {
        uint64_t up = 0, down = 0, copying = 0, spliced = 0;
    };
    void count_closed(Closing reason, const Moved &moved);

    // All but what connections that are open now have moved.
    ServiceStatus status() const;

private:
    std::shared_ptr<const Settings> make_settings(ServiceConfig config, const Settings *before) const;
    void wake_waiting(std::unique_lock<std::mutex> &lock);

    const std::string name_;
    mutable std::mutex mutex_; // over what follows, down to the counters
    std::shared_ptr<const Settings> settings_;
    std::unordered_map<std::string, unsigned> per_peer_;
    std::function<void()> on_room_;
    unsigned active_ = 0;
    bool waiting_ = false; // somebody was refused a place and wants to hear of one
    bool draining_ = false;

    std::atomic<uint64_t> accepted_{0};
    std::array<std::atomic<uint64_t>, rejection_words.size()> rejected_{};
    std::array<std::atomic<uint64_t>, closing_words.size()> closed_{};
    std::array<std::atomic<uint64_t>, Histogram::bounds.size() + 1> connects_{};
    std::atomic<uint64_t> connect_usec_{0};
    std::atomic<uint64_t> bytes_up_{0}, bytes_down_{0}, bytes_copying_{0}, bytes_spliced_{0};
};

} // namespace sluice::proxyd
