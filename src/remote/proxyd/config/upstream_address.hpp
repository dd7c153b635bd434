// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The ADDRESS of the command line: what parse_address() takes, and what
// systemd-socket-proxyd takes: /PATH, @NAME, HOST:PORT, and HOST alone, which means
// port 80. An IPv6 address may do without brackets where a port follows: ::1:80.

#include <string_view>

#include "util/base/result.hpp"
#include "util/net/address.hpp"

namespace sluice::proxyd {

Result<Address> parse_upstream(std::string_view text);

} // namespace sluice::proxyd
