// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/upstream_address.hpp"

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr std::string_view port_of_old = "80"; // where there is none

bool is_number(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

} // namespace

Result<Address> parse_upstream(std::string_view text)
{
    if (text.starts_with('@'))
        return parse_address("unix:" + std::string(text));
    bool ours = text.empty() || text.starts_with('/');
    for (std::string_view prefix : {"unix:", "tcp:", "vsock:"})
        ours = ours || text.starts_with(prefix);
    if (ours)
        return parse_address(text);
    std::string head = "tcp:";
    if (text.find('/') != std::string_view::npos)
        return fail(EINVAL, format(_("bad address '{}': a path begins with /"), printable(text)));
    if (text.starts_with('['))
        return parse_address(
            head.append(text).append(text.ends_with(']') ? ":" : "").append(text.ends_with(']') ? port_of_old : ""));
    // taken for a host it would be some odd address: 8080 is 0.0.31.144
    if (is_number(text))
        return fail(EINVAL, format(_("bad address '{}': the host is missing; write localhost:{}"), text, text));
    size_t colon = text.rfind(':');
    if (colon == std::string_view::npos)
        return parse_address(head.append(text).append(":").append(port_of_old));
    std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
    bool ipv6 = host.find(':') != std::string_view::npos;
    return parse_address(head.append(ipv6 ? "[" : "").append(host).append(ipv6 ? "]:" : ":").append(port));
}

} // namespace sluice::proxyd
