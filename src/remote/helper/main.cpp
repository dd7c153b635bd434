// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice-ssh-helper: join stdin and stdout to the socket of a local daemon. Connects,
// then lets a Pump do the rest, and turns what came of it into an exit status.

#include <fcntl.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "config.h"
#include "remote/helper/exit_status.hpp"
#include "remote/helper/options.hpp"
#include "remote/helper/report.hpp"
#include "remote/relay/pump.hpp"
#include "util/async/task.hpp"
#include "util/base/clock.hpp"
#include "util/base/signals.hpp"
#include "util/glib/i18n.hpp"
#include "util/net/connect.hpp"
#include "util/net/libvirt_uri.hpp"

namespace sluice::helper {
namespace {

// A standard descriptor that the caller closed must not become some other file's
// number. Input then reads as empty; output for reading only, so that bytes for it
// are an error and not lost in silence.
void open_missing_stdio()
{
    for (int fd = 0; fd <= 2; ++fd) {
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY); // the lowest free number is this one
    }
}

Task<Result<UniqueFd>> connect_by(Loop loop, Options options, ConnectOptions connect)
{
    if (options.as_virt_ssh_helper || is_libvirt_uri(options.address)) {
        LibvirtOptions libvirt{.read_only = options.read_only, .read_query = !options.as_virt_ssh_helper};
        auto socket = find_libvirt_socket(options.address, libvirt, LibvirtHost::from_environment());
        if (!socket)
            co_return tl::unexpected(socket.error());
        connect.report("resolved", options.address + " is " + socket->path);
        auto address = parse_address("unix:" + socket->path);
        if (!address)
            co_return tl::unexpected(address.error());
        if (socket->autostart)
            co_return co_await connect_or_start(loop, *address, *socket->autostart, connect);
        co_return co_await connect_to(loop, *address, connect);
    }
    auto address = parse_address(options.address);
    if (!address)
        co_return tl::unexpected(address.error());
    co_return co_await connect_to(loop, *address, connect);
}

// SIGTERM and its like as an event of the loop, so that nothing is left half done;
// remembers which it was.
class Signals {
public:
    explicit Signals(Loop &loop)
    {
        watch_ = loop.watch(fd_.get(), SLUICE_EVENT_READABLE, [this, &loop](int) {
            if (int number = next_signal(fd_.get()))
                caught_ = number;
            loop.quit();
        });
    }

    int caught() const noexcept { return caught_; }

