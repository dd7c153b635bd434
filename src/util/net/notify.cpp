// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/notify.hpp"

#include <algorithm>
#include <cstdlib>

#include <systemd/sd-daemon.h>

#include "util/base/clock.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

constexpr size_t fds_a_message_max = 253; // SCM_MAX_FD

bool has_manager()
{
    const char *socket = getenv("NOTIFY_SOCKET");
    return socket && *socket;
}

Result<void> send(const std::string &state, std::span<const int> fds = {})
{
    if (!has_manager())
        return {};
    int result = sd_pid_notify_with_fds(0, 0, state.c_str(), fds.data(), static_cast<unsigned>(fds.size()));
    if (result < 0)
        return fail_errno(-result, format(_("cannot notify the service manager of '{}'"), printable(state)));
    return {};
}

// A line feed in a status would begin an assignment of its own.
std::string status_line(const std::string &text)
{
    return "STATUS=" + printable(text);
}

Result<void> check_name(const std::string &name)
{
    auto allowed = [](char c) { return c > ' ' && c < 0x7f && c != ':'; };
    if (name.empty() || name.size() > 255 || !std::all_of(name.begin(), name.end(), allowed))
        return fail(EINVAL, format(_("'{}' cannot be the name of stored descriptors"), printable(name)));
    return {};
}

} // namespace

bool Notifier::active() const
{
    return has_manager();
}

Result<void> Notifier::ready(const std::string &status) const
{
    return send("READY=1\n" + status_line(status));
}

Result<void> Notifier::reloading() const
{
    return send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_usec()));
}

Result<void> Notifier::stopping() const
{
    return send("STOPPING=1");
}

Result<void> Notifier::status(const std::string &text) const
{
    return send(status_line(text));
}

std::optional<std::chrono::microseconds> Notifier::watchdog_interval() const
{
    uint64_t usec = 0;
    if (sd_watchdog_enabled(0, &usec) <= 0)
        return std::nullopt;
    return std::chrono::microseconds{usec / 2};
}

Result<void> Notifier::watchdog() const
{
    return send("WATCHDOG=1");
}

Result<void> Notifier::extend_timeout(std::chrono::microseconds by) const
{
    return send("EXTEND_TIMEOUT_USEC=" + std::to_string(by.count()));
}

Result<void> Notifier::store_fds(const std::string &name, std::span<const int> fds) const
{
    if (auto checked = check_name(name); !checked)
        return checked;
    while (!fds.empty()) {
        auto some = fds.first(std::min(fds.size(), fds_a_message_max));
        if (auto sent = send("FDSTORE=1\nFDNAME=" + name, some); !sent)
            return sent;
        fds = fds.subspan(some.size());
    }
    return {};
}

Result<void> Notifier::remove_stored(const std::string &name) const
{
    if (auto checked = check_name(name); !checked)
        return checked;
    return send("FDSTOREREMOVE=1\nFDNAME=" + name);
}

} // namespace sluice
