// SPDX-License-Identifier: LGPL-2.1-or-later

// sluiced: reads what it is told, takes the sockets that were passed in, and lets a
// Daemon do the rest on the main loop, with signals and the admin socket beside it.

#include <sysexits.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include <sluice/version.h>

#include "config.h"
#include "remote/proxyd/config/config_file.hpp"
#include "remote/proxyd/config/options.hpp"
#include "remote/proxyd/daemon.hpp"
#include "util/base/signals.hpp"
#include "util/glib/i18n.hpp"
#include "util/net/activation.hpp"
#include "util/net/format.hpp"
#include "util/net/journal.hpp"
#include "util/net/notify.hpp"
#ifdef HAVE_ADMIN
#include "remote/proxyd/admin/admin_server.hpp"
#endif

namespace sluice::proxyd {
namespace {

// Signals as events of the loop. Blocked before any thread is there, so that none gets them.
class Signals {
public:
    void watch(Loop &loop, std::function<void()> stop, std::function<void()> reload)
    {
        watch_ = loop.watch(fd_.get(), SLUICE_EVENT_READABLE,
                            [this, stop = std::move(stop), reload = std::move(reload)](int) {
                                while (int number = next_signal(fd_.get()))
                                    number == SIGHUP ? reload() : stop();
                            });
    }

private:
    UniqueFd fd_ = take_signals({SIGTERM, SIGINT, SIGHUP});
    Handle watch_;
};

int check(const Options &options)
{
    auto config = load_config(options);
    if (!config) {
        for (const Problem &problem : config.error())
            fmt::print(stderr, "{}\n", to_string(problem));
        return EX_CONFIG;
    }
    fmt::print("{}\n", format(_("{}: {} services, no problem found"), options.config_path, config->services.size()));
    return EX_OK;
}

int serve(const Options &options)
{
    Log log;
    auto say_all = [&log](const std::vector<std::string> &errors) {
        for (const std::string &error : errors)
            log.record(Priority::error, message_id::none, error);
    };
    auto config = load_config(options);
    if (!config) {
        for (const Problem &problem : config.error())
            log.record(Priority::error, message_id::none, to_string(problem));
        return options.config_path.empty() ? EX_USAGE : EX_CONFIG;
    }
    Signals signals;
    auto passed = take_passed_sockets();
    if (!passed) {
        say_all({passed.error().message});
        return EX_USAGE;
    }
    if (config->exit_idle_time.count() > 0 && passed->empty()) {
        say_all({_("exiting when idle takes sockets that are passed in: nobody would start us again")});
        return EX_USAGE;
    }
    Loop loop = Loop::default_loop();
    Notifier notifier;
    Daemon daemon(loop, log, notifier, Listeners(std::move(*passed)));
#ifdef HAVE_ADMIN
    std::unique_ptr<AdminServer> admin;
    daemon.set_serve_admin([&](std::vector<Listener> listeners, const AdminConfig &settings) -> Result<void> {
        admin.reset();
        if (!listeners.empty())
            admin = std::make_unique<AdminServer>(
                loop, std::move(listeners), [rules = settings.access](const Peer &peer) { return rules.names(peer); },
                daemon);
        return {};
    });
#endif
    if (auto started = daemon.start(std::move(*config)); !started) {
        say_all(started.error());
        return EX_UNAVAILABLE;
    }
    signals.watch(
        loop, [&] { daemon.stop(); }, [&] { daemon.reload([&] { return load_config(options); }); });
    while (!daemon.over())
        loop.run();
    return EX_OK;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    translation_setup = [] {
        setlocale(LC_ALL, "");
        bindtextdomain("sluice", SLUICE_LOCALEDIR);
    };
    auto options = parse_options(argc, argv);
    if (!options) {
        fmt::print(stderr, "sluiced: {}\n", options.error().message);
        return EX_USAGE;
    }
    if (options->show_version) {
        fmt::print("sluiced (sluice) {}\n", SLUICE_VERSION);
        return EX_OK;
    }
    return options->check ? check(*options) : serve(*options);
}

} // namespace
} // namespace sluice::proxyd

int main(int argc, char **argv)
{
    return sluice::proxyd::main(argc, argv);
}
