// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/proxy_protocol.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"
#include "util/net/proxy_bytes.hpp"

namespace sluice {

namespace {

using namespace std::string_view_literals;
using namespace proxy_bytes;

tl::unexpected<Error> malformed(int version, const std::string &fault)
{
    return fail(EPROTO, format(_("broken PROXY v{} header: {}"), version, fault));
}

// The two addresses of a TCP connection, both as IPv6, and the family that says them shortest.
struct TcpPair {
    int family = AF_UNSPEC;
    std::array<in6_addr, 2> hosts; // AF_INET: the last four bytes count
    std::array<uint16_t, 2> ports;
};

// IPv4 becomes IPv6 in IPv4 form, so that any two can be compared.
bool as_ipv6(const SocketAddress &address, in6_addr &host, uint16_t &port)
{
    if (address.family() == AF_INET && address.size >= sizeof(sockaddr_in)) {
        sockaddr_in at;
        std::memcpy(&at, &address.storage, sizeof at);
        host = {};
        host.s6_addr[10] = host.s6_addr[11] = 0xff;
        std::memcpy(host.s6_addr + 12, &at.sin_addr, 4);
        port = ntohs(at.sin_port);
        return true;
    }
    if (address.family() == AF_INET6 && address.size >= sizeof(sockaddr_in6)) {
        sockaddr_in6 at;
        std::memcpy(&at, &address.storage, sizeof at);
        host = at.sin6_addr;
        port = ntohs(at.sin6_port);
        return true;
    }
    return false;
}

std::optional<TcpPair> tcp_pair(const SocketAddress &source, const SocketAddress &destination)
{
    TcpPair pair;
    if (!as_ipv6(source, pair.hosts[0], pair.ports[0]) || !as_ipv6(destination, pair.hosts[1], pair.ports[1]))
        return std::nullopt;
    bool ipv4 = IN6_IS_ADDR_V4MAPPED(&pair.hosts[0]) && IN6_IS_ADDR_V4MAPPED(&pair.hosts[1]);
    pair.family = ipv4 ? AF_INET : AF_INET6;
    return pair;
}

std::string host_text(const TcpPair &pair, int which)
{
    const uint8_t *bytes = pair.hosts[which].s6_addr + (pair.family == AF_INET ? 12 : 0);
    char text[INET6_ADDRSTRLEN];
    return inet_ntop(pair.family, bytes, text, sizeof text);
}

// 108 bytes: the path, or NUL and the abstract name, filled up with NUL.
void append_unix(std::string &out, const SocketAddress &address)
{
    std::string name;
    if (address.family() == AF_UNIX && address.size > offsetof(sockaddr_un, sun_path)) {
        sockaddr_un at{};
        std::memcpy(&at, &address.storage, std::min<size_t>(address.size, sizeof at));
        name.assign(at.sun_path, std::min<size_t>(address.size, sizeof at) - offsetof(sockaddr_un, sun_path));
    }
    name.resize(unix_bytes);
    out += name;
}

SocketAddress unix_from(std::string_view bytes)
{
    // an abstract name ends where the filling begins, a path at its first NUL
    size_t used = bytes[0] == '\0' ? bytes.find_last_not_of('\0') + 1 : bytes.find('\0');
    used = std::min(used, bytes.size());
    std::string_view name = bytes.substr(0, used);
    std::optional<SocketAddress> address;
    if (name.size() > 1 && name[0] == '\0')
        address = to_socket_address(UnixAbstract{std::string(name.substr(1))});
    else if (!name.empty() && name[0] != '\0')
        address = to_socket_address(UnixPath{std::string(name)});
    if (address)
        return *address;
    SocketAddress unnamed;
    unnamed.storage.ss_family = AF_UNIX;
    unnamed.size = sizeof(sa_family_t);
    return unnamed;
}

SocketAddress inet_from(int family, const void *host, uint16_t port)
{
    SocketAddress address;
    if (family == AF_INET) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        std::memcpy(&at.sin_addr, host, sizeof at.sin_addr);
        std::memcpy(&address.storage, &at, sizeof at);
        address.size = sizeof at;
    } else {
        sockaddr_in6 at{};
        at.sin6_family = AF_INET6;
        at.sin6_port = htons(port);
        std::memcpy(&at.sin6_addr, host, sizeof at.sin6_addr);
        std::memcpy(&address.storage, &at, sizeof at);
        address.size = sizeof at;
    }
    return address;
}

std::optional<ucred> credentials_of(const std::vector<ProxyTlv> &tlvs)
{
    for (const ProxyTlv &tlv : tlvs) {
        if (tlv.type != proxy_tlv_credentials || tlv.value.size() != credentials_bytes)
            continue;
        std::string_view value = tlv.value;
        ucred credentials{};
        credentials.uid = get32(value.substr(0));
        credentials.gid = get32(value.substr(4));
        credentials.pid = static_cast<pid_t>(get32(value.substr(8)));
        // what the kernel says where it knows none
        if (credentials.uid != static_cast<uid_t>(-1))
            return credentials;
    }
    return std::nullopt;
}

// Fields of a v1 line, parted by exactly one space.
std::vector<std::string_view> split(std::string_view line)
{
    std::vector<std::string_view> words;
    for (size_t at = 0;;) {
        size_t space = line.find(' ', at);
        words.push_back(line.substr(at, space == std::string_view::npos ? space : space - at));
        if (space == std::string_view::npos)
            return words;
        at = space + 1;
    }
}

std::optional<uint16_t> parse_port(std::string_view word)
{
    if (word.size() > 1 && word[0] == '0')
        return std::nullopt;
    return parse_number<uint16_t>(word);
}

Result<ProxyHeader> parse_v1(std::string_view line)
{
    ProxyHeader header;
    header.version = 1;
    auto words = split(line);
    std::string_view kind = words.size() > 1 ? words[1] : std::string_view();
    if (words[0] != "PROXY" || (kind != "TCP4" && kind != "TCP6" && kind != "UNKNOWN"))
        return malformed(1, format(_("'{}' does not begin with PROXY TCP4, TCP6 or UNKNOWN"), printable(line)));
    if (kind == "UNKNOWN")
        return header;
    if (words.size() != 6)
        return malformed(1, format(_("'{}' has not two addresses and two ports"), printable(line)));
    int family = kind == "TCP4" ? AF_INET : AF_INET6;
    for (int i : {0, 1}) {
        in6_addr host;
        std::string text(words[2 + i]);
        auto port = parse_port(words[4 + i]);
        if (text.find('\0') != std::string::npos || inet_pton(family, text.c_str(), &host) != 1)
            return malformed(1,
                             format(_("'{}' is no {} address"), printable(text), family == AF_INET ? "IPv4" : "IPv6"));
        if (!port)
            return malformed(1, format(_("'{}' is no port"), printable(words[4 + i])));
        (i == 0 ? header.source : header.destination) = inet_from(family, &host, *port);
    }
    header.kind = ProxyHeader::Kind::proxied;
    return header;
}

Result<void> parse_tlvs(std::string_view whole, size_t at, std::vector<ProxyTlv> &tlvs)
{
    while (at < whole.size()) {
        size_t left = whole.size() - at;
        size_t length = left < tlv_head_bytes ? 0 : get16(whole.substr(at + 1));
        if (left < tlv_head_bytes + length)
            return malformed(2, _("the last of its TLVs is cut off"));
        auto type = static_cast<uint8_t>(whole[at]);
        std::string_view value = whole.substr(at + tlv_head_bytes, length);
        if (type == tlv_crc32c) {
            std::string zeroed(whole);
            std::fill_n(zeroed.begin() + static_cast<ptrdiff_t>(at + tlv_head_bytes), length, '\0');
            if (length != 4 || get32(value) != crc32c(zeroed))
                return malformed(2, _("its checksum is wrong"));
        }
        tlvs.push_back({type, std::string(value)});
        at += tlv_head_bytes + length;
    }
    return {};
}

Result<ProxyHeader> parse_v2(std::string_view whole)
{
    ProxyHeader header;
    header.version = 2;
    uint8_t command = whole[12] & 15, family = static_cast<uint8_t>(whole[13]) >> 4, transport = whole[13] & 15;
    if (command == command_local) {
        header.kind = ProxyHeader::Kind::local;
        return header;
    }
    if (family == family_unspec || transport != transport_stream)
        return header;
    size_t host_bytes = family == family_inet ? 4 : family == family_inet6 ? 16 : unix_bytes;
    size_t block = 2 * host_bytes + (family == family_unix ? 0 : 4);
    if (whole.size() < v2_head_bytes + block)
        return malformed(2, _("it is too short for its addresses"));
    std::string_view addresses = whole.substr(v2_head_bytes, block);
    for (size_t i : {0u, 1u}) {
        std::string_view host = addresses.substr(i * host_bytes, host_bytes);
        SocketAddress &to = i == 0 ? header.source : header.destination;
        if (family == family_unix)
            to = unix_from(host);
        else
            to = inet_from(family == family_inet ? AF_INET : AF_INET6, host.data(),
                           get16(addresses.substr(2 * host_bytes + 2 * i)));
    }
    header.kind = ProxyHeader::Kind::proxied;
    if (auto parsed = parse_tlvs(whole, v2_head_bytes + block, header.tlvs); !parsed)
        return tl::unexpected(parsed.error());
    header.credentials = credentials_of(header.tlvs);
    return header;
}

// As far as `text` goes, does it begin like `pattern`?
bool begins_like(std::string_view text, std::string_view pattern)
{
    size_t both = std::min(text.size(), pattern.size());
    return text.substr(0, both) == pattern.substr(0, both);
}

} // namespace

