// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/proxy_protocol.hpp"

#include <gtest/gtest.h>

#include "util/net/proxy_bytes.hpp"
#include "util/net/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;
using Kind = ProxyHeader::Kind;

// The bytes of the protocol's text, written out by hand.
const std::string signature = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"s;
const std::string v4_block = "\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb"s; // 192.168.0.1:56324, 192.168.0.11:443
const std::string v6_block = "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                             "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"
                             "\x00\x50\xff\xff"s; // 2001:db8::1 port 80, fe80::2 port 65535

std::string v2(uint8_t command, uint8_t kind, const std::string &body)
{
    std::string out = signature;
    out += static_cast<char>(command);
    out += static_cast<char>(kind);
    out += static_cast<char>(body.size() >> 8);
    out += static_cast<char>(body.size() & 255);
    return out + body;
}

// A header in one piece, with a client's bytes behind it that must stay where they are.
ProxyHeader read_whole(const std::string &bytes)
{
    ProxyHeaderReader reader;
    EXPECT_TRUE(reader.untouched());
    auto taken = reader.feed(bytes + "GET / HTTP/1.1\r\n\r\n");
    if (!taken)
        throw std::runtime_error(taken.error().message);
    EXPECT_EQ(*taken, bytes.size());
    EXPECT_TRUE(reader.done());
    return reader.header();
}

std::string fault_of(const std::string &bytes)
{
    ProxyHeaderReader reader;
    auto taken = reader.feed(bytes);
    EXPECT_FALSE(reader.done());
    if (taken) {
        EXPECT_FALSE(taken);
        return "";
    }
    EXPECT_EQ(taken.error().code, EPROTO);
    return taken.error().message;
}

void expect_fault(const std::string &bytes, const std::string &part)
{
    std::string fault = fault_of(bytes);
    EXPECT_NE(fault.find(part), std::string::npos) << fault;
}

