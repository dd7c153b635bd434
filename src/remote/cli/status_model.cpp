// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/status_model.hpp"

#include <algorithm>

#include "remote/cli/json.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

std::string text_of(JsonView from, const char *key)
{
    return printable(from.text(key));
}

Lane lane_of(JsonView from)
{
    return {text_of(from, "state"), text_of(from, "mode"), text_of(from, "waits_for"), from.count("bytes")};
}

Connection connection_of(JsonView from)
{
    Connection connection;
    connection.id = from.count("id");
    connection.service = text_of(from, "service");
    connection.peer = text_of(from, "peer");
    connection.upstream = text_of(from, "upstream");
    connection.state = text_of(from, "state");
    connection.age_seconds = from.number("age_seconds");
    connection.idle_seconds = from.number("idle_seconds");
    connection.up = lane_of(from["up"]);
    connection.down = lane_of(from["down"]);
    return connection;
}

Service service_of(JsonView from)
{
    Service service;
    service.name = text_of(from, "name");
    service.state = text_of(from, "state");
    for (JsonView address : from.list("listen"))
        service.listen.push_back(printable(address.as_text()));
    for (JsonView one : from.list("upstreams"))
        service.upstreams.push_back({text_of(one, "address"), text_of(one, "state"), text_of(one, "last_error"),
                                     one.count("active"), one.count("connects"), one.count("failures")});
    service.active = from.count("active");
    service.limit = from.count("limit");
    service.accepted = from.count("accepted");
    for (const auto &[reason, count] : from.members("rejected"))
        service.rejected += count.as_count();
    service.bytes_up = from.count("bytes_up");
    service.bytes_down = from.count("bytes_down");
    return service;
}

} // namespace

Result<Status> parse_status(const std::string &json)
{
    auto document = JsonDocument::parse(json);
    if (!document)
        return tl::unexpected(document.error().context(_("the status cannot be read")));
    const JsonView root = document->root();
    if (!root["services"].is_array() || root.text("version").empty())
        return fail(EPROTO, _("the answer is not the status of a sluiced"));
    Status status;
    status.version = text_of(root, "version");
    status.state = text_of(root, "state");
    status.last_reload_error = text_of(root, "last_reload_error");
    status.pid = root.count("pid");
    status.uptime_seconds = root.number("uptime_seconds");
    status.reloads = root.count("reloads");
    status.reloads_failed = root.count("reloads_failed");
    status.fds_open = root.count("fds_open");
    status.fds_max = root.count("fds_max");
    for (JsonView worker : root.list("workers"))
        status.loop_lag_seconds = std::max(status.loop_lag_seconds, worker.number("loop_lag_seconds"));
    for (JsonView service : root.list("services"))
        status.services.push_back(service_of(service));
    for (JsonView connection : root.list("connections"))
        status.connections.push_back(connection_of(connection));
    return status;
}

} // namespace sluice::cli
