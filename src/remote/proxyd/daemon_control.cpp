// SPDX-License-Identifier: LGPL-2.1-or-later

// The daemon as the admin server sees it.

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <sluice/version.h>

#include "remote/proxyd/daemon.hpp"
#include "util/async/post.hpp"
#include "util/base/clock.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

uint64_t count_open_files()
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    uint64_t count = 0;
    while (const dirent *entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; // the folder's own
}

// What is still out of one question to all workers.
struct Gathering {
    DaemonStatus status;
    size_t missing = 0;
    std::function<void(DaemonStatus)> done;
};

void add(DaemonStatus &status, WorkerReport report)
{
    status.workers.push_back(std::move(report.worker));
    for (const auto &entry : report.live) {
        const WorkerReport::Live &live = entry.second;
        auto service = std::find_if(status.services.begin(), status.services.end(),
                                    [&](const ServiceStatus &one) { return one.name == entry.first; });
        if (service == status.services.end())
            continue;
        service->bytes_up += live.moved.up;
        service->bytes_down += live.moved.down;
        service->relayed_copying += live.moved.copying;
        service->relayed_spliced += live.moved.spliced;
        service->buffer_bytes += live.buffer_bytes;
    }
    std::move(report.connections.begin(), report.connections.end(), std::back_inserter(status.connections));
}

} // namespace

DaemonStatus Daemon::own_status() const
{
    DaemonStatus status;
    status.version = SLUICE_VERSION;
    status.pid = getpid();
    status.state = draining_ ? "draining" : "ready";
    status.uptime_seconds = static_cast<double>(monotonic_usec() - started_usec_) / 1e6;
    status.start_time_seconds = started_at_;
    status.reloads = reloads_;
    status.reloads_failed = reloads_failed_;
    status.last_reload_error = last_reload_error_;
    status.fds_open = count_open_files();
    status.fds_max = files_.limit;
    for (const auto &[name, service] : services_) {
        ServiceStatus &one = status.services.emplace_back(service->status());
        auto bindings = bindings_.find(name);
        if (bindings == bindings_.end())
            continue;
        for (const Binding &binding : bindings->second) {
            for (const SocketAddress &at : binding.listener->addresses())
                one.listen.push_back(to_string(at));
        }
    }
    return status;
}

void Daemon::snapshot(bool with_connections, std::function<void(DaemonStatus)> done)
{
    auto gathering = std::make_shared<Gathering>(); // shared by the workers' answers
    gathering->status = own_status();
    gathering->missing = workers_.size();
    gathering->done = std::move(done);
    for (auto &worker : workers_) {
        worker->post([gathering, with_connections, main = main_](Worker &one) mutable {
            sluice::post(main, [gathering, report = one.report(with_connections)]() mutable {
                add(gathering->status, std::move(report));
                if (--gathering->missing > 0)
                    return;
                auto &connections = gathering->status.connections;
                std::sort(connections.begin(), connections.end(),
                          [](const auto &a, const auto &b) { return a.id > b.id; });
                gathering->done(std::move(gathering->status));
            });
        });
    }
}

Result<Service *> Daemon::find_service(const std::string &name) const
{
    auto found = services_.find(name);
    if (found == services_.end())
        return fail(ENOENT, format(_("no service is named \"{}\""), name));
    return found->second.get();
}

Result<void> Daemon::drain(const std::string &service)
{
    return find_service(service).map([](Service *found) { found->drain(); });
}

Result<void> Daemon::resume(const std::string &service)
{
    return find_service(service).map([](Service *found) { found->resume(); });
}

void Daemon::close_connection(uint64_t id, std::function<void(Result<void>)> done)
{
    struct Search {
        size_t missing;
        bool found = false;
        std::function<void(Result<void>)> done;
    };
    auto search = std::make_shared<Search>(Search{workers_.size(), false, std::move(done)});
    for (auto &worker : workers_) {
        worker->post([search, id, main = main_](Worker &one) mutable {
            sluice::post(main, [search, id, found = one.close(id, Closing::admin)] {
                search->found |= found;
                if (--search->missing > 0)
                    return;
                if (search->found)
                    search->done({});
                else
                    search->done(fail(ENOENT, format(_("no connection has the number {}"), id)));
            });
        });
    }
}

} // namespace sluice::proxyd
