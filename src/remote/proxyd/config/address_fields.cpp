// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/address_fields.hpp"

#include <algorithm>

#include "util/base/nearest.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr std::string_view passed_prefix = "systemd:";
constexpr size_t passed_name_bytes_max = 255; // as sd_notify(3) has it for FDNAME=

bool is_unix_path(const ListenConfig &listen)
{
    const auto *address = std::get_if<Address>(&listen.at);
    return address && std::holds_alternative<UnixPath>(*address);
}

std::optional<ListenConfig> read_listen_text(const Field &field)
{
    auto text = read_text(field, _("an address, or systemd:NAME for a socket that is passed in"));
    if (!text)
        return std::nullopt;
    auto parsed = parse_listen(*text);
    if (!parsed) {
        field.problem(parsed.error().message);
        return std::nullopt;
    }
    parsed->place = field.value.place;
    return *parsed;
}

std::optional<ListenConfig> read_listen_table(const Field &field, const TomlValue::Table &table)
{
    static const std::vector<std::string> keys{"address", "mode", "user", "group"};
    ListenConfig listen;
    std::optional<ListenConfig> at;
    bool has_address = false;
    const Place *ownership = nullptr; // of the first of mode, user, group
    for (const TomlEntry &entry : table) {
        Field part{field.name + "." + entry.key, entry.value, field.problems};
        if (entry.key == "address") {
            has_address = true;
            at = read_listen_text(part);
            continue;
        }
        if (entry.key == "mode") {
            listen.mode = read_mode(part);
        } else if (entry.key == "user") {
            listen.owner = read_user(part);
        } else if (entry.key == "group") {
            listen.group = read_group(part);
        } else {
            std::string meant = nearest(entry.key, keys);
            std::string message = format(_("unknown key \"{}\"; expected {}"), printable(entry.key), list_words(keys));
            if (!meant.empty())
                message += format(_("; did you mean \"{}\"?"), meant);
            field.problems.push_back({entry.place, field.name + ": " + message});
            continue;
        }
        if (!ownership)
            ownership = &entry.place;
    }
    if (!has_address)
        field.problem(_("the key \"address\" is missing"));
    if (!at)
        return std::nullopt;
    listen.at = at->at;
    listen.place = at->place;
    if (ownership && !is_unix_path(listen)) {
        bool passed = std::holds_alternative<PassedSocket>(listen.at);
        field.problems.push_back(
            {*ownership, field.name + ": " +
                             (passed ? _("mode, user and group of a socket that is passed in are the socket unit's: "
                                         "SocketMode=, SocketUser=, SocketGroup=")
                                     : _("mode, user and group are for sockets in the file system: unix:/PATH"))});
        return std::nullopt;
    }
    return listen;
}

// As many as there are good ones.
template <class T, class Read>
std::vector<T> read_all(const Field &field, Read read)
{
    std::vector<T> list;
    for (const Field &element : field.elements()) {
        if (auto one = read(element))
            list.push_back(*one);
    }
    return list;
}

// No rules would let everybody in, which is not what an empty list looks like.
template <class T, class Read>
std::vector<T> read_rules(const Field &field, Read read)
{
    if (const auto *array = field.value.array(); array && array->empty())
        field.expected(_("at least one; leave the key out where there is no such rule"));
    return read_all<T>(field, read);
}

std::optional<AddressRange> read_range(const Field &field)
{
    auto text = read_text(field, _("a range of addresses, as in \"10.0.0.0/8\" or \"vsock:3\""));
    if (!text)
        return std::nullopt;
    auto range = parse_address_range(*text);
    if (range)
        return *range;
    field.problem(range.error().message);
    return std::nullopt;
}

template <class Id>
void add_found(const Field &field, const Result<Id> &found, std::vector<Id> &into)
{
    if (found)
        into.push_back(*found);
    else
        field.problem(found.error().message);
}

} // namespace

Result<ListenConfig> parse_listen(std::string_view text)
{
    ListenConfig listen;
    if (!text.starts_with(passed_prefix)) {
        auto address = parse_address(text);
        if (!address)
            return tl::unexpected(address.error());
        listen.at = *address;
        return listen;
    }
    std::string_view name = text.substr(passed_prefix.size());
    bool good = name.size() <= passed_name_bytes_max &&
                std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f && c != ':'; });
    if (!good)
        return fail(EINVAL, format(_("bad address '{}': after systemd: comes a FileDescriptorName=, which has up to {} "
                                     "characters of ASCII, no blank and no colon"),
                                   printable(text), passed_name_bytes_max));
    listen.at = PassedSocket{std::string(name)};
    return listen;
}

std::vector<ListenConfig> read_listen(const Field &field)
{
    auto list = read_all<ListenConfig>(field, [](const Field &element) {
        const TomlValue::Table *table = element.value.table();
        return table ? read_listen_table(element, *table) : read_listen_text(element);
    });
    return list;
}

std::vector<Address> read_connect(const Field &field)
{
    if (const auto *array = field.value.array(); array && (array->empty() || array->size() > upstreams_max)) {
        field.expected(format(_("1 to {} addresses"), upstreams_max));
        return {};
    }
    return read_all<Address>(field, [](const Field &element) -> std::optional<Address> {
        auto text = read_text(element, _("an address, as in \"/run/x.sock\" or \"tcp:HOST:PORT\""));
        if (!text)
            return std::nullopt;
        if (text->starts_with(passed_prefix)) {
            element.problem(_("a socket that is passed in is for \"listen\"; expected an address to connect to"));
            return std::nullopt;
        }
        auto address = parse_address(*text);
        if (address)
            return *address;
        element.problem(address.error().message);
        return std::nullopt;
    });
}

std::vector<uid_t> read_users(const Field &field)
{
    return read_rules<uid_t>(field, read_user);
}

std::vector<gid_t> read_groups(const Field &field)
{
    return read_rules<gid_t>(field, read_group);
}

std::vector<AddressRange> read_ranges(const Field &field)
{
    return read_rules<AddressRange>(field, read_range);
}

std::optional<AccessRules> read_trusted_peers(const Field &field)
{
    constexpr std::string_view uid_prefix = "uid:", gid_prefix = "gid:";
    AccessRules rules;
    if (const auto *array = field.value.array(); array && array->empty())
        field.expected(_("at least one; leave the key out where nobody is trusted"));
    for (const Field &element : field.elements()) {
        const std::string *text = element.value.text();
        if (!text) {
            element.expected(_("a range of addresses, uid:USER or gid:GROUP"));
        } else if (text->starts_with(uid_prefix)) {
            add_found(element, find_user(text->substr(uid_prefix.size())), rules.allow_uids);
        } else if (text->starts_with(gid_prefix)) {
            add_found(element, find_group(text->substr(gid_prefix.size())), rules.allow_gids);
        } else if (auto range = read_range(element)) {
            rules.allow_ranges.push_back(*range);
        }
    }
    if (rules.empty())
        return std::nullopt;
    constexpr auto nobody = static_cast<uid_t>(-1); // no peer has it
    if (rules.allow_uids.empty() && rules.allow_gids.empty())
        rules.allow_uids.push_back(nobody);
    if (rules.allow_ranges.empty())
        rules.allow_ranges.push_back(AddressRange{});
    return rules;
}

} // namespace sluice::proxyd