std::string encode_proxy_v1(const SocketAddress &source, const SocketAddress &destination)
{
    auto pair = tcp_pair(source, destination);
    if (!pair)
        return "PROXY UNKNOWN\r\n";
    return fmt::format("PROXY {} {} {} {} {}\r\n", pair->family == AF_INET ? "TCP4" : "TCP6", host_text(*pair, 0),
                       host_text(*pair, 1), pair->ports[0], pair->ports[1]);
}

std::string encode_proxy_v2(const SocketAddress &source, const SocketAddress &destination,
                            const std::optional<ucred> &credentials)
{
    uint8_t kind = 0;
    std::string body;
    if (auto pair = tcp_pair(source, destination)) {
        size_t skip = pair->family == AF_INET ? 12 : 0;
        kind = (pair->family == AF_INET ? family_inet : family_inet6) << 4 | transport_stream;
        for (const in6_addr &host : pair->hosts)
            body.append(reinterpret_cast<const char *>(host.s6_addr) + skip, 16 - skip);
        for (uint16_t port : pair->ports)
            put16(body, port);
    } else if (source.family() == AF_UNIX) {
        kind = family_unix << 4 | transport_stream;
        append_unix(body, source);
        append_unix(body, destination);
    }
    if (credentials && kind != 0) {
        body += static_cast<char>(proxy_tlv_credentials);
        put16(body, credentials_bytes);
        put32(body, credentials->uid);
        put32(body, credentials->gid);
        put32(body, static_cast<uint32_t>(credentials->pid));
    }
    std::string out(v2_signature);
    out += static_cast<char>(version_2 << 4 | (kind == 0 ? command_local : command_proxy));
    out += static_cast<char>(kind);
    put16(out, static_cast<uint16_t>(body.size()));
    return out + body;
}

