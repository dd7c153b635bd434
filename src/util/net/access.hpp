// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Who a client is, and whether it may come in. A unix client is judged by the uid and
// the groups that the kernel vouches for, every other by its address. What the rules
// mean is said once, at AccessRules::permits().

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

#include "util/base/result.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

// Addresses that begin with the same bits. An IPv4 address that comes as an IPv6 one
// (::ffff:10.0.0.1, as dual-stack sockets show it) is an IPv4 address in all of this
// file: IPv4 ranges match it, IPv6 ranges do not. Scopes are left out of account.
struct AddressRange {
    int family = AF_UNSPEC;            // AF_INET, AF_INET6 or AF_VSOCK
    std::array<uint8_t, 16> address{}; // network order: 4 bytes, 16 bytes, or 4 of a CID
    unsigned prefix = 0;               // bits; a CID is 32, or 0 for any

    bool contains(const SocketAddress &peer) const noexcept;
    bool operator==(const AddressRange &) const = default;
};

// 10.0.0.0/8, 192.0.2.7, fe80::/10, ::1, vsock:3, vsock:any. Bits behind the prefix must
// be 0, so that a slip (10.1.2.3/8) is not taken for something wider. Code: EINVAL.
Result<AddressRange> parse_address_range(std::string_view text);

// The form that parse_address_range() takes.
std::string to_string(const AddressRange &range);

// Who is at the other end.
struct Peer {
    SocketAddress address;
    std::optional<ucred> credentials; // of a unix peer, as it was when it connected
    std::vector<gid_t> groups;        // supplementary ones; only after load_groups()

    // Judged by uid and gid rather than by its address.
    bool is_unix() const noexcept { return address.family() == AF_UNIX; }
};

// `address` as accept() gave it; an empty one is asked for. The credentials stay empty
// where the kernel does not tell them.
Peer peer_of(int fd, const SocketAddress &address);

// Fills in `groups`; does nothing for a peer that is not unix. On failure the rules about
// groups cannot be judged, and the peer should be turned away.
Result<void> load_groups(int fd, Peer &peer);

// "uid 1000 pid 4711" (without a pid where it is in another pid namespace), "[::1]:5432",
// "vsock:3:1024".
std::string describe(const Peer &peer);

// What all connections of one peer have in common, for counting them: "uid 1000",
// "10.0.0.1", "vsock:3".
std::string peer_key(const Peer &peer);

struct AccessRules {
    std::vector<uid_t> allow_uids, deny_uids;
    std::vector<gid_t> allow_gids, deny_gids;
    std::vector<AddressRange> allow_ranges, deny_ranges;

    // No rule at all: whoever can connect may.
    bool empty() const noexcept;
    // A rule is about groups: load_groups() before permits().
    bool needs_groups() const noexcept;

    // There are two kinds of rules, of uids and gids for unix peers and of ranges for all
    // others, and rules of one kind say nothing about peers of the other. Within the
    // kind: what a deny rule matches is denied; else, where there is an allow rule, what
    // none matches is denied; else it is permitted. A gid matches the peer's own group
    // and its supplementary ones. A unix peer without credentials is denied as soon as
    // there is any rule of its kind, and a peer of which nothing is known as soon as there
    // is any rule.
    bool permits(const Peer &peer) const noexcept;

    // The same for what is nobody's right by default: permitted, and because an allow rule
    // says so rather than for want of one.
    bool names(const Peer &peer) const noexcept;

    bool operator==(const AccessRules &) const = default;
};

} // namespace sluice
