// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/address.hpp"

#include <algorithm>
#include <optional>

#include <arpa/inet.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

static_assert(unix_name_bytes_max + 1 == sizeof(sockaddr_un::sun_path));

namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr std::string_view tcp_prefix = "tcp:";
constexpr std::string_view vsock_prefix = "vsock:";

// Parsing stops at the first fault; this says it about the address as a whole.
tl::unexpected<Error> bad(std::string_view text, const std::string &fault, int code = EINVAL)
{
    return fail(code, format(_("bad address '{}': {}"), printable(text), fault));
}

bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_alpha(char c)
{
    return is_alnum(c) && !(c >= '0' && c <= '9');
}

bool is_blank_or_control(char c)
{
    auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f;
}

std::string too_long(size_t bytes)
{
    return format(_("the name of a unix socket has at most {} bytes, this one has {}; use a shorter path, or a "
                    "symbolic link to its folder"),
                  unix_name_bytes_max, bytes);
}

Result<Address> parse_unix(std::string_view text, std::string_view name)
{
    if (name.empty())
        return bad(text, _("the path is empty; write unix:/path or unix:@name"));
    if (name[0] == '@') {
        name.remove_prefix(1);
        if (name.empty())
            return bad(text, _("the abstract name is empty; write unix:@name"));
        if (name.size() > unix_name_bytes_max)
            return bad(text, too_long(name.size()), ENAMETOOLONG);
        return UnixAbstract{std::string(name)};
    }
    if (name[0] != '/')
        return bad(text, _("the path is relative; write the whole path from /, or unix:@name for an abstract one"));
    if (name.size() > unix_name_bytes_max)
        return bad(text, too_long(name.size()), ENAMETOOLONG);
    return UnixPath{std::string(name)};
}

// A fault, or nothing where `host`, out of brackets, is an IPv6 address with or without a scope.
std::optional<std::string> fault_of_ipv6(std::string_view host)
{
    size_t percent = host.find('%');
    std::string digits(host.substr(0, percent));
    in6_addr ignored;
    if (inet_pton(AF_INET6, digits.c_str(), &ignored) != 1)
        return format(_("'{}' is no IPv6 address; brackets hold nothing else"), printable(digits));
    if (percent == std::string_view::npos)
        return std::nullopt;
    std::string_view scope = host.substr(percent + 1);
    if (scope.empty())
        return _("the scope after % is empty; name a network interface, as in [fe80::1%eth0]");
    if (std::any_of(scope.begin(), scope.end(), [](char c) { return is_blank_or_control(c) || c == '%'; }))
        return format(_("'{}' is no scope; name a network interface, as in [fe80::1%eth0]"), printable(scope));
    return std::nullopt;
}

std::optional<std::string> fault_of_host(std::string_view host)
{
    if (host.empty())
        return _("the host is empty; write tcp:HOST:PORT");
    if (host.size() >= NI_MAXHOST)
        return format(_("a host name has at most {} bytes, this one has {}"), NI_MAXHOST - 1, host.size());
    if (host.find(':') != std::string_view::npos)
        return _("an IPv6 address stands in brackets, as in tcp:[::1]:80");
    auto odd = [](char c) { return is_blank_or_control(c) || c == '[' || c == ']' || c == '/' || c == '@'; };
    auto found = std::find_if(host.begin(), host.end(), odd);
    if (found != host.end())
        return format(_("'{}' cannot be in a host name; write tcp:HOST:PORT"), printable({&*found, 1}));
    return std::nullopt;
}

// The port as TcpAddress holds it, or a fault.
tl::expected<std::string, std::string> parse_service(std::string_view port)
{
    if (port.empty())
        return tl::unexpected<std::string>(_("the port is missing; write tcp:HOST:PORT"));
    if (port.find_first_not_of("0123456789") == std::string_view::npos) {
        auto number = parse_number<uint16_t>(port, 1);
        if (!number)
            return tl::unexpected(format(_("port {} is outside 1 to 65535"), port));
        return std::to_string(*number);
    }
    auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '+'; };
    if (!std::all_of(port.begin(), port.end(), allowed) || std::none_of(port.begin(), port.end(), is_alpha))
        return tl::unexpected(
            format(_("'{}' is no port; write a number from 1 to 65535 or the name of a service"), printable(port)));
    return std::string(port);
}

