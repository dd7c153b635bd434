// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/status_view.hpp"

#include "remote/cli/amounts.hpp"

namespace sluice::cli {
namespace {

using Align = Table::Align;

void append(std::vector<Line> &lines, const Table &table)
{
    lines.push_back({});
    for (Line &line : table.lines())
        lines.push_back(std::move(line));
}

Table services_table(const Status &status)
{
    Table table({{_("SERVICE")},
                 {_("STATE")},
                 {_("CONNECTIONS"), Align::right},
                 {_("ACCEPTED"), Align::right},
                 {_("REFUSED"), Align::right},
                 {_("UP"), Align::right},
                 {_("DOWN"), Align::right},
                 {_("LISTENS ON")}});
    for (const Service &service : status.services) {
        std::string listen;
        for (const std::string &address : service.listen)
            listen += (listen.empty() ? "" : ", ") + address;
        table.add({service.name, service.state, connections_text(service), std::to_string(service.accepted),
                   std::to_string(service.rejected), bytes_text(static_cast<double>(service.bytes_up)),
                   bytes_text(static_cast<double>(service.bytes_down)), listen},
                  style_of(service.state));
    }
    return table;
}

Table upstreams_table(const Status &status)
{
    Table table({{_("SERVICE")},
                 {_("UPSTREAM")},
                 {_("STATE")},
                 {_("CONNECTIONS"), Align::right},
                 {_("CONNECTS"), Align::right},
                 {_("FAILURES"), Align::right},
                 {_("LAST ERROR")}});
    for (const Service &service : status.services) {
        for (const Upstream &upstream : service.upstreams)
            table.add({service.name, upstream.address, upstream.state, std::to_string(upstream.active),
                       std::to_string(upstream.connects), std::to_string(upstream.failures), upstream.last_error},
                      style_of(upstream.state));
    }
    return table;
}

Table connections_table(const Status &status)
{
    Table table({{_("ID"), Align::right},
                 {_("SERVICE")},
                 {_("AGE"), Align::right},
                 {_("IDLE"), Align::right},
                 {_("PEER")},
                 {_("UPSTREAM")},
                 {_("STATE")},
                 {_("UP"), Align::right},
                 {_("DOWN"), Align::right},
                 {_("UP IS")},
                 {_("DOWN IS")}});
    for (const Connection &connection : status.connections)
        table.add({std::to_string(connection.id), connection.service, time_text(connection.age_seconds),
                   time_text(connection.idle_seconds), connection.peer, connection.upstream, connection.state,
                   bytes_text(static_cast<double>(connection.up.bytes)),
                   bytes_text(static_cast<double>(connection.down.bytes)), lane_text(connection.up),
                   lane_text(connection.down)});
    return table;
}

} // namespace

std::string connections_text(const Service &service)
{
    return service.limit > 0 ? format("{}/{}", service.active, service.limit) : std::to_string(service.active);
}

std::string lane_text(const Lane &lane)
{
    if (lane.state == "finished" || lane.state == "failed" || lane.mode.empty())
        return lane.state;
    const std::string text = lane.state + " " + lane.mode;
    return lane.waits_for.empty() || lane.waits_for == "nothing" ? text
                                                                 : format(_("{}, awaits {}"), text, lane.waits_for);
}

Style style_of(const std::string &state)
{
    if (state == "down")
        return Style::bad;
    return state == "full" || state == "draining" || state == "paused" ? Style::warning : Style::plain;
}

std::vector<Line> status_view(const Status &status, bool with_connections)
{
    std::vector<Line> lines;
    lines.push_back(
        {format(_("sluiced {}, pid {}: {} for {}, {} of {} file descriptors, {} reloads"), status.version, status.pid,
                status.state, time_text(status.uptime_seconds), status.fds_open, status.fds_max, status.reloads),
         style_of(status.state)});
    if (status.reloads_failed > 0)
        lines.push_back({format(_("{} more reloads have failed, the last one: {}"), status.reloads_failed,
                                status.last_reload_error),
                         Style::bad});
    append(lines, services_table(status));
    append(lines, upstreams_table(status));
    if (with_connections)
        append(lines, connections_table(status));
    return lines;
}

} // namespace sluice::cli
