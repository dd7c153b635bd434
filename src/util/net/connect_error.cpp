// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/connect_error.hpp"

#include <algorithm>
#include <cstring>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

constexpr size_t listed_max = 4;

const char *unix_advice(int code)
{
    switch (code) {
    case ENOENT:
        return _("there is no such socket; start the daemon that listens on it, or check the path");
    case ENOTDIR:
    case ELOOP:
        return _("the path does not lead anywhere; check it");
    case ENOTSOCK:
        return _("the path is there but is no socket; check it");
    case ECONNREFUSED:
        return _("nobody listens on this socket; start its daemon");
    case EACCES:
        return _("connecting takes write permission on the socket and search permission on the folders above; run as "
                 "another user, or join the group of the socket");
    case EPROTOTYPE:
        return _("the socket is there but is not of the stream kind; check the path");
    default:
        return nullptr;
    }
}

const char *network_advice(int code)
{
    switch (code) {
    case ECONNREFUSED:
        return _("nobody listens on this port; start its server, or check the port");
    case ETIMEDOUT:
        return _("no answer; check the address and the firewalls on the way");
    case ENETUNREACH:
    case EHOSTUNREACH:
        return _("no way leads there; check the address and the network");
    case EAFNOSUPPORT:
    case ENODEV:
        return _("this machine has no such network; check the kind of address");
    case EINVAL:
        return _("the address cannot be used so; a link-local one needs its interface, as in [fe80::1%eth0]");
    default:
        return nullptr;
    }
}

const char *advice_on(const Address &address, int code)
{
    if (code == EMFILE || code == ENFILE)
        return _("raise the limit of open files (ulimit -n), or close some");
    if (code == EPERM)
        return _("a security policy or a firewall of this machine forbids it");
    bool network = std::holds_alternative<TcpAddress>(address) || std::holds_alternative<VsockAddress>(address);
    return network ? network_advice(code) : unix_advice(code);
}

std::string quoted(const Address &address)
{
    return printable(to_string(address));
}

} // namespace

Error connect_error(const Address &address, int code)
{
    const char *advice = advice_on(address, code);
    if (advice == nullptr)
        return {code, format(_("cannot connect to {}: {}"), quoted(address), std::strerror(code))};
    return {code, format(_("cannot connect to {}: {}: {}"), quoted(address), std::strerror(code), advice)};
}

Error connect_error(const Address &address, const Error &cause)
{
    return {cause.code, format(_("cannot connect to {}: {}"), quoted(address), cause.message)};
}

Error connect_error(const Address &address, const std::vector<AttemptFailure> &failures,
                    std::chrono::microseconds timeout)
{
    int code = failures.empty() ? EHOSTUNREACH : failures[0].code;
    if (failures.size() <= 1 && code != ETIMEDOUT)
        return connect_error(address, code);
    if (failures.size() <= 1)
        return {code,
                format(_("cannot connect to {}: no answer within {} s; check the address and the firewalls on the "
                         "way"),
                       quoted(address), in_seconds(timeout))};
    std::string list;
    for (size_t i = 0; i < std::min(failures.size(), listed_max); ++i)
        list += (i > 0 ? ", " : "") + failures[i].address + ": " + std::strerror(failures[i].code);
    if (failures.size() > listed_max)
        list += format(_(", and {} more"), failures.size() - listed_max);
    return {code,
            format(_("cannot connect to {}: none of its addresses could be reached ({}); check that its server runs"),
                   quoted(address), list)};
}

Error backlog_error(const Address &address, std::chrono::microseconds timeout)
{
    return {ETIMEDOUT,
            format(_("cannot connect to {}: its daemon is there but did not accept the connection within {} s; "
                     "it is overloaded or hangs"),
                   quoted(address), in_seconds(timeout))};
}

std::string in_seconds(std::chrono::microseconds time)
{
    return fmt::format("{:g}", static_cast<double>(time.count()) / 1e6);
}

} // namespace sluice
