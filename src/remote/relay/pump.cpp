// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/pump.hpp"

#include <algorithm>
#include <cerrno>

#include "util/base/clock.hpp"

namespace sluice::relay {

Pump::Pump(Loop loop, PumpConfig config, Endpoint client_read, std::optional<Endpoint> client_write, Endpoint server)
    : loop_(std::move(loop)), config_(config), client_in_(std::make_unique<Port>(std::move(client_read))),
      client_out_(client_write ? std::make_unique<Port>(std::move(*client_write)) : nullptr),
      server_(std::make_unique<Port>(std::move(server)))
{
    Port &out = client_out_ ? *client_out_ : *client_in_;
    up_ = std::make_unique<Lane>(client_in_->end, server_->end, config_.up);
    down_ = std::make_unique<Lane>(server_->end, out.end, config_.down);
    client_in_->reads = up_.get();
    server_->writes = up_.get();
    server_->reads = down_.get();
    out.writes = down_.get();
}

Pump::~Pump() = default;

void Pump::start(std::function<void(const Outcome &)> on_end)
{
    on_end_ = std::move(on_end);
    last_activity_ = monotonic_usec();
    for (Port *port : {client_in_.get(), client_out_.get(), server_.get()}) {
        if (!port)
            continue;
        port->mask = watch_mask(*port);
        port->watch = loop_.watch(port->end.fd(), port->mask, [this, port](int events) { on_events(*port, events); });
    }
    pause_timer_ = loop_.every(std::chrono::microseconds{-1}, [this] { end_pauses(); });
    auto bound = std::max({config_.idle_timeout, config_.fin_timeout, config_.stuck_timeout});
    if (bound.count() > 0) {
        timer_ = loop_.every(std::chrono::microseconds{-1}, [this] { check_timeout(); });
        check_timeout();
    }
}

// What a port is watched for now. Where nothing is wanted of it, still for the other
// side's going away, until that is known.
int Pump::watch_mask(const Port &port) const noexcept
{
    int mask = 0;
    if (port.reads && port.reads->wants_source())
        mask |= SLUICE_EVENT_READABLE;
    if (port.writes && port.writes->wants_sink() && !port.paused)
        mask |= SLUICE_EVENT_WRITABLE;
    bool in_use = (port.reads && !port.reads->ended()) || (port.writes && !port.writes->ended());
    if (mask == 0 && in_use && !port.gone)
        mask = SLUICE_EVENT_ERROR;
    return mask;
}

void Pump::on_events(Port &port, int events)
{
    constexpr int broken = SLUICE_EVENT_ERROR | SLUICE_EVENT_HANGUP;
    if (port.reads && (events & (SLUICE_EVENT_READABLE | broken)))
        port.reads->source_ready();
    if (port.writes && (events & (SLUICE_EVENT_WRITABLE | broken)))
        port.writes->sink_ready();
    if (events & broken)
        port.gone = true;
    run();
}

void Pump::run()
{
    bool moved = up_->run();
    moved |= down_->run();
    settle_gone();
    // Nobody hears the server any more, or what is to be sent cannot be read: what the
    // other direction has so far is delivered, and that is the end.
    if (down_->state() == Lane::State::failed)
        wind_up(*up_);
    if (up_->state() == Lane::State::failed && up_->source_failed())
        wind_up(*down_);
    if (moved) {
        note_moments();
        if (timer_)
            last_activity_ = monotonic_usec();
    }
    if (over())
        end(lanes_outcome());
    else
        update_watches();
}

// What follows from a side's having gone away that no read or write will tell.
void Pump::settle_gone()
{
    // The server has closed. What it sent before is still read, but nothing can be
    // delivered to it: with bytes in hand the write says so.
    if (server_->gone && !up_->ended()) {
        if (up_->held() == 0) {
            up_->stop(true);
        } else {
            up_->sink_ready();
            up_->run();
        }
    }
    // Nobody reads our output and nothing more will be asked: then nothing can come of
    // waiting. While the client may still ask, bytes for it are an error when they come.
    const Port &out = client_out_ ? *client_out_ : *client_in_;
    if (out.gone && up_->ended())
        wind_up(*down_);
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

bool Pump::over() const noexcept
{
    return up_->ended() && down_->ended();
}

void Pump::update_watches()
{
    for (Port *port : {client_in_.get(), client_out_.get(), server_.get()}) {
        if (!port || !port->watch)
            continue;
        if (!port->end.is_open()) {
            port->watch.remove();
            continue;
        }
        if (port->writes && !port->paused && port->writes->may_pause()) {
            port->paused = true;
            pause_timer_.update(Lane::pause);
        }
        int mask = watch_mask(*port);
        if (mask != port->mask)
            port->watch.update(port->mask = mask);
    }
}

void Pump::note_moments()
{
    auto note = [this](Moment moment, bool happened) {
        unsigned bit = 1u << static_cast<unsigned>(moment);
        if (!happened || (seen_moments_ & bit))
            return;
        seen_moments_ |= bit;
        if (on_moment_)
            on_moment_(moment);
    };
    note(Moment::first_byte_up, up_->bytes() > 0);
    note(Moment::first_byte_down, down_->bytes() > 0);
    note(Moment::end_up, up_->ended());
    note(Moment::end_down, down_->ended());
}

void Pump::end_pauses()
{
    pause_timer_.park();
    for (Port *port : {client_in_.get(), client_out_.get(), server_.get()}) {
        if (port && std::exchange(port->paused, false))
            port->writes->pause_over();
    }
    run();
}

bool Pump::half_closed() const noexcept
{
    return up_->state() != Lane::State::flowing || down_->state() != Lane::State::flowing;
}

// A source has ended, and its sink does not take what is left of it; the rest may
// still be in the source, whose end the lane has then not read.
bool Pump::stuck() const noexcept
{
    auto is_stuck = [](const Lane &lane) {
        return lane.wants_sink() && (lane.state() == Lane::State::draining || lane.source().ended_by_peer());
    };
    return is_stuck(*up_) || is_stuck(*down_);
}

void Pump::check_timeout()
{
    using std::chrono::microseconds;
    microseconds quiet{monotonic_usec() - last_activity_};
    // the tighter of the bounds that apply; a half-close is noticed at the next check at
    // the latest, so the timer also runs while only the fin timeout is set
    auto left = microseconds::max();
    auto apply = [&](microseconds bound, bool applies, Outcome::Kind kind) {
        if (bound.count() == 0)
            return false;
        if (applies && quiet >= bound) {
            Outcome outcome;
            outcome.kind = kind;
            outcome.undelivered = up_->undelivered() + down_->undelivered();
            end(outcome);
            return true;
        }
        left = std::min(left, applies ? bound - quiet : bound);
        return false;
    };
    if (apply(config_.idle_timeout, true, Outcome::Kind::idle_timeout) ||
        apply(config_.fin_timeout, half_closed(), Outcome::Kind::fin_timeout) ||
        apply(config_.stuck_timeout, stuck(), Outcome::Kind::fin_timeout))
        return;
    timer_.update(left);
}

Outcome Pump::lanes_outcome() const
{
    Outcome outcome;
    for (const Lane *lane : {down_.get(), up_.get()}) {
        if (lane->state() != Lane::State::failed)
            continue;
        outcome.kind = Outcome::Kind::failed;
        outcome.error = lane->error();
        outcome.at_source = lane->source_failed();
        outcome.at = lane->source_failed() ? lane->source().name() : lane->sink().name();
        outcome.undelivered += lane->held();
    }
    return outcome;
}

void Pump::end(Outcome outcome)
{
    if (std::exchange(ended_, true))
        return;
    note_moments();
    timer_.remove();
    pause_timer_.remove();
    for (Port *port : {client_in_.get(), client_out_.get(), server_.get()}) {
        if (port)
            port->watch.remove();
    }
    auto on_end = std::move(on_end_);
    on_end(outcome);
}

} // namespace sluice::relay
