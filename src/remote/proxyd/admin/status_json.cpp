// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/status_json.hpp"

#include "remote/proxyd/admin/json_writer.hpp"

namespace sluice::proxyd {
namespace {

template <class List, class Write>
void write_list(JsonWriter &json, const char *key, const List &list, Write &&write)
{
    json.key(key);
    json.open('[');
    for (const auto &item : list)
        write(json, item);
    json.close(']');
}

void write_tallies(JsonWriter &json, const char *key, const std::vector<Tally> &tallies)
{
    json.key(key);
    json.open('{');
    for (const Tally &tally : tallies)
        json.field(tally.reason, tally.count);
    json.close('}');
}

void write_worker(JsonWriter &json, const WorkerStatus &worker)
{
    json.open('{');
    json.field("name", worker.name);
    json.field("connections", worker.connections);
    json.field("loop_lag_seconds", worker.loop_lag_seconds);
    json.field("loop_lag_max_seconds", worker.loop_lag_max_seconds);
    json.close('}');
}

void write_upstream(JsonWriter &json, const UpstreamStatus &upstream)
{
    json.open('{');
    json.field("address", upstream.address);
    json.field("state", upstream.state);
    json.field("last_error", upstream.last_error);
    json.field("active", upstream.active);
    json.field("connects", upstream.connects);
    json.field("failures", upstream.failures);
    json.close('}');
}

// Buckets are cumulative, as Prometheus has them; the count of all is "count".
void write_histogram(JsonWriter &json, const char *key, const Histogram &histogram)
{
    json.key(key);
    json.open('{');
    json.key("buckets");
    json.open('[');
    uint64_t below = 0;
    for (size_t i = 0; i < Histogram::bounds.size(); ++i) {
        below += histogram.counts[i];
        json.open('{');
        json.field("le", Histogram::bounds[i]);
        json.field("count", below);
        json.close('}');
    }
    json.close(']');
    json.field("count", below + histogram.counts.back());
    json.field("sum", histogram.sum_seconds);
    json.close('}');
}

void write_service(JsonWriter &json, const ServiceStatus &service)
{
    json.open('{');
    json.field("name", service.name);
    json.field("state", service.state);
    write_list(json, "listen", service.listen, [](JsonWriter &to, const std::string &address) { to.value(address); });
    write_list(json, "upstreams", service.upstreams, write_upstream);
    json.field("active", service.active);
    json.field("limit", service.limit);
    json.field("accepted", service.accepted);
    write_tallies(json, "rejected", service.rejected);
    write_tallies(json, "closed", service.closed);
    json.field("bytes_up", service.bytes_up);
    json.field("bytes_down", service.bytes_down);
    json.field("bytes_copied", service.relayed_copying);
    json.field("bytes_spliced", service.relayed_spliced);
    json.field("buffer_bytes", service.buffer_bytes);
    write_histogram(json, "connect_seconds", service.connect_seconds);
    json.close('}');
}

void write_lane(JsonWriter &json, const char *key, const LaneStatus &lane)
{
    json.key(key);
    json.open('{');
    json.field("state", lane.state);
    json.field("mode", lane.mode);
    json.field("waits_for", lane.waits_for);
    json.field("bytes", lane.bytes);
    json.field("held_bytes", lane.held_bytes);
    json.close('}');
}

void write_connection(JsonWriter &json, const ConnectionStatus &connection)
{
    json.open('{');
    json.field("id", connection.id);
    json.field("service", connection.service);
    json.field("peer", connection.peer);
    json.field("upstream", connection.upstream);
    json.field("state", connection.state);
    json.field("age_seconds", connection.age_seconds);
    json.field("idle_seconds", connection.idle_seconds);
    write_lane(json, "up", connection.up);
    write_lane(json, "down", connection.down);
    json.close('}');
}

} // namespace

std::string to_json(const DaemonStatus &status, bool with_connections)
{
    JsonWriter json;
    json.open('{');
    json.field("version", status.version);
    json.field("pid", status.pid);
    json.field("state", status.state);
    json.field("start_time_seconds", status.start_time_seconds);
    json.field("uptime_seconds", status.uptime_seconds);
    json.field("reloads", status.reloads);
    json.field("reloads_failed", status.reloads_failed);
    json.field("last_reload_error", status.last_reload_error);
    json.field("fds_open", status.fds_open);
    json.field("fds_max", status.fds_max);
    write_list(json, "workers", status.workers, write_worker);
    write_list(json, "services", status.services, write_service);
    if (with_connections)
        write_list(json, "connections", status.connections, write_connection);
    json.close('}');
    return json.take() + '\n';
}

} // namespace sluice::proxyd
