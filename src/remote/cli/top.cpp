// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice top: a live picture of a sluiced, until q or ^C.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include <unistd.h>

#include "remote/cli/admin_client.hpp"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "remote/cli/status_model.hpp"
#include "remote/cli/terminal.hpp"
#include "remote/cli/top_view.hpp"
#include "util/base/signals.hpp"
#include "util/base/units.hpp"
#include "util/glib/owners.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

constexpr std::chrono::microseconds interval_min = std::chrono::milliseconds{100};

class Top {
public:
    Top(Loop loop, AdminClient client, UniqueFd output, Status first, std::chrono::microseconds interval)
        : loop_(std::move(loop)), client_(std::move(client)), now_(std::move(first)),
          terminal_(loop_, std::move(output), [this](std::string_view text) { typed(text); })
    {
        signals_ = take_signals({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT});
        signal_watch_ = loop_.watch(signals_.get(), SLUICE_EVENT_READABLE, [this](int) { signalled(); });
        tick_ = loop_.every(interval, [this] { ask(); });
    }

    // Until it is told to end; the signal that told it so, or 0.
    int run()
    {
        terminal_.enter();
        draw();
        ask();
        while (!ended_)
            loop_.iterate();
        terminal_.leave();
        return *ended_;
    }

private:
    void typed(std::string_view text)
    {
        if (text.empty())
            ended_ = SIGHUP;
        for (char c : text) {
            constexpr char control_c = 3, control_l = 12, control_z = 26;
            if (c == 'q' || c == 'Q' || c == control_c)
                ended_ = 0;
            else if (c == control_z)
                suspend();
            else if (c == control_l)
                draw();
        }
    }

    void signalled()
    {
        while (const int number = next_signal(signals_.get())) {
            if (number == SIGTSTP)
                suspend();
            else if (number == SIGWINCH || number == SIGCONT)
                draw();
            else
                ended_ = number;
        }
    }

    void suspend()
    {
        terminal_.leave();
        raise(SIGSTOP);
        terminal_.enter();
        draw();
    }

    // The next picture; a daemon that is slow is not asked again meanwhile.
    void ask()
    {
        if (std::exchange(asked_, true))
            return;
        client_.request("GET", "/status", [this](Result<std::string> answer) {
            asked_ = false;
            auto status = answer ? parse_status(*answer) : tl::unexpected(answer.error());
            notice_ = status ? "" : status.error().message;
            if (status) {
                before_ = std::exchange(now_, std::move(*status));
            }
            draw();
        });
    }

    void draw() { terminal_.draw(top_view(now_, before_ ? &*before_ : nullptr, notice_, terminal_.size())); }

    Loop loop_;
    AdminClient client_;
    Status now_;
    std::optional<Status> before_;
    std::string notice_;
    bool asked_ = false;
    std::optional<int> ended_;
    Terminal terminal_;
    UniqueFd signals_;
    Handle signal_watch_;
    Timeout tick_;
};

// End as the signal would have ended us.
int die_of(int number)
{
    signal(number, SIG_DFL);
    raise(number);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    return 128 + number;
}

int run_top(Global global, int argc, char **argv)
{
    char *interval_text = nullptr;
    CommandLine line(top_command, global, false);
    line.add(
        {"interval", 0, 0, G_OPTION_ARG_STRING, &interval_text, N_("Look again after TIME (default 1s)"), N_("TIME")});
    auto parsed = line.parse_none(argc, argv);
    const GText interval_owner(interval_text);
    if (!parsed)
        return fail_with(parsed.error());
    auto interval = parse_duration(interval_text ? interval_text : "1s");
    if (!interval || *interval < interval_min)
        return fail_with({EINVAL, format(_("--interval: \"{}\" is not a time of 100ms or more"), interval_text)});

    auto output = Terminal::open_output();
    if (!output)
        return fail_with(
            {EINVAL, format(_("{}: top needs one; \"sluice status\" prints the same once"), output.error().message)});
    Loop loop;
    auto client = AdminClient::make(loop, global.admin);
    if (!client)
        return fail_with(client.error());
    auto answer = client->get("/status");
    if (!answer)
        return fail_with(answer.error());
    auto first = parse_status(*answer);
    if (!first)
        return fail_with(first.error());

    int ended = 0;
    {
        Top top(loop, std::move(*client), std::move(*output), std::move(*first), *interval);
        ended = top.run();
    }
    return ended > 0 ? die_of(ended) : EX_OK;
}

} // namespace

const Command top_command{"top", "", N_("Show services and connections live, the busiest first"), run_top};

} // namespace sluice::cli
