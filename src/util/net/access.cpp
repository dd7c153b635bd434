// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/access.hpp"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>

#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

constexpr uint8_t mapped_head[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

tl::unexpected<Error> bad(std::string_view text, const std::string &fault)
{
    return fail(EINVAL, format(_("bad address range '{}': {}"), printable(text), fault));
}

unsigned bits_of(int family)
{
    return family == AF_INET6 ? 128 : 32;
}

AddressRange cid_range(uint32_t cid)
{
    AddressRange range{AF_VSOCK, {}, 32};
    cid = htonl(cid);
    std::memcpy(range.address.data(), &cid, sizeof cid);
    return range;
}

// An IPv4 range in IPv6 clothes, undressed.
void unmap(AddressRange &range)
{
    if (range.family != AF_INET6 || range.prefix < 96 || std::memcmp(range.address.data(), mapped_head, 12) != 0)
        return;
    AddressRange plain{AF_INET, {}, range.prefix - 96};
    std::copy_n(range.address.begin() + 12, 4, plain.address.begin());
    range = plain;
}

// The peer's address as the range that holds it alone; AF_UNSPEC for one that has no ranges.
AddressRange range_of(const SocketAddress &peer) noexcept
{
    AddressRange range;
    if (peer.family() == AF_INET && peer.size >= sizeof(sockaddr_in)) {
        sockaddr_in at;
        std::memcpy(&at, &peer.storage, sizeof at);
        range = {AF_INET, {}, 32};
        std::memcpy(range.address.data(), &at.sin_addr, 4);
    } else if (peer.family() == AF_INET6 && peer.size >= sizeof(sockaddr_in6)) {
        sockaddr_in6 at;
        std::memcpy(&at, &peer.storage, sizeof at);
        range = {AF_INET6, {}, 128};
        std::memcpy(range.address.data(), &at.sin6_addr, 16);
        unmap(range);
    } else if (peer.family() == AF_VSOCK && peer.size >= sizeof(sockaddr_vm)) {
        sockaddr_vm at;
        std::memcpy(&at, &peer.storage, sizeof at);
        range = cid_range(at.svm_cid);
    }
    return range;
}

bool same_bits(const AddressRange &range, const std::array<uint8_t, 16> &address) noexcept
{
    unsigned bytes = range.prefix / 8, rest = range.prefix % 8;
    if (!std::equal(address.begin(), address.begin() + bytes, range.address.begin()))
        return false;
    return rest == 0 || ((address[bytes] ^ range.address[bytes]) >> (8 - rest)) == 0;
}

void clear_behind_prefix(AddressRange &range)
{
    for (unsigned bit = range.prefix; bit < bits_of(range.family); ++bit)
        range.address[bit / 8] &= static_cast<uint8_t>(~(0x80u >> bit % 8));
}

Result<AddressRange> parse_cid(std::string_view text, std::string_view cid)
{
    if (cid == "any")
        return AddressRange{AF_VSOCK, {}, 0};
    // the names of CIDs are known there
    auto address = cid.find(':') == std::string_view::npos ? parse_address(std::string(text) + ":0")
                                                           : Result<Address>(fail(EINVAL, {}));
    if (!address)
        return bad(text, format(_("'{}' is no CID; write a number, hypervisor, local, host or any"), printable(cid)));
    return cid_range(std::get<VsockAddress>(*address).cid);
}

template <class Id>
bool holds(const std::vector<Id> &list, Id id) noexcept
{
    return std::find(list.begin(), list.end(), id) != list.end();
}

bool holds_group_of(const std::vector<gid_t> &list, const Peer &peer) noexcept
{
    return holds(list, peer.credentials->gid) ||
           std::any_of(peer.groups.begin(), peer.groups.end(), [&](gid_t gid) { return holds(list, gid); });
}

bool contains(const std::vector<AddressRange> &ranges, const SocketAddress &peer) noexcept
{
    return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange &range) { return range.contains(peer); });
}

} // namespace

bool AddressRange::contains(const SocketAddress &peer) const noexcept
{
    AddressRange single = range_of(peer);
    return single.family != AF_UNSPEC && single.family == family && same_bits(*this, single.address);
}

