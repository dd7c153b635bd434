// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/service.hpp"

#include <algorithm>

namespace sluice::proxyd {
namespace {

std::shared_ptr<TokenBucket> bucket(uint64_t rate, uint64_t rate_before, const std::shared_ptr<TokenBucket> &before)
{
    if (rate == 0)
        return nullptr;
    return before && rate == rate_before ? before : std::make_shared<TokenBucket>(rate);
}

} // namespace

Service::Service(ServiceConfig config) : name_(config.name), settings_(make_settings(std::move(config), nullptr)) {}

std::shared_ptr<const Settings> Service::make_settings(ServiceConfig config, const Settings *before) const
{
    auto settings = std::make_shared<Settings>();
    const ServiceConfig *old = before ? &before->config : nullptr;
    bool same_upstreams =
        old && old->connect == config.connect && old->balance == config.balance && old->health == config.health;
    settings->upstreams =
        same_upstreams ? before->upstreams : std::make_shared<Upstreams>(config.connect, config.balance, config.health);
    settings->rate_up =
        bucket(config.limits.rate_up, old ? old->limits.rate_up : 0, before ? before->rate_up : nullptr);
    settings->rate_down =
        bucket(config.limits.rate_down, old ? old->limits.rate_down : 0, before ? before->rate_down : nullptr);
    settings->config = std::move(config);
    return settings;
}

std::shared_ptr<const Settings> Service::settings() const
{
    std::lock_guard lock(mutex_);
    return settings_;
}

void Service::reconfigure(ServiceConfig config)
{
    std::unique_lock lock(mutex_);
    settings_ = make_settings(std::move(config), settings_.get());
    wake_waiting(lock);
}

bool Service::reserve()
{
    std::lock_guard lock(mutex_);
    const Limits &limits = settings_->config.limits;
    bool full = active_ >= limits.connections && limits.when_full == WhenFull::wait;
    if (draining_ || full) {
        waiting_ = true;
        return false;
    }
    ++active_;
    return true;
}

void Service::unreserve()
{
    std::unique_lock lock(mutex_);
    --active_;
    wake_waiting(lock);
}

void Service::set_on_room(std::function<void()> on_room)
{
    std::lock_guard lock(mutex_);
    on_room_ = std::move(on_room);
}

void Service::wake_waiting(std::unique_lock<std::mutex> &lock)
{
    if (!waiting_ || draining_ || active_ >= settings_->config.limits.connections)
        return;
    waiting_ = false;
    auto on_room = on_room_;
    lock.unlock(); // it takes locks of its own
    if (on_room)
        on_room();
}

std::optional<Rejection> Service::enter(const Peer &peer, const Settings &settings)
{
    const Limits &limits = settings.config.limits;
    if (!settings.config.access.empty() && !settings.config.access.permits(peer))
        return Rejection::access;
    std::lock_guard lock(mutex_);
    // the place of the one that asks is counted already
    if (active_ > limits.connections)
        return Rejection::limit;
    if (limits.per_peer == 0)
        return std::nullopt;
    unsigned &count = per_peer_[peer_key(peer)];
    if (count >= limits.per_peer)
        return Rejection::per_peer;
    ++count;
    return std::nullopt;
}

void Service::leave(const Peer &peer, const Settings &settings)
{
    if (settings.config.limits.per_peer == 0)
        return;
    std::lock_guard lock(mutex_);
    auto at = per_peer_.find(peer_key(peer));
    if (at != per_peer_.end() && --at->second == 0)
        per_peer_.erase(at);
}

void Service::drain()
{
    std::lock_guard lock(mutex_);
    draining_ = true;
}

void Service::resume()
{
    std::unique_lock lock(mutex_);
    draining_ = false;
    waiting_ = true; // whoever held because of the draining is to look again
    wake_waiting(lock);
}

bool Service::draining() const
{
    std::lock_guard lock(mutex_);
    return draining_;
}

unsigned Service::active() const
{
    std::lock_guard lock(mutex_);
    return active_;
}

void Service::count_connect(double seconds)
{
    auto at = std::lower_bound(Histogram::bounds.begin(), Histogram::bounds.end(), seconds);
    ++connects_[static_cast<size_t>(at - Histogram::bounds.begin())];
    connect_usec_ += static_cast<uint64_t>(seconds * 1e6);
}

void Service::count_closed(Closing reason, const Moved &moved)
{
    ++closed_[static_cast<size_t>(reason)];
    bytes_up_ += moved.up;
    bytes_down_ += moved.down;
    bytes_copying_ += moved.copying;
    bytes_spliced_ += moved.spliced;
}

ServiceStatus Service::status() const
{
    ServiceStatus status;
    status.name = name_;
    std::shared_ptr<const Settings> settings;
    {
        std::lock_guard lock(mutex_);
        settings = settings_;
        status.active = active_;
        status.state = draining_ ? "draining" : active_ >= settings->config.limits.connections ? "full" : "open";
    }
    status.limit = settings->config.limits.connections;
    status.upstreams = settings->upstreams->status();
    status.accepted = accepted_;
    for (size_t i = 0; i < rejected_.size(); ++i)
        status.rejected.push_back({rejection_words[i], rejected_[i]});
    for (size_t i = 0; i < closed_.size(); ++i)
        status.closed.push_back({closing_words[i], closed_[i]});
    status.bytes_up = bytes_up_;
    status.bytes_down = bytes_down_;
    status.relayed_copying = bytes_copying_;
    status.relayed_spliced = bytes_spliced_;
    for (size_t i = 0; i < connects_.size(); ++i)
        status.connect_seconds.counts[i] = connects_[i];
    status.connect_seconds.sum_seconds = static_cast<double>(connect_usec_) / 1e6;
    return status;
}

} // namespace sluice::proxyd
