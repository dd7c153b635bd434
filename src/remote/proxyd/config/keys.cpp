// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/keys.hpp"

#include <algorithm>
#include <bit>

#include "remote/proxyd/config/address_fields.hpp"
#include "remote/proxyd/config/key_table.hpp"
#include "util/base/nearest.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

// what the kernel takes
constexpr std::chrono::seconds keepalive_time_max{32767};
constexpr int keepalive_count_max = 127;
constexpr uint64_t failures_max = 1000;
constexpr size_t name_bytes_max = 64;

void read_buffer(const Field &field, Limits &limits)
{
    auto bytes = read_size(field);
    if (!bytes)
        return;
    if (*bytes < buffer_bytes_min || *bytes > buffer_bytes_max || !std::has_single_bit(*bytes))
        field.expected(_("a power of two from 4K to 1M"));
    else
        limits.buffer_bytes = static_cast<uint32_t>(*bytes);
}

void read_name(const Field &field, ServiceConfig &service)
{
    auto name = read_text(field, _("the name of the service"));
    if (name && is_service_name(*name))
        service.name = *name;
    else if (name)
        field.expected(
            format(_("1 to {} letters, digits, dots, dashes and underscores, with no dot in front"), name_bytes_max));
}

void read_connect_list(const Field &field, ServiceConfig &service)
{
    service.connect = read_connect(field);
}

void read_service_listen(const Field &field, ServiceConfig &service)
{
    if (const auto *array = field.value.array(); array && array->empty())
        field.expected(_("at least one address"));
    service.listen = read_listen(field);
}

const std::vector<Key<Limits>> &limits_keys()
{
    static const std::vector<Key<Limits>> keys{
        {"connections", number(&Limits::connections, 1, connections_max)},
        {"when-full",
         choice(&Limits::when_full,
                std::vector<std::pair<std::string, WhenFull>>{{"wait", WhenFull::wait}, {"refuse", WhenFull::refuse}})},
        {"per-peer", number(&Limits::per_peer, 0, connections_max)},
        {"memory", size(&Limits::memory_bytes)},
        {"buffer-size", read_buffer},
        {"rate-up", size(&Limits::rate_up)},
        {"rate-down", size(&Limits::rate_down)},
        {"connection-rate-up", size(&Limits::connection_rate_up)},
        {"connection-rate-down", size(&Limits::connection_rate_down)},
    };
    return keys;
}

const std::vector<Key<Timeouts>> &timeouts_keys()
{
    static const std::vector<Key<Timeouts>> keys{
        {"connect", bounded_duration(&Timeouts::connect)},
        {"idle", duration(&Timeouts::idle)},
        {"fin", duration(&Timeouts::fin)},
        {"half-closed", duration(&Timeouts::half_closed)},
        {"header", bounded_duration(&Timeouts::header)},
    };
    return keys;
}

const std::vector<Key<Health>> &health_keys()
{
    static const std::vector<Key<Health>> keys{
        {"failures", number(&Health::failures, 1, failures_max)},
        {"retry-after", duration(&Health::retry_after)},
    };
    return keys;
}

const std::vector<Key<Keepalive>> &keepalive_keys()
{
    using std::chrono::seconds;
    static const std::vector<Key<Keepalive>> keys{
        {"on", flag(&Keepalive::on)},
        {"idle", whole_seconds(&Keepalive::idle, seconds{1}, keepalive_time_max)},
        {"interval", whole_seconds(&Keepalive::interval, seconds{1}, keepalive_time_max)},
        {"count", number(&Keepalive::count, 1, keepalive_count_max)},
    };
    return keys;
}

const std::vector<Key<AccessRules>> &access_keys()
{
    static const std::vector<Key<AccessRules>> keys{
        {"allow-uid", list(&AccessRules::allow_uids, read_users)},
        {"deny-uid", list(&AccessRules::deny_uids, read_users)},
        {"allow-gid", list(&AccessRules::allow_gids, read_groups)},
        {"deny-gid", list(&AccessRules::deny_gids, read_groups)},
        {"allow-address", list(&AccessRules::allow_ranges, read_ranges)},
        {"deny-address", list(&AccessRules::deny_ranges, read_ranges)},
    };
    return keys;
}

const std::vector<Key<Config>> &daemon_keys()
{
    static const std::vector<Key<Config>> keys{
        {"workers", number(&Config::workers, 1, workers_max)},
        {"drain-timeout", duration(&Config::drain_timeout)},
        {"exit-idle-time", duration(&Config::exit_idle_time)},
        {"log-level",
         choice(&Config::log_level, std::vector<std::pair<std::string, LogLevel>>{{"error", LogLevel::error},
                                                                                  {"warning", LogLevel::warning},
                                                                                  {"info", LogLevel::info},
                                                                                  {"debug", LogLevel::debug}})},
    };
    return keys;
}