Result<size_t> ProxyHeaderReader::feed(std::string_view peeked)
{
    if (peeked.empty())
        return 0u;
    char first = bytes_.empty() ? peeked[0] : bytes_[0];
    return first == v2_signature[0] ? feed_v2(peeked) : feed_v1(peeked);
}

Result<size_t> ProxyHeaderReader::feed_v1(std::string_view peeked)
{
    size_t before = bytes_.size();
    bytes_ += peeked.substr(0, proxy_v1_bytes_max - before);
    if (!begins_like(bytes_, "PROXY "))
        return fail(EPROTO, format(_("no PROXY header: the connection begins with '{}'"),
                                   printable(std::string_view(bytes_).substr(0, 16))));
    size_t line_feed = bytes_.find('\n', before);
    if (line_feed == std::string::npos) {
        if (bytes_.size() == proxy_v1_bytes_max)
            return malformed(1, format(_("it does not end within {} bytes"), proxy_v1_bytes_max));
        return bytes_.size() - before;
    }
    bytes_.resize(line_feed + 1);
    if (!bytes_.ends_with("\r\n"))
        return malformed(1, _("its line does not end in CR LF"));
    auto parsed = parse_v1(std::string_view(bytes_).substr(0, bytes_.size() - 2));
    if (!parsed)
        return tl::unexpected(parsed.error());
    header_ = std::move(*parsed);
    done_ = true;
    return bytes_.size() - before;
}

Result<size_t> ProxyHeaderReader::feed_v2(std::string_view peeked)
{
    size_t before = bytes_.size();
    auto have = [&](size_t bytes) {
        if (bytes_.size() < bytes)
            bytes_ += peeked.substr(bytes_.size() - before, bytes - bytes_.size());
        return bytes_.size() >= bytes;
    };
    bool have_head = have(v2_head_bytes);
    if (!begins_like(bytes_, v2_signature))
        return fail(EPROTO, format(_("no PROXY header: the connection begins with '{}'"),
                                   printable(std::string_view(bytes_).substr(0, v2_signature.size()))));
    if (!have_head)
        return bytes_.size() - before;
    auto version_command = static_cast<uint8_t>(bytes_[12]), kind = static_cast<uint8_t>(bytes_[13]);
    if (version_command >> 4 != version_2 || (version_command & 15) > command_proxy)
        return malformed(2, format(_("version and command are 0x{:02x}, not 0x20 or 0x21"), version_command));
    if ((version_command & 15) == command_proxy && (kind >> 4 > family_unix || (kind & 15) > transport_dgram))
        return malformed(2, format(_("there is no address family and transport 0x{:02x}"), kind));
    size_t whole = v2_head_bytes + get16(std::string_view(bytes_).substr(14));
    if (whole > proxy_v2_bytes_max)
        return malformed(2, format(_("it has {} bytes; {} are taken at most"), whole, proxy_v2_bytes_max));
    if (!have(whole))
        return bytes_.size() - before;
    auto parsed = parse_v2(bytes_);
    if (!parsed)
        return tl::unexpected(parsed.error());
    header_ = std::move(*parsed);
    done_ = true;
    return bytes_.size() - before;
}

} // namespace sluice
