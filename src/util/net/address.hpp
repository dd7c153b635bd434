// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where a stream socket is: an address as users write it, and as the code holds it.
//
//     /run/x.sock   unix:/run/x.sock      a unix socket in the file system
//     unix:@name                          one in Linux's abstract namespace
//     tcp:HOST:PORT                       HOST a name, an IPv4 address, or an IPv6 one
//                                         in brackets, with a scope if it needs one:
//                                         [fe80::1%eth0]; PORT a number or a service
//     vsock:CID:PORT                      CID a number, or hypervisor, local, host
//
// Parsing looks nothing up and touches no file. What it lets through fits into the
// sockaddr it is for.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "util/base/result.hpp"

namespace sluice {

// Longest path or abstract name: sun_path less its NUL, or less the leading one.
inline constexpr size_t unix_name_bytes_max = 107;

struct UnixPath {
    std::string path; // absolute
    bool operator==(const UnixPath &) const = default;
};

struct UnixAbstract {
    std::string name; // without the @
    bool operator==(const UnixAbstract &) const = default;
};

struct TcpAddress {
    std::string host;    // without brackets
    std::string service; // a number without leading zeros, or a name
    bool operator==(const TcpAddress &) const = default;
};

struct VsockAddress {
    uint32_t cid = 0;
    uint32_t port = 0;
    bool operator==(const VsockAddress &) const = default;
};

using Address = std::variant<UnixPath, UnixAbstract, TcpAddress, VsockAddress>;

// Codes: EINVAL, or ENAMETOOLONG. The message names the address, what is wrong with
// it and what to write instead, in the user's language.
Result<Address> parse_address(std::string_view text);

// The form that parse_address() takes: parse_address(to_string(a)) is `a` again.
std::string to_string(const Address &address);

} // namespace sluice