const std::vector<Key<AdminConfig>> &admin_keys()
{
    static const std::vector<Key<AdminConfig>> keys = [] {
        std::vector<Key<AdminConfig>> made{{"listen", list(&AdminConfig::listen, read_listen)}};
        // there are no others to keep them apart from, so they stand in the table itself
        for (const Key<AccessRules> &rule : access_keys())
            made.push_back(
                {rule.name, [&rule](const Field &field, AdminConfig &admin) { rule.read(field, admin.access); }});
        return made;
    }();
    return keys;
}

const std::vector<Key<ServiceConfig>> &service_keys()
{
    static const std::vector<Key<ServiceConfig>> keys{
        {"name", read_name},
        {"listen", read_service_listen},
        {"connect", read_connect_list},
        {"balance", choice(&ServiceConfig::balance,
                           std::vector<std::pair<std::string, Balance>>{{"first", Balance::first},
                                                                        {"round-robin", Balance::round_robin}})},
        {"wait-for-upstream",
         duration([](ServiceConfig & service) -> auto & { return service.timeouts.wait_for_upstream; })},
        {"send-proxy-protocol",
         choice(&ServiceConfig::send_proxy,
                std::vector<std::pair<std::string, ProxyProtocol>>{
                    {"none", ProxyProtocol::none}, {"v1", ProxyProtocol::v1}, {"v2", ProxyProtocol::v2}})},
        {"accept-proxy-protocol-from", list(&ServiceConfig::accept_proxy, read_trusted_peers)},
        {"pass-fds", choice(&ServiceConfig::pass_fds,
                            std::vector<std::pair<std::string, PassFds>>{
                                {"detect", PassFds::detect}, {"refuse", PassFds::refuse}, {"pass", PassFds::pass}})},
        {"splice", flag(&ServiceConfig::splice)},
        {"log-connections",
         choice(&ServiceConfig::log_connections,
                std::vector<std::pair<std::string, LogConnections>>{
                    {"none", LogConnections::none}, {"failed", LogConnections::failed}, {"all", LogConnections::all}})},
        table<ServiceConfig>("limits", &ServiceConfig::limits, limits_keys()),
        table<ServiceConfig>("timeouts", &ServiceConfig::timeouts, timeouts_keys()),
        table<ServiceConfig>("health", &ServiceConfig::health, health_keys()),
        table<ServiceConfig>("keepalive", &ServiceConfig::keepalive, keepalive_keys()),
        table<ServiceConfig>("access", &ServiceConfig::access, access_keys()),
    };
    return keys;
}

template <class T>
void add_names(const std::string &table, const std::vector<Key<T>> &keys, std::vector<std::string> &into)
{
    for (const Key<T> &key : keys) {
        std::string name = table + "." + key.name;
        if (key.inner.empty())
            into.push_back(name);
        for (const std::string &inner : key.inner)
            into.push_back(fmt::format("{}.{}", name, inner));
    }
}

} // namespace

void read_daemon(const Field &field, Config &into)
{
    read_table(field, daemon_keys(), into);
}

void read_admin(const Field &field, AdminConfig &into)
{
    read_table(field, admin_keys(), into);
}

void read_service(const Field &field, ServiceConfig &into)
{
    read_table(field, service_keys(), into);
}

bool is_service_name(const std::string &name)
{
    auto good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    };
    return !name.empty() && name.size() <= name_bytes_max && name[0] != '.' &&
           std::all_of(name.begin(), name.end(), good);
}

std::vector<std::string> known_keys()
{
    std::vector<std::string> names;
    add_names("daemon", daemon_keys(), names);
    add_names("admin", admin_keys(), names);
    add_names("service", service_keys(), names);
    return names;
}

std::string table_title(const std::string &name)
{
    return name == "service" ? "[[service]]" : "[" + name + "]";
}

void unknown_key(const Field &table, const TomlEntry &entry, const std::vector<std::string> &known)
{
    std::string message = format(_("unknown key \"{}\" in {}"), printable(entry.key), table_title(table.name));
    std::string meant = nearest(entry.key, known);
    for (const std::string &path : known_keys()) {
        size_t dot = path.rfind('.');
        if (path.substr(dot + 1) == entry.key) {
            message += format(_("; it belongs in {}"), table_title(path.substr(0, dot)));
            meant.clear();
            break;
        }
    }
    if (!meant.empty())
        message += format(_("; did you mean \"{}\"?"), meant);
    table.problems.push_back({entry.place, std::move(message)});
}

} // namespace sluice::proxyd
