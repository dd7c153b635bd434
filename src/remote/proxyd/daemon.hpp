// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The daemon: services, the workers that serve them, and what happens to them as a
// whole: reload, drain, exit when idle, what the manager is told. Lives on the main
// loop and is used there alone; what the workers tell it comes by post().

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sluice/event.hpp>

#include "remote/proxyd/admin/status.hpp"
#include "remote/proxyd/config/config_file.hpp"
#include "remote/proxyd/file_limit.hpp"
#include "remote/proxyd/listeners.hpp"
#include "remote/proxyd/service.hpp"
#include "remote/proxyd/shared.hpp"
#include "remote/proxyd/worker.hpp"
#include "util/net/journal.hpp"
#include "util/net/notify.hpp"

namespace sluice::proxyd {

class Daemon final : public Control {
public:
    using Load = std::function<tl::expected<Config, std::vector<Problem>>()>;
    // Called with the admin sockets whenever they have changed; empty where there are none.
    using ServeAdmin = std::function<Result<void>(std::vector<Listener>, const AdminConfig &)>;

    Daemon(Loop main, Log &log, Notifier &notifier, Listeners listeners);
    ~Daemon() override;
    Daemon(const Daemon &) = delete;
    Daemon &operator=(const Daemon &) = delete;

    void set_serve_admin(ServeAdmin serve) { serve_admin_ = std::move(serve); }
    // Everything wrong, or it serves.
    tl::expected<void, std::vector<std::string>> start(Config config);
    // Read the configuration again: all of it takes effect, or nothing does.
    void reload(const Load &load);
    // Take no more clients; end when those there are have gone or the drain timeout has
    // passed. The second call cuts.
    void stop();
    bool over() const noexcept { return over_; }

    void snapshot(bool with_connections, std::function<void(DaemonStatus)> done) override;
    Result<void> drain(const std::string &service) override;
    Result<void> resume(const std::string &service) override;
    void close_connection(uint64_t id, std::function<void(Result<void>)> done) override;

private:
    tl::expected<void, std::vector<std::string>> apply(Config config);
    void make_workers();
    // The sockets of each service, for one worker.
    using Copies = std::map<std::string, std::vector<Listener>>;
    static Result<std::vector<Copies>> copy_for_workers(const Listeners::Set &bindings, unsigned workers);
    void serve_all(std::vector<Copies> copies);
    void on_every_worker(const std::function<void(Worker &)> &call);
    void watch_room(Service &service);
    Result<Service *> find_service(const std::string &name) const;
    uint64_t active() const;
    void end();
    void check_idle();
    void check_drained();
    void cut();
    void beat();
    void tell_status();
    std::string status_line() const;
    DaemonStatus own_status() const;

    Loop main_;
    Log &log_;
    Notifier &notifier_;
    Listeners listeners_;
    ServeAdmin serve_admin_;

    Shared shared_;
    Config config_;
    FileBudget files_;
    Listeners::Set bindings_;
    std::map<std::string, std::shared_ptr<Service>> services_;
    std::vector<std::shared_ptr<Service>> retired_; // gone from the configuration, with connections left
    std::vector<std::unique_ptr<WorkerThread>> workers_;

    const int64_t started_usec_;
    const double started_at_; // by the calendar, in seconds since 1970
    bool running_ = false, draining_ = false, over_ = false;
    uint64_t reloads_ = 0, reloads_failed_ = 0;
    std::string last_reload_error_, status_told_;
    Timeout idle_timer_, drain_timer_, watchdog_, status_timer_, log_timer_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0); // what was posted looks whether we still are
};

} // namespace sluice::proxyd
