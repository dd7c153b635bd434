// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/daemon.hpp"

#include <algorithm>

#include <glib.h>

#include "util/async/post.hpp"
#include "util/base/clock.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {

namespace {

using std::chrono::microseconds;

constexpr microseconds parked{-1};
constexpr std::chrono::seconds status_interval{2};
constexpr std::chrono::seconds log_interval{10};

Priority priority_of(LogLevel level)
{
    switch (level) {
    case LogLevel::error:
        return Priority::error;
    case LogLevel::warning:
        return Priority::warning;
    case LogLevel::debug:
        return Priority::debug;
    case LogLevel::info:
        break;
    }
    return Priority::info;
}

} // namespace

Daemon::Daemon(Loop main, Log &log, Notifier &notifier, Listeners listeners)
    : main_(std::move(main)), log_(log), notifier_(notifier), listeners_(std::move(listeners)), shared_(log),
      started_usec_(monotonic_usec()), started_at_(static_cast<double>(g_get_real_time()) / 1e6)
{
    log_timer_ = main_.every(log_interval, [this] { log_.tick(); });
    idle_timer_ = main_.every(parked, [this] { check_idle(); });
    drain_timer_ = main_.every(parked, [this] { cut(); });
    shared_.on_drained = [loop = main_, alive = std::weak_ptr<int>(alive_), this]() mutable {
        post(loop, [alive, this] {
            if (alive.lock())
                check_drained();
        });
    };
}

Daemon::~Daemon()
{
    alive_.reset();
    // connections that end now make room, and there is nobody left to be told of it
    for (const auto &[name, service] : services_)
        service->set_on_room({});
    for (const auto &service : retired_)
        service->set_on_room({});
    workers_.clear();
}

tl::expected<void, std::vector<std::string>> Daemon::start(Config config)
{
    auto applied = apply(std::move(config));
    if (!applied)
        return applied;
    running_ = true;
    for (const std::string &name : listeners_.unused(bindings_))
        log_.record(Priority::warning, message_id::started, format(_("passed socket {} is used by no service"), name));
    if (auto watchdog = notifier_.watchdog_interval())
        watchdog_ = main_.every(*watchdog, [this] { beat(); });
    if (notifier_.active())
        status_timer_ = main_.every(status_interval, [this] { tell_status(); });
    status_told_ = status_line();
    notifier_.ready(status_told_);
    log_.record(Priority::info, message_id::ready,
                format(_("ready: {} services, {} workers, {} of {} files for connections"), services_.size(),
                       config_.workers, files_.connections, files_.limit));
    return {};
}

