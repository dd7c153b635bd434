// SPDX-License-Identifier: LGPL-2.1-or-later

// What a pump waits for: descriptors, pauses and rates, and the bounds on all of it.

#include <algorithm>

#include "remote/relay/pump.hpp"
#include "util/base/clock.hpp"

namespace sluice::relay {
namespace {

using std::chrono::microseconds;

constexpr unsigned idle_bound = 1, fin_bound = 2, stuck_bound = 4;

// A timer that is made when it is first needed; `run` gets `opaque`.
void arm(const Loop &loop, Timeout &timer, int64_t usec, sluice_event_timeout_callback run, void *opaque)
{
    if (timer)
        timer.update(microseconds{usec});
    else
        timer = Timeout(loop.get(),
                        detail::checked(sluice_loop_add_timeout_usec(loop.get(), usec, run, opaque, nullptr), "pump"));
}

} // namespace

// --- descriptors -----------------------------------------------------------------------

// What a port is watched for now. Where nothing is wanted of it, still for the other
// side's going away, until that is known.
int Pump::watch_mask(const Port &port) noexcept
{
    int mask = 0;
    if (port.reads && port.reads->wants_source())
        mask |= SLUICE_EVENT_READABLE;
    if (port.writes && port.writes->wants_sink() && !port.paused)
        mask |= SLUICE_EVENT_WRITABLE;
    // A source that has ended stays readable, and that is left until it is reported: the
    // other side has most often ended by then, and with it all of this.
    if (port.reads && port.reads->state() != Lane::State::flowing && !port.end_reported)
        mask |= port.mask & SLUICE_EVENT_READABLE;
    bool in_use = (port.reads && !port.reads->ended()) || (port.writes && !port.writes->ended());
    if (mask == 0 && in_use && !port.gone)
        mask = SLUICE_EVENT_ERROR;
    return mask;
}

void Pump::open(Port &port)
{
    port.mask = 0;
    port.mask = watch_mask(port);
    auto run = [](int, int, int events, void *opaque) noexcept {
        auto *self = static_cast<Port *>(opaque);
        self->pump.on_events(*self, events);
    };
    int id = sluice_loop_add_handle(loop_.get(), port.end.fd(), port.mask, run, &port, nullptr);
    port.watch = Handle(loop_.get(), detail::checked(id, "pump"));
}

void Pump::on_events(Port &port, int events)
{
    constexpr int broken = SLUICE_EVENT_ERROR | SLUICE_EVENT_HANGUP;
    if (port.reads && port.reads->state() != Lane::State::flowing)
        port.end_reported = true;
    if (port.reads && (events & (SLUICE_EVENT_READABLE | broken)))
        port.reads->source_ready();
    if (port.writes && (events & (SLUICE_EVENT_WRITABLE | broken)))
        port.writes->sink_ready();
    if (events & broken)
        port.gone = true;
    run();
}

void Pump::update_watches()
{
    for_each_port([this](Port &port) {
        if (!port.watch)
            return;
        if (!port.end.is_open()) {
            port.watch.remove();
            return;
        }
        if (port.writes && !port.paused && port.writes->may_pause()) {
            port.paused = true;
            pause_until_ = monotonic_usec() + Lane::pause.count();
        }
        int mask = watch_mask(port);
        if (mask != port.mask)
            port.watch.update(port.mask = mask);
    });
}

// --- pauses and rates --------------------------------------------------------------------

void Pump::update_timers()
{
    int64_t when = std::min({pause_until_, up_.waits_until(), down_.waits_until()});
    if (when < wake_at_)
        wake_at(when);
    if (bounds_possible() & ~bounds_armed_)
        check_timeouts();
}

void Pump::wake_at(int64_t when)
{
    wake_at_ = when;
    int64_t left = std::max<int64_t>(when - monotonic_usec(), 0);
    arm(
        loop_, wake_, left, [](int, void *opaque) noexcept { static_cast<Pump *>(opaque)->on_wake(); }, this);
}

void Pump::on_wake()
{
    wake_.park();
    wake_at_ = INT64_MAX;
    if (pause_until_ <= monotonic_usec()) {
        pause_until_ = INT64_MAX;
        for_each_port([](Port &port) {
            if (std::exchange(port.paused, false))
                port.writes->pause_over();
        });
    }
    run();
}

// --- bounds --------------------------------------------------------------------------------

bool Pump::half_closed() const noexcept
{
    return up_.state() != Lane::State::flowing || down_.state() != Lane::State::flowing;
}

// A source has ended, and its sink does not take what is left of it; the rest may
// still be in the source, whose end the lane has then not read.
bool Pump::stuck() const noexcept
{
    auto is_stuck = [](const Lane &lane) {
        return lane.wants_sink() && (lane.state() == Lane::State::draining || lane.source().ended_by_peer());
    };
    return is_stuck(up_) || is_stuck(down_);
}

// Those that apply now, or may without anything moving before.
unsigned Pump::bounds_possible() const noexcept
{
    return (idle_timeout_.count() > 0 ? idle_bound : 0u) |
           (fin_timeout_.count() > 0 && half_closed() ? fin_bound : 0u) |
           (stuck_timeout_.count() > 0 && (up_.wants_sink() || down_.wants_sink()) ? stuck_bound : 0u);
}

// Ends the pump, or sets the timer to the nearest of the bounds. Where none can apply it
// rests until run() finds otherwise.
void Pump::check_timeouts()
{
    microseconds quiet{monotonic_usec() - last_activity_};
    auto left = microseconds::max();
    auto passed = [&](microseconds bound, bool applies, Outcome::Kind kind) {
        if (applies && quiet >= bound) {
            Outcome outcome;
            outcome.kind = kind;
            outcome.undelivered = up_.undelivered() + down_.undelivered();
            end(outcome);
            return true;
        }
        left = std::min(left, applies ? bound - quiet : bound);
        return false;
    };
    unsigned possible = bounds_possible();
    if (((possible & idle_bound) && passed(idle_timeout_, true, Outcome::Kind::idle_timeout)) ||
        ((possible & fin_bound) && passed(fin_timeout_, true, Outcome::Kind::fin_timeout)) ||
        ((possible & stuck_bound) && passed(stuck_timeout_, stuck(), Outcome::Kind::fin_timeout)))
        return;
    bounds_armed_ = possible;
    int64_t usec = possible ? left.count() : -1;
    arm(
        loop_, bounds_, usec, [](int, void *opaque) noexcept { static_cast<Pump *>(opaque)->check_timeouts(); }, this);
}

} // namespace sluice::relay