TEST(ProxyEncode, Version1)
{
    EXPECT_EQ(encode_proxy_v1(inet_address("192.168.0.1", 56324), inet_address("192.168.0.11", 443)),
              "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n");
    EXPECT_EQ(encode_proxy_v1(inet_address("2001:db8::1", 80), inet_address("fe80::2", 65535)),
              "PROXY TCP6 2001:db8::1 fe80::2 80 65535\r\n");
    EXPECT_EQ(encode_proxy_v1(inet_address("::ffff:192.0.2.1", 1), inet_address("::ffff:192.0.2.2", 2)),
              "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    EXPECT_EQ(encode_proxy_v1(inet_address("192.0.2.1", 1), inet_address("::1", 2)),
              "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n");
    EXPECT_EQ(encode_proxy_v1(unix_path("/a"), unix_path("/b")), "PROXY UNKNOWN\r\n");
    EXPECT_EQ(encode_proxy_v1(to_socket_address(VsockAddress{3, 4}), to_socket_address(VsockAddress{2, 4})),
              "PROXY UNKNOWN\r\n");
    EXPECT_EQ(encode_proxy_v1({}, {}), "PROXY UNKNOWN\r\n");
    // the longest there is
    std::string longest = encode_proxy_v1(inet_address("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535),
                                          inet_address("fdff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 65535));
    EXPECT_EQ(longest.size(), 104u);
    EXPECT_EQ(to_string(read_whole(longest).source), "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

TEST(ProxyEncode, Version2)
{
    EXPECT_EQ(encode_proxy_v2(inet_address("192.168.0.1", 56324), inet_address("192.168.0.11", 443)),
              v2(0x21, 0x11, v4_block));
    EXPECT_EQ(encode_proxy_v2(inet_address("::ffff:192.168.0.1", 56324), inet_address("192.168.0.11", 443)),
              v2(0x21, 0x11, v4_block));
    EXPECT_EQ(encode_proxy_v2(inet_address("2001:db8::1", 80), inet_address("fe80::2", 65535)),
              v2(0x21, 0x21, v6_block));
    SocketAddress vsock = to_socket_address(VsockAddress{3, 4});
    EXPECT_EQ(encode_proxy_v2(vsock, vsock, ucred{1, 2, 3}), v2(0x20, 0x00, ""));
    EXPECT_EQ(encode_proxy_v2({}, {}), v2(0x20, 0x00, ""));
}

TEST(ProxyEncode, Version2OfUnixHasTheCredentials)
{
    std::string path = "/run/a.sock" + std::string(97, '\0'), abstract = "\0name"s + std::string(103, '\0');
    std::string tlv = "\xe5\x00\x0c\x00\x00\x03\xe8\x00\x00\x03\xe9\x00\x00\x12\x67"s; // 1000, 1001, 4711
    EXPECT_EQ(
        encode_proxy_v2(unix_path("/run/a.sock"), *to_socket_address(UnixAbstract{"name"}), ucred{4711, 1000, 1001}),
        v2(0x21, 0x31, path + abstract + tlv));
    // a client that is bound to no name, as they mostly are
    EXPECT_EQ(encode_proxy_v2(unnamed_unix(), unix_path("/run/a.sock")), v2(0x21, 0x31, std::string(108, '\0') + path));
    std::string longest(107, 'x');
    longest[0] = '/';
    EXPECT_EQ(encode_proxy_v2(unix_path(longest), unix_path(longest)), v2(0x21, 0x31, longest + '\0' + longest + '\0'));
}

TEST(ProxyRead, Version1)
{
    ProxyHeader header = read_whole("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n");
    EXPECT_EQ(header.kind, Kind::proxied);
    EXPECT_EQ(header.version, 1);
    EXPECT_EQ(to_string(header.source), "192.168.0.1:56324");
    EXPECT_EQ(to_string(header.destination), "192.168.0.11:443");
    header = read_whole("PROXY TCP6 2001:DB8::1 ::ffff:1.2.3.4 0 65535\r\n");
    EXPECT_EQ(header.kind, Kind::proxied);
    EXPECT_EQ(to_string(header.source), "[2001:db8::1]:0");
    EXPECT_EQ(to_string(header.destination), "[::ffff:1.2.3.4]:65535");
    for (const char *line : {"PROXY UNKNOWN\r\n", "PROXY UNKNOWN anything at all \x01\r \r\n",
                             "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                             "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"}) {
        header = read_whole(line);
        EXPECT_EQ(header.kind, Kind::unknown);
        EXPECT_EQ(header.source.size, 0u);
    }
}

TEST(ProxyRead, BrokenVersion1)
{
    expect_fault("GET / HTTP/1.0\r\n", "no PROXY header: the connection begins with 'GET / HTTP/1.0");
    expect_fault("PROXZ", "no PROXY header");
    expect_fault("PROXY\t", "no PROXY header");
    expect_fault("proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "no PROXY header");
    expect_fault("\x16\x03\x01", "begins with '\\x16\\x03\\x01'");
    for (const char *line :
         {"PROXY \r\n", "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
          "PROXY UNKNOWNS\r\n", "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"})
        expect_fault(line, "does not begin with PROXY TCP4, TCP6 or UNKNOWN");
    for (const char *line :
         {"PROXY TCP4\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
          "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", "PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n"})
        expect_fault(line, "has not two addresses and two ports");
    for (const char *line :
         {"PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
          "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 0x1.2.3.4 1 2\r\n"})
        expect_fault(line, "is no IPv4 address");
    for (const char *line : {"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP6 ::1 ::1::2 1 2\r\n",
                             "PROXY TCP6 ::1 [::1] 1 2\r\n", "PROXY TCP6 fe80::1%lo ::1 1 2\r\n"})
        expect_fault(line, "is no IPv6 address");
    for (const char *line : {"PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 02\r\n",
                             "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 x\r\n",
                             "PROXY TCP4 1.2.3.4 1.2.3.4 1 00\r\n"})
        expect_fault(line, "is no port");
    expect_fault("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n"s, "is no IPv4 address");
    expect_fault("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", "does not end in CR LF");
    expect_fault("PROXY UNKNOWN\n\r\n", "does not end in CR LF");
}

TEST(ProxyRead, Version1HasALimit)
{
    std::string line = "PROXY UNKNOWN ";
    line.resize(105, 'x');
    EXPECT_EQ(read_whole(line + "\r\n").kind, Kind::unknown); // 107
    expect_fault(line + "x\r\n", "does not end within 107 bytes");
    expect_fault(line + std::string(100'000, 'x'), "does not end within 107 bytes");
    ProxyHeaderReader reader;
    ASSERT_EQ(reader.feed(line).value(), 105u);
    ASSERT_EQ(reader.feed("x").value(), 1u);
    EXPECT_FALSE(reader.feed("\r\n")) << "the line feed is the 108th byte";
}

TEST(ProxyRead, Version2)
{
    ProxyHeader header = read_whole(v2(0x21, 0x11, v4_block));
    EXPECT_EQ(header.kind, Kind::proxied);
    EXPECT_EQ(header.version, 2);
    EXPECT_EQ(to_string(header.source), "192.168.0.1:56324");
    EXPECT_EQ(to_string(header.destination), "192.168.0.11:443");
    EXPECT_TRUE(header.tlvs.empty());
    EXPECT_FALSE(header.credentials);
    header = read_whole(v2(0x21, 0x21, v6_block));
    EXPECT_EQ(to_string(header.source), "[2001:db8::1]:80");
    EXPECT_EQ(to_string(header.destination), "[fe80::2]:65535");
}

TEST(ProxyRead, Version2OfUnix)
{
    std::string path = "/run/a.sock" + std::string(97, '\0'), abstract = "\0na\0me"s + std::string(102, '\0');
    ProxyHeader header = read_whole(v2(0x21, 0x31, path + abstract));
    EXPECT_EQ(header.kind, Kind::proxied);
    EXPECT_EQ(to_string(header.source), "unix:/run/a.sock");
    EXPECT_EQ(to_string(header.destination), "unix:@na\\x00me");
    header = read_whole(v2(0x21, 0x31, std::string(216, '\0')));
    EXPECT_EQ(header.source.family(), AF_UNIX);
    EXPECT_EQ(to_string(header.source), "unix:");
    // bytes behind the path's end mean nothing
    header = read_whole(v2(0x21, 0x31, "/a\0/b"s + std::string(103, 'x') + path));
    EXPECT_EQ(to_string(header.source), "unix:/a");
    // no room for the NUL that our addresses have
    header = read_whole(v2(0x21, 0x31, std::string(108, '/') + path));
    EXPECT_EQ(to_string(header.source), "unix:");
}

TEST(ProxyRead, WithoutAddressesTheConnectionsOwnCount)
{
    for (const std::string &body : {""s, v4_block, "garbage"s, std::string(4080, '\xff')}) {
        EXPECT_EQ(read_whole(v2(0x20, 0x00, body)).kind, Kind::local);
        EXPECT_EQ(read_whole(v2(0x20, 0x11, body)).kind, Kind::local);
        EXPECT_EQ(read_whole(v2(0x20, 0xff, body)).kind, Kind::local) << "the family of LOCAL is ignored";
        EXPECT_EQ(read_whole(v2(0x21, 0x00, body)).kind, Kind::unknown);
        EXPECT_EQ(read_whole(v2(0x21, 0x01, body)).kind, Kind::unknown);
        EXPECT_EQ(read_whole(v2(0x21, 0x10, body)).kind, Kind::unknown);
        EXPECT_EQ(read_whole(v2(0x21, 0x12, body)).kind, Kind::unknown) << "datagrams are not what we carry";
    }
}

TEST(ProxyRead, BrokenVersion2)
{
    expect_fault(v2(0x21, 0x11, v4_block.substr(0, 11)), "too short for its addresses");
    expect_fault(v2(0x21, 0x21, v6_block.substr(0, 35)), "too short for its addresses");
    expect_fault(v2(0x21, 0x31, std::string(215, '\0')), "too short for its addresses");
    expect_fault(v2(0x21, 0x11, ""), "too short for its addresses");
    expect_fault(v2(0x11, 0x11, v4_block), "version and command are 0x11");
    expect_fault(v2(0x31, 0x11, v4_block), "version and command are 0x31");
    expect_fault(v2(0x22, 0x11, v4_block), "version and command are 0x22");
    expect_fault(v2(0x21, 0x41, v4_block), "no address family and transport 0x41");
    expect_fault(v2(0x21, 0x13, v4_block), "no address family and transport 0x13");
    expect_fault("\r\n\r\n\r\n", "no PROXY header: the connection begins with '\\x0d\\x0a\\x0d\\x0a\\x0d\\x0a'");
    expect_fault(signature.substr(0, 11) + "x", "no PROXY header");
    for (const std::string &cut : {"\x04"s, "\x04\x00"s, "\x04\x00\x01"s, "\x04\x00\x02x"s, "\x04\xff\xffxx"s})
        expect_fault(v2(0x21, 0x11, v4_block + cut), "the last of its TLVs is cut off");
}

TEST(ProxyRead, Version2HasALimit)
{
    std::string noop = "\x04"s + '\x0f' + '\xe1'; // 4 KiB in all
    std::string body = v4_block + noop + std::string(4080 - 15, '\0');
    EXPECT_EQ(read_whole(v2(0x21, 0x11, body)).kind, Kind::proxied);
    // the length alone is enough to know
    expect_fault(v2(0x21, 0x11, body + 'x').substr(0, 16), "it has 4097 bytes; 4096 are taken at most");
    expect_fault(signature + "\x20\x00\xff\xff"s, "it has 65551 bytes");
}

TEST(ProxyRead, Tlvs)
{
    ProxyHeader header =
        read_whole(v2(0x21, 0x11,
                      v4_block + "\x04\x00\x00"s + "\x02\x00\x0b"s + "example.org" + "\xe5\x00\x04"s +
                          "\x01\x02\x03\x04" + "\xe5\x00\x0c\x00\x00\x03\xe8\x00\x00\x03\xe9\x00\x00\x12\x67"s));
    ASSERT_EQ(header.tlvs.size(), 4u);
    EXPECT_EQ(header.tlvs[0].type, 4);
    EXPECT_EQ(header.tlvs[0].value, "");
    EXPECT_EQ(header.tlvs[1].type, 2);
    EXPECT_EQ(header.tlvs[1].value, "example.org");
    ASSERT_TRUE(header.credentials) << "the one of another length is not ours";
    EXPECT_EQ(header.credentials->uid, 1000u);
    EXPECT_EQ(header.credentials->gid, 1001u);
    EXPECT_EQ(header.credentials->pid, 4711);
    std::string nobody = "\xe5\x00\x0c\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"s;
    EXPECT_FALSE(read_whole(v2(0x21, 0x11, v4_block + nobody)).credentials);
}

TEST(ProxyRead, Checksum)
{
    // the check value that everybody quotes for CRC-32C
    EXPECT_EQ(proxy_bytes::crc32c("123456789"), 0xe3069283u);
    std::string header = v2(0x21, 0x11, v4_block + "\x03\x00\x04\0\0\0\0"s);
    std::string sum;
    proxy_bytes::put32(sum, proxy_bytes::crc32c(header));
    std::string good = header;
    good.replace(good.size() - 4, 4, sum);
    EXPECT_EQ(read_whole(good).tlvs.size(), 1u);
    for (size_t at = 16; at < good.size(); ++at) {
        if (at >= 28 && at < 31)
            continue; // type and length of the checksum itself
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        expect_fault(bad, "its checksum is wrong");
    }
    expect_fault(v2(0x21, 0x11, v4_block + "\x03\x00\x02\0\0"s), "its checksum is wrong");
}

TEST(ProxyRead, WhatIsWrittenIsReadAgain)
{
    SocketAddress unix_from = unix_path("/run/a.sock"), unix_to = *to_socket_address(UnixAbstract{"b"});
    ProxyHeader header = read_whole(encode_proxy_v2(unix_from, unix_to, ucred{7, 8, 9}));
    EXPECT_EQ(to_string(header.source), to_string(unix_from));
    EXPECT_EQ(header.source.size, unix_from.size);
    EXPECT_EQ(to_string(header.destination), to_string(unix_to));
    EXPECT_EQ(header.destination.size, unix_to.size);
    ASSERT_TRUE(header.credentials);
    EXPECT_EQ(header.credentials->pid, 7);
    EXPECT_EQ(header.credentials->uid, 8u);
    EXPECT_EQ(header.credentials->gid, 9u);
    for (const char *host : {"192.0.2.1", "2001:db8::1"}) {
        SocketAddress from = inet_address(host, 5), to = inet_address(host, 65535);
        for (const std::string &bytes : {encode_proxy_v1(from, to), encode_proxy_v2(from, to)}) {
            EXPECT_EQ(to_string(read_whole(bytes).source), to_string(from));
            EXPECT_EQ(to_string(read_whole(bytes).destination), to_string(to));
        }
    }
}

} // namespace
} // namespace sluice
