// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/check.hpp"

#include <algorithm>
#include <cstddef>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

std::string text_of(const ListenConfig &listen)
{
    if (const auto *passed = std::get_if<PassedSocket>(&listen.at))
        return "systemd:" + passed->name;
    return printable(to_string(std::get<Address>(listen.at)));
}

std::string place_of(const Place &place)
{
    return place.file.empty() ? _("the command line") : fmt::format("{}:{}", printable(place.file), place.line);
}

struct Owned {
    std::string owner; // for messages
    const ListenConfig &listen;
};

std::vector<Owned> all_listens(const Config &config)
{
    std::vector<Owned> list;
    for (const ServiceConfig &service : config.services) {
        for (const ListenConfig &listen : service.listen)
            list.push_back({format(_("service {}"), service.name), listen});
    }
    for (const ListenConfig &listen : config.admin.listen)
        list.push_back({"[admin]", listen});
    return list;
}

void check_addresses(const Config &config, std::vector<Problem> &problems)
{
    std::vector<Owned> listens = all_listens(config);
    for (size_t later = 0; later < listens.size(); ++later) {
        auto same = std::find_if(listens.begin(), listens.begin() + static_cast<ptrdiff_t>(later),
                                 [&](const Owned &earlier) { return earlier.listen.at == listens[later].listen.at; });
        if (same != listens.begin() + static_cast<ptrdiff_t>(later))
            problems.push_back(
                {listens[later].listen.place,
                 format(_("{}: {} is listened on already by {} ({}); each socket has one owner"), listens[later].owner,
                        text_of(listens[later].listen), same->owner, place_of(same->listen.place))});
    }
}

void check_idle(const Config &config, std::vector<Problem> &problems)
{
    if (config.exit_idle_time.count() == 0)
        return;
    for (const ServiceConfig &service : config.services) {
        for (const ListenConfig &listen : service.listen) {
            if (std::holds_alternative<PassedSocket>(listen.at))
                continue;
            problems.push_back(
                {listen.place, format(_("service {}: {} goes away when the exit-idle-time has passed, and nobody would "
                                        "start us again; expected systemd:NAME here, or no exit-idle-time"),
                                      service.name, text_of(listen))});
        }
    }
}

void check_memory(const Config &config, std::vector<Problem> &problems)
{
    for (const ServiceConfig &service : config.services) {
        uint64_t least = 2 * uint64_t{service.limits.buffer_bytes};
        if (service.limits.memory_bytes != 0 && service.limits.memory_bytes < least)
            problems.push_back({service.place, format(_("service {}: limits.memory is {}, expected at least the two "
                                                        "buffers of one connection, {}, or 0 for no limit"),
                                                      service.name, service.limits.memory_bytes, least)});
    }
}

// Uids say nothing there: without a rule about addresses nobody could use it.
void check_admin(const AdminConfig &admin, std::vector<Problem> &problems)
{
    for (const ListenConfig &listen : admin.listen) {
        const auto *address = std::get_if<Address>(&listen.at);
        bool remote =
            address && (std::holds_alternative<TcpAddress>(*address) || std::holds_alternative<VsockAddress>(*address));
        if (remote && admin.access.allow_ranges.empty())
            problems.push_back({listen.place, format(_("[admin]: on {} there are no uids to go by; expected "
                                                       "allow-address to name who may, or a unix socket"),
                                                     text_of(listen))});
    }
}

} // namespace

std::vector<Problem> check_config(const Config &config)
{
    std::vector<Problem> problems;
    if (config.services.empty())
        problems.push_back({{}, _("there is no service; expected at least one [[service]]")});
    check_addresses(config, problems);
    check_idle(config, problems);
    check_memory(config, problems);
    check_admin(config.admin, problems);
    return problems;
}

} // namespace sluice::proxyd