Result<Address> parse_tcp(std::string_view text, std::string_view rest)
{
    std::string_view host, port;
    std::optional<std::string> fault;
    if (!rest.empty() && rest[0] == '[') {
        size_t close = rest.find(']');
        if (close == std::string_view::npos)
            return bad(text, _("the bracket is not closed; write tcp:[ADDRESS]:PORT"));
        host = rest.substr(1, close - 1);
        fault = fault_of_ipv6(host);
        if (!fault && close + 1 < rest.size() && rest[close + 1] != ':')
            fault = _("something else than a colon follows the bracket; write tcp:[ADDRESS]:PORT");
        port = close + 2 <= rest.size() ? rest.substr(close + 2) : std::string_view();
    } else {
        size_t colon = rest.rfind(':');
        host = rest.substr(0, colon);
        fault = fault_of_host(host);
        port = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
    if (fault)
        return bad(text, *fault);
    auto service = parse_service(port);
    if (!service)
        return bad(text, service.error());
    return TcpAddress{std::string(host), *service};
}

std::optional<uint32_t> parse_cid(std::string_view cid)
{
    if (cid == "hypervisor")
        return VMADDR_CID_HYPERVISOR;
    if (cid == "local")
        return VMADDR_CID_LOCAL;
    if (cid == "host")
        return VMADDR_CID_HOST;
    return parse_number<uint32_t>(cid, 0, VMADDR_CID_ANY - 1);
}

Result<Address> parse_vsock(std::string_view text, std::string_view rest)
{
    size_t colon = rest.find(':');
    if (colon == std::string_view::npos)
        return bad(text, _("the port is missing; write vsock:CID:PORT"));
    auto cid = parse_cid(rest.substr(0, colon));
    if (!cid)
        return bad(text, format(_("'{}' is no CID; write a number up to {}, or hypervisor, local or host"),
                                printable(rest.substr(0, colon)), VMADDR_CID_ANY - 1));
    auto port = parse_number<uint32_t>(rest.substr(colon + 1), 0, VMADDR_PORT_ANY - 1);
    if (!port)
        return bad(text, format(_("'{}' is no vsock port; write a number up to {}"), printable(rest.substr(colon + 1)),
                                VMADDR_PORT_ANY - 1));
    return VsockAddress{*cid, *port};
}

} // namespace

Result<Address> parse_address(std::string_view text)
{
    if (text.empty())
        return bad(text, _("it is empty; write /path, unix:/path, unix:@name, tcp:HOST:PORT or vsock:CID:PORT"));
    if (text.find('\0') != std::string_view::npos)
        return bad(text, _("it has a NUL byte in it"));
    if (text[0] == '/')
        return parse_unix(text, text);
    if (text.starts_with(unix_prefix))
        return parse_unix(text, text.substr(unix_prefix.size()));
    if (text.starts_with(tcp_prefix))
        return parse_tcp(text, text.substr(tcp_prefix.size()));
    if (text.starts_with(vsock_prefix))
        return parse_vsock(text, text.substr(vsock_prefix.size()));
    return bad(text, _("unknown kind; write /path, unix:/path, unix:@name, tcp:HOST:PORT or vsock:CID:PORT"));
}

std::string to_string(const Address &address)
{
    struct Writer {
        std::string operator()(const UnixPath &at) const { return "unix:" + at.path; }
        std::string operator()(const UnixAbstract &at) const { return "unix:@" + at.name; }
        std::string operator()(const TcpAddress &at) const
        {
            bool ipv6 = at.host.find(':') != std::string::npos;
            return "tcp:" + (ipv6 ? "[" + at.host + "]" : at.host) + ":" + at.service;
        }
        std::string operator()(const VsockAddress &at) const
        {
            return "vsock:" + std::to_string(at.cid) + ":" + std::to_string(at.port);
        }
    };
    return std::visit(Writer{}, address);
}

} // namespace sluice
