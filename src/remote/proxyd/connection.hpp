// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One client and its upstream, from accept to close: a PROXY header if one is expected,
// an upstream that answers, then a Pump. Belongs to a Worker and is on its thread. What
// the client sends before there is an upstream stays in its socket.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <sluice/event.hpp>

#include "remote/proxyd/admin/status.hpp"
#include "remote/proxyd/reasons.hpp"
#include "remote/proxyd/service.hpp"
#include "remote/relay/pump.hpp"
#include "util/async/task.hpp"
#include "util/base/unique_fd.hpp"
#include "util/net/access.hpp"

namespace sluice::proxyd {

class Worker;

class Connection final : private relay::PumpOwner {
public:
    // `service` has reserved a place for it.
    Connection(Worker &worker, std::shared_ptr<Service> service, std::shared_ptr<const Settings> settings,
               UniqueFd client, const SocketAddress &address);
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;
    ~Connection();

    void start();
    // Let go of everything and be buried. Once is enough.
    void end(Closing reason, const std::string &why = {});

    uint64_t id() const noexcept { return id_; }
    const Service &service() const noexcept { return *service_; }
    Service::Moved moved() const noexcept;
    ConnectionStatus status(int64_t now_usec) const;

    // What only those need that stay for longer than a moment; done once.
    bool settled() const noexcept { return settled_; }
    void settle();

    Connection *before = nullptr, *after = nullptr; // the worker's list

private:
    enum class State : uint8_t { header, connecting, waiting, relaying, ended };

    bool expects_header() const;
    void admit_and_connect();
    void refuse(Rejection reason, const std::string &why = {});
    bool try_at_once();
    Task<void> begin_with_header();
    Task<Result<void>> read_header();
    Task<void> find_upstream();
    Task<Result<UniqueFd>> connect_to_upstream(size_t index, UniqueFd begun);
    void watch_client();
    void upstream_failed(size_t index, const std::string &why);
    void relay(UniqueFd upstream, size_t index);
    std::string preface() const;

    void pump_ended(const relay::Outcome &outcome) override;
    void record_end(Closing reason, const std::string &why) const;

    const Upstreams &upstreams() const noexcept { return *settings_->upstreams; }
    Upstreams &upstreams() noexcept { return *settings_->upstreams; }

    Worker &worker_;
    const uint64_t id_;
    // shared with the other connections, and with what a reload has put in their place
    std::shared_ptr<Service> service_;
    std::shared_ptr<const Settings> settings_;
    std::shared_ptr<relay::BufferPool> buffers_;

    State state_ = State::connecting;
    bool entered_ = false, settled_ = false;
    Peer peer_;
    std::unique_ptr<SocketAddress> claimed_destination_; // if peer_ is what a PROXY header says
    const bool client_is_unix_;

    UniqueFd client_;
    int client_fd_ = -1, upstream_fd_ = -1; // also when the pump has them
    size_t upstream_ = SIZE_MAX;
    Upstreams::Turn turn_;
    UniqueFd begun_; // a connect() that is under way, to begun_index_, if it has come that far
    std::optional<size_t> begun_index_;
    Handle client_watch_;
    std::optional<Task<void>> task_;
    std::unique_ptr<TokenBucket> own_rate_up_, own_rate_down_; // none without a rate
    std::optional<relay::Pump> pump_;
    int64_t accepted_usec_ = 0, connected_usec_ = 0;
};

} // namespace sluice::proxyd
