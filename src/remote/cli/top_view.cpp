// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/top_view.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "remote/cli/amounts.hpp"
#include "remote/cli/status_view.hpp"

namespace sluice::cli {
namespace {

using Align = Table::Align;

// What a counter has moved by in a second.
class Rates {
public:
    Rates(const Status &now, const Status *before)
    {
        if (before && before->pid == now.pid && before->uptime_seconds < now.uptime_seconds)
            seconds_ = now.uptime_seconds - before->uptime_seconds;
    }
    std::optional<double> of(uint64_t now, std::optional<uint64_t> before) const
    {
        if (seconds_ <= 0 || !before || *before > now)
            return std::nullopt;
        return static_cast<double>(now - *before) / seconds_;
    }

private:
    double seconds_ = 0;
};

std::string bytes_cell(std::optional<double> rate)
{
    return rate ? rate_text(*rate) : "-";
}

std::string count_cell(std::optional<double> rate)
{
    return rate ? fmt::format("{:.1f}", *rate) : "-";
}

struct ServiceRow {
    const Service *service;
    std::optional<double> up, down, accepted, rejected;
};

struct ConnectionRow {
    const Connection *connection;
    std::optional<double> up, down;
};

template <class Row>
void fastest_first(std::vector<Row> &rows)
{
    auto sum = [](const Row &row) { return row.up.value_or(0) + row.down.value_or(0); };
    std::stable_sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) { return sum(a) > sum(b); });
}

std::string title(const Status &now, const Status *before, const Rates &rates)
{
    uint64_t active = 0, up = 0, down = 0, up_before = 0, down_before = 0;
    for (const Service &service : now.services) {
        active += service.active;
        up += service.bytes_up;
        down += service.bytes_down;
    }
    if (before) {
        for (const Service &service : before->services) {
            up_before += service.bytes_up;
            down_before += service.bytes_down;
        }
    }
    std::string text = format(_("sluiced {}, {} for {}: {} connections"), now.version, now.state,
                              time_text(now.uptime_seconds), active);
    auto up_rate = rates.of(up, up_before), down_rate = rates.of(down, down_before);
    if (up_rate && down_rate)
        text += format(_(", {} up, {} down"), rate_text(*up_rate), rate_text(*down_rate));
    return text + format(_(", loop {:.1f} ms late, {} of {} descriptors"), now.loop_lag_seconds * 1e3, now.fds_open,
                         now.fds_max);
}

std::vector<ServiceRow> service_rows(const Status &now, const Status *before, const Rates &rates)
{
    std::unordered_map<std::string, const Service *> earlier;
    if (before) {
        for (const Service &service : before->services)
            earlier.emplace(service.name, &service);
    }
    std::vector<ServiceRow> rows;
    for (const Service &service : now.services) {
        ServiceRow row{&service, {}, {}, {}, {}};
        if (auto found = earlier.find(service.name); found != earlier.end()) {
            row.up = rates.of(service.bytes_up, found->second->bytes_up);
            row.down = rates.of(service.bytes_down, found->second->bytes_down);
            row.accepted = rates.of(service.accepted, found->second->accepted);
            row.rejected = rates.of(service.rejected, found->second->rejected);
        }
        rows.push_back(row);
    }
    fastest_first(rows);
    return rows;
}

std::vector<ConnectionRow> connection_rows(const Status &now, const Status *before, const Rates &rates)
{
    std::unordered_map<uint64_t, const Connection *> earlier;
    if (before) {
        for (const Connection &connection : before->connections)
            earlier.emplace(connection.id, &connection);
    }
    std::vector<ConnectionRow> rows;
    for (const Connection &connection : now.connections) {
        ConnectionRow row{&connection, {}, {}};
        if (auto found = earlier.find(connection.id); found != earlier.end()) {
            row.up = rates.of(connection.up.bytes, found->second->up.bytes);
            row.down = rates.of(connection.down.bytes, found->second->down.bytes);
        }
        rows.push_back(row);
    }
    fastest_first(rows);
    return rows;
}

void add_to(Table &table, const ServiceRow &row)
{
    const Service &service = *row.service;
    const auto up = static_cast<size_t>(std::count_if(service.upstreams.begin(), service.upstreams.end(),
                                                      [](const Upstream &one) { return one.state == "up"; }));
    const Style style = up == service.upstreams.size() ? style_of(service.state) : up > 0 ? Style::warning : Style::bad;
    table.add({service.name, service.state, connections_text(service), count_cell(row.accepted),
               count_cell(row.rejected), bytes_cell(row.up), bytes_cell(row.down),
               format(_("{} of {} up"), up, service.upstreams.size())},
              style);
}

void add_to(Table &table, const ConnectionRow &row)
{
    const Connection &connection = *row.connection;
    table.add({std::to_string(connection.id), connection.service, bytes_cell(row.up), bytes_cell(row.down),
               time_text(connection.age_seconds), connection.state, connection.peer, connection.upstream});
}

// A table of the rows that fit into so many lines; if that is not all, the last line says so.
template <class Row>
void append(std::vector<Line> &lines, Table table, const std::vector<Row> &rows, size_t lines_max)
{
    if (lines_max == 0)
        return;
    const bool all = rows.size() < lines_max;
    const size_t shown = all ? rows.size() : lines_max - std::min<size_t>(lines_max, 2);
    for (size_t i = 0; i < shown; ++i)
        add_to(table, rows[i]);
    for (Line &line : table.lines())
        lines.push_back(std::move(line));
    if (!all && lines_max > 1)
        lines.push_back({format(_("... and {} more"), rows.size() - shown)});
}

} // namespace

std::vector<Line> top_view(const Status &now, const Status *before, const std::string &notice, Size size)
{
    const Rates rates(now, before);
    std::vector<Line> lines{{title(now, before, rates), Style::title}, {notice, Style::bad}};
    const auto services = service_rows(now, before, rates);
    const auto connections = connection_rows(now, before, rates);
    // a line of headings each, an empty one between them, the last line for the keys;
    // if both want more than there is, both get half
    const size_t room = size.rows > lines.size() + 2 ? size.rows - lines.size() - 2 : 0;
    const size_t wanted = services.size() + 1;
    const size_t for_connections = std::min(connections.size() + 1, std::max(room / 2, room - std::min(room, wanted)));
    append(lines,
           Table({{_("SERVICE")},
                  {_("STATE")},
                  {_("CONNECTIONS"), Align::right},
                  {_("NEW/s"), Align::right},
                  {_("REFUSED/s"), Align::right},
                  {_("UP"), Align::right},
                  {_("DOWN"), Align::right},
                  {_("UPSTREAMS")}}),
           services, room - for_connections);
    lines.push_back({});
    append(lines,
           Table({{_("ID"), Align::right},
                  {_("SERVICE")},
                  {_("UP"), Align::right},
                  {_("DOWN"), Align::right},
                  {_("AGE"), Align::right},
                  {_("STATE")},
                  {_("PEER")},
                  {_("UPSTREAM")}}),
           connections, for_connections);
    while (lines.size() + 1 < size.rows)
        lines.push_back({});
    lines.push_back({_("q: quit"), Style::heading});
    if (lines.size() > size.rows)
        lines.resize(size.rows);
    for (Line &line : lines) {
        line.text = cut_to(line.text, size.columns);
        if (line.style == Style::title)
            line.text.append(size.columns - display_width(line.text), ' ');
    }
    return lines;
}

} // namespace sluice::cli
