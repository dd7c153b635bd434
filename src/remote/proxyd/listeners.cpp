// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/listeners.hpp"

#include <algorithm>
#include <cstdint>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr std::string_view stored_prefix = "sluice-own-";

// A name for the manager's store, which allows neither colons nor much length: FNV-1a
// of the address.
std::string stored_name(const Address &address)
{
    uint64_t hash = 14695981039346656037u;
    for (unsigned char c : to_string(address))
        hash = (hash ^ c) * 1099511628211u;
    return fmt::format("{}{:016x}", stored_prefix, hash);
}

std::string title(const std::string &owner)
{
    return owner == Listeners::admin ? std::string("admin") : format(_("service {}"), owner);
}

} // namespace

Listeners::Listeners(std::vector<PassedFd> passed)
{
    for (PassedFd &one : passed) {
        auto listener = Listener::adopt(std::move(one.fd));
        if (!listener) {
            broken_.push_back(format(_("passed socket \"{}\": {}"), printable(one.name), listener.error().message));
            continue;
        }
        Passed &kept = passed_.emplace_back();
        kept.name = one.name;
        kept.stored = one.name.starts_with(stored_prefix);
        kept.address = to_string(listener->addresses().front());
        kept.listener = std::make_shared<Listener>(std::move(*listener));
    }
}

tl::expected<Listeners::Set, std::vector<std::string>> Listeners::open(const Config &config, const Set &current)
{
    std::vector<std::string> errors = broken_;
    Set set;
    auto open_all = [&](const std::string &owner, const std::vector<ListenConfig> &wanted) {
        Bindings &into = set[owner];
        for (const ListenConfig &one : wanted) {
            if (std::holds_alternative<PassedSocket>(one.at))
                open_passed(owner, one, config, into, errors);
            else
                open_own(owner, one, current, into, errors);
        }
    };
    for (const ServiceConfig &service : config.services)
        open_all(service.name, service.listen);
    open_all(admin, config.admin.listen);
    if (!errors.empty())
        return tl::unexpected(std::move(errors));
    return set;
}

void Listeners::open_passed(const std::string &owner, const ListenConfig &config, const Config &whole, Bindings &into,
                            std::vector<std::string> &errors)
{
    const std::string &name = std::get<PassedSocket>(config.at).name;
    auto is_named_elsewhere = [&](const std::string &candidate) {
        auto names_it = [&](const ListenConfig &other) {
            const auto *passed = std::get_if<PassedSocket>(&other.at);
            return passed && passed->name == candidate;
        };
        return std::any_of(whole.services.begin(), whole.services.end(),
                           [&](const ServiceConfig &service) {
                               return std::any_of(service.listen.begin(), service.listen.end(), names_it);
                           }) ||
               std::any_of(whole.admin.listen.begin(), whole.admin.listen.end(), names_it);
    };
    size_t before = into.size();
    for (const Passed &one : passed_) {
        bool wanted = name.empty() ? !is_named_elsewhere(one.name) : one.name == name;
        if (!one.stored && wanted)
            into.push_back({config, one.listener, true, ""});
    }
    if (into.size() > before)
        return;
    std::string there;
    for (const Passed &one : passed_) {
        if (!one.stored)
            there += (there.empty() ? "" : ", ") + printable(one.name);
    }
    if (there.empty())
        errors.push_back(format(_("{}: no socket was passed in: start it by its socket unit or "
                                  "systemd-socket-activate, or say where to listen"),
                                title(owner)));
    else
        errors.push_back(format(_("{}: no socket named \"{}\" was passed in, there are: {}; see FileDescriptorName="),
                                title(owner), printable(name), there));
}

void Listeners::open_own(const std::string &owner, const ListenConfig &config, const Set &current, Bindings &into,
                         std::vector<std::string> &errors)
{
    const Address &address = std::get<Address>(config.at);
    ListenOptions options;
    options.mode = config.mode;
    options.owner = config.owner;
    options.group = config.group;
    for (const auto &[name, bindings] : current) {
        for (const Binding &binding : bindings) {
            if (binding.config.at != config.at)
                continue;
            auto changed =
                binding.config == config ? Result<void>{} : binding.listener->set_ownership(address, options);
            if (!changed)
                errors.push_back(title(owner) + ": " + changed.error().message);
            into.push_back({config, binding.listener, binding.passed, binding.stored_as});
            return;
        }
    }
    std::string stored_as = stored_name(address);
    for (const Passed &one : passed_) {
        // an old one whose path was given to another meanwhile must not be taken for it
        if (one.name == stored_as && one.listener.use_count() == 1) {
            into.push_back({config, one.listener, false, stored_as});
            return;
        }
    }
    auto listener = listen_on(address, options);
    if (listener)
        into.push_back({config, std::make_shared<Listener>(std::move(*listener)), false, stored_as});
    else
        errors.push_back(title(owner) + ": " + listener.error().message);
}

std::vector<std::string> Listeners::unused(const Set &set) const
{
    std::vector<std::string> names;
    for (const Passed &one : passed_) {
        bool used = false;
        for (const auto &[owner, bindings] : set) {
            for (const Binding &binding : bindings)
                used |= binding.listener == one.listener;
        }
        if (!used)
            names.push_back(printable(one.name) + " (" + one.address + ")");
    }
    return names;
}

} // namespace sluice::proxyd