Result<AddressRange> parse_address_range(std::string_view text)
{
    if (text.starts_with("vsock:"))
        return parse_cid(text, text.substr(6));
    size_t slash = text.find('/');
    std::string host(text.substr(0, slash));
    AddressRange range;
    // a NUL would end the text early
    if (host.find('\0') == std::string::npos) {
        if (inet_pton(AF_INET, host.c_str(), range.address.data()) == 1)
            range.family = AF_INET;
        else if (inet_pton(AF_INET6, host.c_str(), range.address.data()) == 1)
            range.family = AF_INET6;
    }
    if (range.family == AF_UNSPEC)
        return bad(text, _("write an address in numbers, with or without the length of a prefix, as in 10.0.0.0/8 or "
                           "fe80::/10, or vsock:CID"));
    unsigned bits = bits_of(range.family);
    range.prefix = bits;
    if (slash != std::string_view::npos) {
        auto prefix = parse_number<unsigned>(text.substr(slash + 1), 0, bits);
        if (!prefix)
            return bad(text, format(_("'{}' is no length of a prefix; write a number up to {}"),
                                    printable(text.substr(slash + 1)), bits));
        range.prefix = *prefix;
    }
    AddressRange clean = range;
    clear_behind_prefix(clean);
    if (clean != range)
        return bad(text,
                   format(_("there are bits behind the prefix; write {} for the range, or {} for the one address"),
                          to_string(clean), printable(host)));
    unmap(range);
    return range;
}

std::string to_string(const AddressRange &range)
{
    if (range.family == AF_VSOCK) {
        uint32_t cid;
        std::memcpy(&cid, range.address.data(), sizeof cid);
        return range.prefix == 0 ? "vsock:any" : "vsock:" + std::to_string(ntohl(cid));
    }
    char host[INET6_ADDRSTRLEN];
    if (!inet_ntop(range.family, range.address.data(), host, sizeof host))
        return "?";
    return range.prefix == bits_of(range.family) ? host : std::string(host) + "/" + std::to_string(range.prefix);
}

Peer peer_of(int fd, const SocketAddress &address)
{
    Peer peer{address.size >= sizeof(sa_family_t) ? address : peer_address(fd), {}, {}};
    ucred credentials;
    socklen_t size = sizeof credentials;
    if (peer.is_unix() && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
        credentials.uid != static_cast<uid_t>(-1))
        peer.credentials = credentials;
    return peer;
}

Result<void> load_groups(int fd, Peer &peer)
{
    if (!peer.is_unix())
        return {};
    std::vector<gid_t> groups(32);
    for (;;) {
        auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
        int code = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0 ? 0 : errno;
        // the kernel says how many there are
        bool grow = code == ERANGE && bytes / sizeof(gid_t) > groups.size();
        if (code != 0 && !grow)
            return fail_errno(code, _("cannot read the groups of a client"));
        groups.resize(bytes / sizeof(gid_t));
        if (code == 0)
            break;
    }
    peer.groups = std::move(groups);
    return {};
}

std::string describe(const Peer &peer)
{
    if (!peer.is_unix() || !peer.credentials)
        return to_string(peer.address);
    std::string text = "uid " + std::to_string(peer.credentials->uid);
    if (peer.credentials->pid > 0)
        text += " pid " + std::to_string(peer.credentials->pid);
    return text;
}

std::string peer_key(const Peer &peer)
{
    if (peer.is_unix())
        return peer.credentials ? "uid " + std::to_string(peer.credentials->uid) : "unix";
    AddressRange single = range_of(peer.address);
    return single.family == AF_UNSPEC ? "?" : to_string(single);
}

bool AccessRules::empty() const noexcept
{
    return *this == AccessRules{};
}

bool AccessRules::needs_groups() const noexcept
{
    return !allow_gids.empty() || !deny_gids.empty();
}

bool AccessRules::names(const Peer &peer) const noexcept
{
    bool has_rule = peer.is_unix() ? !allow_uids.empty() || !allow_gids.empty() : !allow_ranges.empty();
    return has_rule && permits(peer);
}

bool AccessRules::permits(const Peer &peer) const noexcept
{
    if (peer.address.family() == AF_UNSPEC)
        return empty();
    if (!peer.is_unix()) {
        if (contains(deny_ranges, peer.address))
            return false;
        return allow_ranges.empty() || contains(allow_ranges, peer.address);
    }
    bool allow_any = allow_uids.empty() && allow_gids.empty();
    if (!peer.credentials)
        return allow_any && deny_uids.empty() && deny_gids.empty();
    if (holds(deny_uids, peer.credentials->uid) || holds_group_of(deny_gids, peer))
        return false;
    return allow_any || holds(allow_uids, peer.credentials->uid) || holds_group_of(allow_gids, peer);
}

} // namespace sluice
