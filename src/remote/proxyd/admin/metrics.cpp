// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "remote/proxyd/admin/json_writer.hpp"

namespace sluice::proxyd {
namespace {

using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

class Exposition {
public:
    // Begins a metric; samples of it follow.
    void metric(const char *name, const char *type, const char *help)
    {
        name_ = name;
        fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    void sample(Labels labels, uint64_t value) { line("", labels, fmt::format("{}", value)); }
    void sample(Labels labels, double value) { line("", labels, number(value)); }

    void histogram(Label label, const Histogram &histogram)
    {
        uint64_t below = 0;
        for (size_t i = 0; i < Histogram::bounds.size(); ++i) {
            below += histogram.counts[i];
            line("_bucket", {label, {"le", number(Histogram::bounds[i])}}, fmt::format("{}", below));
        }
        const std::string all = fmt::format("{}", below + histogram.counts.back());
        line("_bucket", {label, {"le", "+Inf"}}, all);
        line("_sum", {label}, number(histogram.sum_seconds));
        line("_count", {label}, all);
    }

    std::string take() { return std::move(text_); }

private:
    static std::string number(double value)
    {
        if (std::isnan(value))
            return "NaN";
        if (std::isinf(value))
            return value > 0 ? "+Inf" : "-Inf";
        return fmt::format("{}", value);
    }

    void line(const char *suffix, Labels labels, std::string_view value)
    {
        text_ += name_;
        text_ += suffix;
        char before = '{';
        for (const auto &[name, content] : labels) {
            text_ += before;
            before = ',';
            text_ += name;
            text_ += "=\"";
            for (char c : valid_utf8(content)) {
                if (c == '\\' || c == '"')
                    text_ += '\\';
                if (c == '\n')
                    text_ += "\\n";
                else
                    text_ += c;
            }
            text_ += '"';
        }
        if (labels.size() > 0)
            text_ += '}';
        text_ += ' ';
        text_ += value;
        text_ += '\n';
    }

    std::string text_;
    std::string name_;
};

void daemon_metrics(Exposition &out, const DaemonStatus &status)
{
    out.metric("sluice_build_info", "gauge", "The version of sluiced; the value is 1.");
    out.sample({{"version", status.version}}, uint64_t{1});
    if (status.start_time_seconds > 0) {
        out.metric("process_start_time_seconds", "gauge", "When sluiced started, in seconds of Unix time.");
        out.sample({}, status.start_time_seconds);
    }
    out.metric("sluice_uptime_seconds", "gauge", "Seconds since sluiced started.");
    out.sample({}, status.uptime_seconds);
    out.metric("sluice_draining", "gauge",
               "1 while sluiced takes no connections and waits for those there are to end.");
    out.sample({}, uint64_t{status.state == "draining"});
    out.metric("sluice_reloads_total", "counter", "Times the configuration was read anew.");
    out.sample({{"result", "ok"}}, status.reloads);
    out.sample({{"result", "failed"}}, status.reloads_failed);
    out.metric("sluice_fds_open", "gauge", "File descriptors in use.");
    out.sample({}, status.fds_open);
    out.metric("sluice_fds_max", "gauge", "File descriptors that there may be.");
    out.sample({}, status.fds_max);
    out.metric("sluice_worker_connections", "gauge", "Connections of an event thread.");
    for (const WorkerStatus &worker : status.workers)
        out.sample({{"worker", worker.name}}, worker.connections);
    out.metric("sluice_loop_lag_seconds", "gauge", "How late the event loop was of late.");
    for (const WorkerStatus &worker : status.workers)
        out.sample({{"worker", worker.name}}, worker.loop_lag_seconds);
    out.metric("sluice_loop_lag_max_seconds", "gauge", "How late the event loop was at the worst.");
    for (const WorkerStatus &worker : status.workers)
        out.sample({{"worker", worker.name}}, worker.loop_lag_max_seconds);
}

void connection_metrics(Exposition &out, const std::vector<ServiceStatus> &services)
{
    out.metric("sluice_service_state", "gauge", "1 for the state that a service is in, 0 for the others.");
    for (const ServiceStatus &service : services) {
        for (const char *state : {"open", "full", "draining", "paused"})
            out.sample({{"service", service.name}, {"state", state}}, uint64_t{service.state == state});
    }
    out.metric("sluice_connections_active", "gauge", "Connections that there are.");
    for (const ServiceStatus &service : services)
        out.sample({{"service", service.name}}, service.active);
    out.metric("sluice_connections_limit", "gauge", "Connections that there may be at a time; 0: no limit.");
    for (const ServiceStatus &service : services)
        out.sample({{"service", service.name}}, service.limit);
    out.metric("sluice_connections_accepted_total", "counter", "Connections taken.");
    for (const ServiceStatus &service : services)
        out.sample({{"service", service.name}}, service.accepted);
    out.metric("sluice_connections_rejected_total", "counter", "Connections turned away, by reason.");
    for (const ServiceStatus &service : services) {
        for (const Tally &tally : service.rejected)
            out.sample({{"service", service.name}, {"reason", tally.reason}}, tally.count);
    }
    out.metric("sluice_connections_closed_total", "counter", "Connections that have ended, by reason.");
    for (const ServiceStatus &service : services) {
        for (const Tally &tally : service.closed)
            out.sample({{"service", service.name}, {"reason", tally.reason}}, tally.count);
    }
}

void traffic_metrics(Exposition &out, const std::vector<ServiceStatus> &services)
{
    out.metric("sluice_bytes_total", "counter", "Bytes delivered: up to the upstream, down to the client.");
    for (const ServiceStatus &service : services) {
        out.sample({{"service", service.name}, {"direction", "up"}}, service.bytes_up);
        out.sample({{"service", service.name}, {"direction", "down"}}, service.bytes_down);
    }
    out.metric("sluice_relay_bytes_total", "counter", "Bytes delivered, by the way they went; both directions.");
    for (const ServiceStatus &service : services) {
        out.sample({{"service", service.name}, {"mode", "copying"}}, service.relayed_copying);
        out.sample({{"service", service.name}, {"mode", "spliced"}}, service.relayed_spliced);
    }
    out.metric("sluice_buffer_bytes", "gauge", "Memory of buffers in use.");
    for (const ServiceStatus &service : services)
        out.sample({{"service", service.name}}, service.buffer_bytes);
    out.metric("sluice_connect_seconds", "histogram", "How long connecting to an upstream took.");
    for (const ServiceStatus &service : services)
        out.histogram({"service", service.name}, service.connect_seconds);
}

// An address that a service names twice is one upstream here: samples must differ in their labels.
std::vector<UpstreamStatus> by_address(const std::vector<UpstreamStatus> &upstreams)
{
    std::vector<UpstreamStatus> merged;
    for (const UpstreamStatus &upstream : upstreams) {
        auto same = std::find_if(merged.begin(), merged.end(),
                                 [&](const UpstreamStatus &other) { return other.address == upstream.address; });
        if (same == merged.end()) {
            merged.push_back(upstream);
            continue;
        }
        if (upstream.state == "up")
            same->state = "up";
        same->active += upstream.active;
        same->connects += upstream.connects;
        same->failures += upstream.failures;
    }
    return merged;
}

void upstream_metrics(Exposition &out, const std::vector<ServiceStatus> &services)
{
    std::vector<std::pair<std::string_view, std::vector<UpstreamStatus>>> all;
    for (const ServiceStatus &service : services)
        all.emplace_back(service.name, by_address(service.upstreams));
    auto each = [&](auto figure) {
        for (const auto &[service, upstreams] : all) {
            for (const UpstreamStatus &upstream : upstreams)
                out.sample({{"service", service}, {"upstream", upstream.address}}, figure(upstream));
        }
    };
    out.metric("sluice_upstream_up", "gauge", "1 while an upstream is taken to be up, 0 while it is passed over.");
    each([](const UpstreamStatus &upstream) { return uint64_t{upstream.state == "up"}; });
    out.metric("sluice_upstream_connections_active", "gauge", "Connections to an upstream.");
    each([](const UpstreamStatus &upstream) { return upstream.active; });
    out.metric("sluice_upstream_connects_total", "counter", "Connections made to an upstream.");
    each([](const UpstreamStatus &upstream) { return upstream.connects; });
    out.metric("sluice_upstream_failures_total", "counter", "Attempts to connect to an upstream that have failed.");
    each([](const UpstreamStatus &upstream) { return upstream.failures; });
}

} // namespace

std::string to_metrics(const DaemonStatus &status)
{
    Exposition out;
    daemon_metrics(out, status);
    connection_metrics(out, status.services);
    traffic_metrics(out, status.services);
    upstream_metrics(out, status.services);
    return out.take();
}

} // namespace sluice::proxyd