    // End as the signal would have ended us.
    [[noreturn]] static void die_of(int number)
    {
        signal(number, SIG_DFL);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        raise(number);
        sigprocmask(SIG_UNBLOCK, &set, nullptr);
        _exit(128 + number);
    }

private:
    UniqueFd fd_ = take_signals({SIGTERM, SIGINT, SIGHUP});
    Handle watch_;
    int caught_ = 0;
};

std::string describe(const relay::Outcome &outcome, const Options &options)
{
    using Kind = relay::Outcome::Kind;
    const std::string at = outcome.at == options.address ? outcome.at : _(outcome.at.c_str());
    std::string message;
    switch (outcome.kind) {
    case Kind::complete:
        break;
    case Kind::failed:
        message =
            fmt::format(fmt::runtime(outcome.at_source ? _("cannot read from {}: {}") : _("cannot write to {}: {}")),
                        at, std::strerror(outcome.error));
        break;
    case Kind::idle_timeout:
        message = fmt::format(fmt::runtime(_("{}: nothing has moved for the time of --idle-timeout")), options.address);
        break;
    case Kind::fin_timeout:
        message = fmt::format(
            fmt::runtime(_("{}: one direction has ended, and nothing has moved for the time of --fin-timeout")),
            options.address);
        break;
    }
    if (outcome.undelivered > 0)
        message += fmt::format(fmt::runtime(_("; {} bytes were not delivered")), outcome.undelivered);
    return message;
}

relay::PumpConfig pump_config(const Options &options)
{
    relay::PumpConfig config;
    for (relay::LaneConfig *lane : {&config.up, &config.down}) {
        lane->held_max = options.buffer_bytes;
        lane->widen_to = options.buffer_bytes;
    }
    config.idle_timeout = options.idle_timeout;
    config.fin_timeout = options.fin_timeout;
    config.stuck_timeout = options.stuck_timeout;
    return config;
}

void trace(relay::Pump &pump, const Reporter &reporter)
{
    if (!reporter.debugging())
        return;
    pump.on_moment([&](relay::Pump::Moment moment) {
        using Moment = relay::Pump::Moment;
        switch (moment) {
        case Moment::first_byte_up:
            return reporter.debug("first byte", "up");
        case Moment::first_byte_down:
            return reporter.debug("first byte", "down");
        case Moment::end_up:
            return reporter.debug("last byte", fmt::format("up, {} in all", pump.up().bytes()));
        case Moment::end_down:
            return reporter.debug("last byte", fmt::format("down, {} in all", pump.down().bytes()));
        }
    });
}

int relay_through(Loop &loop, UniqueFd socket, const Options &options, Reporter &reporter, const Signals &signals)
{
    using relay::Endpoint;
    auto input = Endpoint::adopt(UniqueFd(STDIN_FILENO), Endpoint::Use::read, N_("standard input"));
    auto output = Endpoint::adopt(UniqueFd(STDOUT_FILENO), Endpoint::Use::write, N_("standard output"));
    auto server = Endpoint::adopt(std::move(socket), Endpoint::Use::both, options.address);
    for (const auto *end : {&input, &output, &server}) {
        if (!*end) {
            reporter.error(end->error().message);
            return EX_IOERR;
        }
    }
    relay::Pump pump(loop, pump_config(options), std::move(*input), std::move(*output), std::move(*server));
    trace(pump, reporter);
    reporter.start_progress(loop, pump);
    std::optional<relay::Outcome> outcome;
    pump.start([&](const relay::Outcome &result) {
        outcome = result;
        loop.quit();
    });
    while (!outcome && !signals.caught())
        loop.run();
    reporter.stop_progress();
    reporter.debug("close");
    reporter.stats(pump, loop.stats().polls);
    if (!outcome)
        return EX_OK;
    if (std::string message = describe(*outcome, options); !message.empty())
        reporter.error(message);
    return exit_status_of(*outcome);
}

int main(int argc, char **argv)
{
    int64_t start = monotonic_usec();
    signal(SIGPIPE, SIG_IGN);
    open_missing_stdio();
    translation_setup = [] {
        setlocale(LC_ALL, "");
        bindtextdomain("sluice", SLUICE_LOCALEDIR);
    };

    auto options = parse_options(argc, argv);
    if (!options) {
        Options nameless;
        Reporter(nameless, start).error(options.error().message);
        return EX_USAGE;
    }
    if (options->show_version) {
        std::printf("%s (sluice) %s\n", program_name(*options), SLUICE_VERSION);
        return EX_OK;
    }
    Reporter reporter(*options, start);

    // three descriptors: one poll a turn is less than an epoll set of its own
    Loop loop(nullptr, SLUICE_BACKEND_GSOURCE);
    Signals signals(loop);
    ConnectOptions connect;
    connect.timeout = options->connect_timeout.count() > 0 ? options->connect_timeout : std::chrono::microseconds{-1};
    if (reporter.debugging())
        connect.on_step = [&](const char *step, const std::string &detail) { reporter.debug(step, detail); };

    auto connecting = connect_by(loop, *options, connect);
    connecting.start();
    while (!connecting.done() && !signals.caught())
        loop.iterate();
    int status = EX_OK;
    if (connecting.done()) {
        auto socket = connecting.take();
        if (!socket) {
            reporter.error(socket.error().message);
            return exit_status_of_connect(socket.error().code);
        }
        status = relay_through(loop, std::move(*socket), *options, reporter, signals);
    }
    if (signals.caught())
        Signals::die_of(signals.caught());
    return status;
}

} // namespace
} // namespace sluice::helper

int main(int argc, char **argv)
{
    return sluice::helper::main(argc, argv);
}
