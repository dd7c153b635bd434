// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The values that are about addresses and about who may come in: `listen`, `connect`,
// the rules of access, `accept-proxy-protocol-from`.

#include <optional>
#include <vector>

#include "remote/proxyd/config/config.hpp"
#include "remote/proxyd/config/reading.hpp"

namespace sluice::proxyd {

// An address, or systemd:NAME; the code of an error is EINVAL or ENAMETOOLONG.
Result<ListenConfig> parse_listen(std::string_view text);

// One or more of: an address, a table of an address and what its path is to be.
std::vector<ListenConfig> read_listen(const Field &field);
std::vector<Address> read_connect(const Field &field);

std::vector<uid_t> read_users(const Field &field);
std::vector<gid_t> read_groups(const Field &field);
std::vector<AddressRange> read_ranges(const Field &field);

// Ranges, uid:USER and gid:GROUP in one list. Whoever is not named is not meant: where
// only one kind of peer is named, the rules of the other kind match nobody.
std::optional<AccessRules> read_trusted_peers(const Field &field);

} // namespace sluice::proxyd