// Nothing of what runs is touched before all that can fail has been done.
tl::expected<void, std::vector<std::string>> Daemon::apply(Config config)
{
    if (running_ && config.workers != config_.workers) {
        log_.record(Priority::warning, message_id::reloaded,
                    format(_("workers = {} takes a restart; there stay {}"), config.workers, config_.workers));
        config.workers = config_.workers;
    }
    auto bindings = listeners_.open(config, bindings_);
    if (!bindings)
        return tl::unexpected(std::move(bindings.error()));
    uint64_t sockets = 0;
    for (const auto &[owner, list] : *bindings) {
        for (const Binding &binding : list)
            sockets += binding.listener->fds().size();
    }
    auto files = plan_files(config, sockets, raise_file_limit());
    if (!files)
        return tl::unexpected(std::vector{files.error().message});
    auto copies = copy_for_workers(*bindings, config.workers);
    if (!copies)
        return tl::unexpected(std::vector{copies.error().message});
    std::vector<Listener> admin;
    for (const Binding &binding : (*bindings)[Listeners::admin]) {
        auto copy = binding.listener->share();
        if (!copy)
            return tl::unexpected(std::vector{copy.error().message});
        admin.push_back(std::move(*copy));
    }
    if (serve_admin_) {
        auto served = serve_admin_(std::move(admin), config.admin);
        if (!served)
            return tl::unexpected(std::vector{served.error().message});
    }

    std::map<std::string, std::shared_ptr<Service>> services;
    for (ServiceConfig &one : config.services) {
        auto known = services_.find(one.name);
        if (known == services_.end()) {
            services[one.name] = std::make_shared<Service>(one);
            watch_room(*services[one.name]);
        } else {
            known->second->reconfigure(one);
            services[one.name] = known->second;
            services_.erase(known);
        }
    }
    for (auto &[name, service] : services_)
        retired_.push_back(service);
    services_ = std::move(services);

    for (const auto &[owner, list] : bindings_) {
        for (const Binding &old : list) {
            auto is_old = [&](const Binding &now) { return now.listener == old.listener; };
            bool kept = std::any_of(bindings->begin(), bindings->end(), [&](const auto &entry) {
                return std::any_of(entry.second.begin(), entry.second.end(), is_old);
            });
            if (!kept && !old.stored_as.empty())
                notifier_.remove_stored(old.stored_as);
        }
    }
    bindings_ = std::move(*bindings);
    files_ = *files;
    config_ = std::move(config);
    log_.set_level(priority_of(config_.log_level));
    if (notifier_.active()) {
        for (const auto &[owner, list] : bindings_) {
            for (const Binding &one : list) {
                std::vector<int> fds;
                for (const UniqueFd &fd : one.listener->fds())
                    fds.push_back(fd.get());
                if (!one.stored_as.empty())
                    (void)notifier_.store_fds(one.stored_as, fds); // a manager that keeps none is no failure
            }
        }
    }
    if (workers_.empty())
        make_workers();
    serve_all(std::move(*copies));
    idle_timer_.update(config_.exit_idle_time.count() > 0 ? config_.exit_idle_time : parked);
    return {};
}

void Daemon::make_workers()
{
    size_t pipes = files_.pipes / config_.workers;
    for (unsigned i = 0; i < config_.workers; ++i)
        workers_.push_back(std::make_unique<WorkerThread>(main_, i, config_.workers, shared_, pipes));
}

Result<std::vector<Daemon::Copies>> Daemon::copy_for_workers(const Listeners::Set &bindings, unsigned workers)
{
    std::vector<Copies> copies(workers);
    for (Copies &one : copies) {
        for (const auto &[owner, list] : bindings) {
            if (owner == Listeners::admin)
                continue; // the main loop's
            for (const Binding &binding : list) {
                auto copy = binding.listener->share();
                if (!copy)
                    return tl::unexpected(copy.error());
                one[owner].push_back(std::move(*copy));
            }
        }
    }
    return copies;
}

void Daemon::serve_all(std::vector<Copies> copies)
{
    size_t next = 0;
    on_every_worker([&](Worker &worker) {
        Copies &own = copies[next++];
        worker.forget_services();
        for (const auto &[name, service] : services_) {
            for (Listener &listener : own[name])
                worker.serve(service, std::move(listener));
        }
    });
}

void Daemon::on_every_worker(const std::function<void(Worker &)> &call)
{
    for (auto &worker : workers_)
        worker->call(call);
}

void Daemon::watch_room(Service &service)
{
    service.set_on_room([this, name = service.name()] {
        for (auto &worker : workers_)
            worker->post([name](Worker &one) { one.release(name); });
    });
}

void Daemon::reload(const Load &load)
{
    if (draining_)
        return;
    notifier_.reloading();
    auto config = load();
    std::vector<std::string> errors;
    if (!config) {
        for (const Problem &problem : config.error())
            errors.push_back(to_string(problem));
    } else if (auto applied = apply(std::move(*config)); !applied) {
        errors = std::move(applied.error());
    }
    if (errors.empty()) {
        ++reloads_;
        log_.record(Priority::info, message_id::reloaded, format(_("reloaded: {} services"), services_.size()));
    } else {
        ++reloads_failed_;
        last_reload_error_ = errors.front();
        for (const std::string &error : errors)
            log_.record(Priority::error, message_id::reload_failed, error);
        log_.record(Priority::error, message_id::reload_failed,
                    _("not reloaded: everything runs on as it was configured before"));
    }
    status_told_ = status_line();
    notifier_.ready(status_told_);
}

