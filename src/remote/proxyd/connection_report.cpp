// SPDX-License-Identifier: LGPL-2.1-or-later

// What a connection tells of itself: to the log when it ends, to status pages before.

#include <algorithm>

#include "remote/proxyd/connection.hpp"
#include "remote/proxyd/worker.hpp"
#include "util/base/clock.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

const char *name_of(relay::Lane::State state)
{
    using State = relay::Lane::State;
    switch (state) {
    case State::flowing:
        return "flowing";
    case State::draining:
        return "draining";
    case State::finished:
        return "finished";
    case State::failed:
        break;
    }
    return "failed";
}

const char *name_of(relay::Lane::Mode mode)
{
    using Mode = relay::Lane::Mode;
    return mode == Mode::copying ? "copying" : mode == Mode::spliced ? "spliced" : "piped";
}

const char *name_of(relay::Lane::Waits waits)
{
    using Waits = relay::Lane::Waits;
    switch (waits) {
    case Waits::source:
        return "source";
    case Waits::sink:
        return "sink";
    case Waits::rate:
        return "rate";
    case Waits::memory:
        return "memory";
    case Waits::nothing:
        break;
    }
    return "nothing";
}

LaneStatus status_of(const relay::Lane &lane)
{
    LaneStatus status;
    status.state = name_of(lane.state());
    status.mode = name_of(lane.mode());
    status.waits_for = name_of(lane.waits_for());
    status.bytes = lane.bytes();
    status.held_bytes = lane.held();
    return status;
}

double seconds(int64_t usec)
{
    return static_cast<double>(usec) / 1e6;
}

} // namespace

Service::Moved Connection::moved() const noexcept
{
    Service::Moved moved;
    if (!pump_)
        return moved;
    moved.up = pump_->up().bytes();
    moved.down = pump_->down().bytes();
    moved.spliced = pump_->up().spliced_bytes() + pump_->down().spliced_bytes();
    moved.copying = moved.up + moved.down - moved.spliced;
    return moved;
}

ConnectionStatus Connection::status(int64_t now_usec) const
{
    ConnectionStatus status;
    status.id = id_;
    status.service = service_->name();
    status.peer = describe(peer_);
    status.upstream = upstream_ == SIZE_MAX ? "" : upstreams().name(upstream_);
    switch (state_) {
    case State::header:
        status.state = "header";
        break;
    case State::connecting:
        status.state = "connecting";
        break;
    case State::waiting:
        status.state = "waiting";
        break;
    case State::relaying:
    case State::ended:
        status.state = "relaying";
        break;
    }
    status.age_seconds = seconds(now_usec - accepted_usec_);
    status.idle_seconds = seconds(now_usec - (pump_ ? pump_->last_activity_usec() : accepted_usec_));
    if (pump_) {
        status.up = status_of(pump_->up());
        status.down = status_of(pump_->down());
    }
    return status;
}

void Connection::record_end(Closing reason, const std::string &why) const
{
    LogConnections wanted = settings_->config.log_connections;
    bool well = reason == Closing::complete || reason == Closing::admin || reason == Closing::idle_timeout;
    Log &log = worker_.shared().log;
    if (wanted == LogConnections::none || (wanted == LogConnections::failed && well))
        return;
    Priority priority = well ? Priority::info : Priority::warning;
    if (!log.wants(priority))
        return;
    int64_t now = monotonic_usec();
    Service::Moved moved = this->moved();
    const char *upstream = upstream_ == SIZE_MAX ? "" : upstreams().name(upstream_);
    std::string who = describe(peer_);
    std::string message =
        format(_("service {}: {} to {}: {}, {} bytes up, {} down, {:.6f} s"), service_->name(), who,
               *upstream ? upstream : "-", word(reason), moved.up, moved.down, seconds(now - accepted_usec_));
    if (!why.empty())
        message += ": " + why;
    auto elapsed = [this](int64_t at) {
        return at == 0 ? std::string() : fmt::format("{:.6f}", seconds(at - accepted_usec_));
    };
    // where all are wanted all are told; else a storm of the same kind is told as one
    MessageId kind = reason == Closing::no_upstream ? message_id::connect_failed : message_id::connection_closed;
    kind.repeats = wanted != LogConnections::all;
    int64_t first_byte = pump_ ? pump_->first_byte_usec() : 0;
    log.record(priority, kind, std::move(message),
               {{"SLUICE_SERVICE", service_->name()},
                {"SLUICE_CONNECTION", std::to_string(id_)},
                {"SLUICE_PEER", who},
                {"SLUICE_UPSTREAM", upstream},
                {"SLUICE_BYTES_UP", std::to_string(moved.up)},
                {"SLUICE_BYTES_DOWN", std::to_string(moved.down)},
                {"SLUICE_REASON", word(reason)},
                {"SLUICE_CONNECT_SECONDS", elapsed(connected_usec_)},
                {"SLUICE_FIRST_BYTE_SECONDS", elapsed(first_byte)},
                {"SLUICE_CLOSE_SECONDS", elapsed(now)}});
}

} // namespace sluice::proxyd
