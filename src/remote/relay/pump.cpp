// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/pump.hpp"

#include <algorithm>
#include <utility>

#include "util/base/clock.hpp"

namespace sluice::relay {

// An owner for those who gave functions.
class Pump::Functions final : public PumpOwner {
public:
    std::function<void(const Outcome &)> ended;
    std::function<void(Moment)> moment;

private:
    void pump_ended(const Outcome &outcome) override
    {
        auto last = std::move(ended); // it may destroy the pump, and this with it
        last(outcome);
    }
    void pump_moment(Moment which) override
    {
        if (moment)
            moment(which);
    }
};

Pump::Pump(Loop loop, PumpConfig config, Endpoint client_read, std::optional<Endpoint> client_write, Endpoint server)
    : loop_(std::move(loop)), client_in_(*this, std::move(client_read)), server_(*this, std::move(server)),
      client_out_(client_write ? std::make_unique<Port>(*this, std::move(*client_write)) : nullptr),
      up_(client_in_.end, server_.end, std::move(config.up), this),
      down_(server_.end, client_out().end, std::move(config.down), this), idle_timeout_(config.idle_timeout),
      fin_timeout_(config.fin_timeout), stuck_timeout_(config.stuck_timeout), client_first_(config.client_first)
{
    client_in_.reads = &up_;
    server_.writes = &up_;
    server_.reads = &down_;
    client_out().writes = &down_;
}

Pump::~Pump() = default;

Pump::Functions &Pump::functions()
{
    if (!functions_)
        functions_ = std::make_unique<Functions>();
    return *functions_;
}

void Pump::on_moment(std::function<void(Moment)> callback)
{
    functions().moment = std::move(callback);
}

void Pump::start(std::function<void(const Outcome &)> on_end)
{
    functions().ended = std::move(on_end);
    start(functions());
}

void Pump::start(PumpOwner &owner)
{
    owner_ = &owner;
    last_activity_ = monotonic_usec();
    if (client_first_ || up_.preface_left() > 0) {
        if (client_first_)
            up_.source_ready();
        up_.run();
        if (up_.bytes() > 0)
            first_byte_ = last_activity_;
    }
    for_each_port([this](Port &port) { open(port); });
    update_timers();
    if (up_.state() != Lane::State::flowing)
        wake_at(0); // what follows from that is settled from the loop
}

void Pump::run()
{
    bool moved = up_.run();
    moved |= down_.run();
    settle_gone();
    // Nobody hears the server any more, or what is to be sent cannot be read: what the
    // other direction has so far is delivered, and that is the end.
    if (down_.state() == Lane::State::failed)
        wind_up(up_);
    if (up_.state() == Lane::State::failed && up_.source_failed())
        wind_up(down_);
    if (moved) {
        last_activity_ = monotonic_usec();
        note_moments();
        if (half_closed())
            leave_last_end_to_close();
    }
    if (over()) {
        end(lanes_outcome());
    } else {
        update_watches();
        update_timers();
    }
}

// What follows from a side's having gone away that no read or write will tell.
void Pump::settle_gone()
{
    // The server has closed. What it sent before is still read, but nothing can be
    // delivered to it: with bytes in hand the write says so.
    if (server_.gone && !up_.ended()) {
        if (up_.held() == 0) {
            up_.stop(true);
        } else {
            up_.sink_ready();
            up_.run();
        }
    }
    // Nobody reads our output and nothing more will be asked: then nothing can come of
    // waiting. While the client may still ask, bytes for it are an error when they come.
    if (client_out().gone && up_.ended())
        wind_up(down_);
}

// Take what can be had at once, deliver what is held, and end.
void Pump::wind_up(Lane &lane)
{
    if (lane.state() != Lane::State::flowing)
        return;
    lane.source_ready();
    lane.run();
    lane.stop(false);
}

// When the second lane finishes its sink is closed in any case, see end().
void Pump::leave_last_end_to_close()
{
    for (auto [one, other] : {std::pair(&up_, &down_), std::pair(&down_, &up_)}) {
        if (one->state() == Lane::State::finished && other->sink().kind() == Endpoint::Kind::socket)
            other->leave_end_to_close();
    }
}

void Pump::note_moments()
{
    if (first_byte_ == 0 && (up_.bytes() > 0 || down_.bytes() > 0))
        first_byte_ = last_activity_;
    auto note = [this](Moment moment, bool happened) {
        auto bit = static_cast<uint8_t>(1u << static_cast<unsigned>(moment));
        if (!happened || (seen_moments_ & bit))
            return;
        seen_moments_ |= bit;
        owner_->pump_moment(moment);
    };
    note(Moment::first_byte_up, up_.bytes() > 0);
    note(Moment::first_byte_down, down_.bytes() > 0);
    note(Moment::end_up, up_.ended());
    note(Moment::end_down, down_.ended());
}

Outcome Pump::lanes_outcome() const
{
    Outcome outcome;
    for (const Lane *lane : {&down_, &up_}) {
        if (lane->state() != Lane::State::failed)
            continue;
        outcome.kind = Outcome::Kind::failed;
        outcome.error = lane->error();
        outcome.at_source = lane->source_failed();
        outcome.at = lane->source_failed() ? lane->source().name() : lane->sink().name();
        outcome.met_descriptors = lane->met_descriptors();
        outcome.undelivered += lane->held();
    }
    return outcome;
}

void Pump::end(Outcome outcome)
{
    if (std::exchange(ended_, true))
        return;
    note_moments();
    bounds_.remove();
    wake_.remove();
    for_each_port([&](Port &port) {
        port.watch.remove();
        if (outcome.kind == Outcome::Kind::complete && port.end.kind() == Endpoint::Kind::socket)
            port.end.close();
    });
    owner_->pump_ended(outcome);
}

} // namespace sluice::relay