// --- the end ------------------------------------------------------------------------

void Daemon::stop()
{
    if (draining_) {
        cut();
        return;
    }
    draining_ = true;
    shared_.draining = true;
    notifier_.stopping();
    idle_timer_.park();
    on_every_worker([](Worker &worker) { worker.forget_services(); });
    // who connects from here on waits in the socket that the manager holds, or is refused
    for (auto &[owner, list] : bindings_) {
        for (Binding &one : list) {
            if (notifier_.active() && !one.stored_as.empty())
                one.listener->keep_path();
        }
        if (owner != Listeners::admin)
            list.clear();
    }
    uint64_t left = active();
    log_.record(Priority::info, message_id::stopping,
                format(_("stopping: {} connections have up to {} s to end"), left,
                       static_cast<double>(config_.drain_timeout.count()) / 1e6));
    if (left == 0) {
        end();
        return;
    }
    notifier_.extend_timeout(config_.drain_timeout + std::chrono::seconds{5});
    if (config_.drain_timeout.count() == 0)
        cut();
    else
        drain_timer_.update(config_.drain_timeout);
}

void Daemon::check_drained()
{
    if (draining_ && !over_ && active() == 0)
        end();
}

void Daemon::cut()
{
    if (over_)
        return;
    uint64_t left = active();
    if (left > 0)
        log_.record(Priority::warning, message_id::drain_cut, format(_("{} connections are cut"), left));
    on_every_worker([](Worker &worker) { worker.close_all(Closing::cut); });
    end();
}

void Daemon::end()
{
    over_ = true;
    main_.quit();
}

// Without work for long enough: stop accepting, look once more, and go. A client that
// comes now waits in the socket that the manager holds, and is served by the next process.
void Daemon::check_idle()
{
    int64_t quiet = monotonic_usec() - std::max(shared_.last_end_usec.load(), started_usec_);
    if (active() > 0 || quiet < config_.exit_idle_time.count()) {
        int64_t left = active() > 0 ? config_.exit_idle_time.count() : config_.exit_idle_time.count() - quiet;
        idle_timer_.update(microseconds{std::max<int64_t>(left, 1000)});
        return;
    }
    on_every_worker([](Worker &worker) { worker.hold_all(); });
    if (active() > 0) {
        on_every_worker([](Worker &worker) { worker.release_all(); });
        idle_timer_.update(config_.exit_idle_time);
        return;
    }
    log_.record(Priority::info, message_id::stopping,
                format(_("exiting: idle for {} s"), static_cast<double>(quiet) / 1e6));
    draining_ = true;
    notifier_.stopping();
    end();
}

uint64_t Daemon::active() const
{
    uint64_t sum = 0;
    for (const auto &[name, service] : services_)
        sum += service->active();
    for (const auto &service : retired_)
        sum += service->active();
    return sum;
}

// --- what the manager hears -----------------------------------------------------------

// Every worker must have answered since the last time; else systemd finds out.
void Daemon::beat()
{
    bool all = std::all_of(workers_.begin(), workers_.end(), [](auto &worker) { return worker->answered(); });
    if (all)
        notifier_.watchdog();
    for (auto &worker : workers_)
        worker->ask();
}

std::string Daemon::status_line() const
{
    uint64_t limit = 0, refused = 0, sum = active();
    for (const auto &[name, service] : services_) {
        ServiceStatus status = service->status();
        limit += status.limit;
        for (const Tally &one : status.rejected)
            refused += one.count;
    }
    return fmt::format("{}/{} connections, {} refused{}", sum, limit, refused, draining_ ? ", draining" : "");
}

void Daemon::tell_status()
{
    std::erase_if(retired_, [](const auto &service) { return service->active() == 0; });
    std::string line = status_line();
    if (line != status_told_)
        notifier_.status(status_told_ = line);
}

} // namespace sluice::proxyd
