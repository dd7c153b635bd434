// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/address.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string path_of(size_t bytes)
{
    return "/" + std::string(bytes - 1, 'p');
}

struct Good {
    const char *text;
    Address address;
    const char *written; // by to_string()
};

TEST(Address, ParsesAndWritesBack)
{
    const Good cases[] = {
        {"/run/x.sock", UnixPath{"/run/x.sock"}, "unix:/run/x.sock"},
        {"unix:/run/with space'\"", UnixPath{"/run/with space'\""}, "unix:/run/with space'\""},
        {"/tcp:a:1", UnixPath{"/tcp:a:1"}, "unix:/tcp:a:1"},
        {"unix:@name", UnixAbstract{"name"}, "unix:@name"},
        {"unix:@@/odd name", UnixAbstract{"@/odd name"}, "unix:@@/odd name"},
        {"tcp:localhost:80", TcpAddress{"localhost", "80"}, "tcp:localhost:80"},
        {"tcp:127.0.0.1:0080", TcpAddress{"127.0.0.1", "80"}, "tcp:127.0.0.1:80"},
        {"tcp:h:65535", TcpAddress{"h", "65535"}, "tcp:h:65535"},
        {"tcp:h:http-alt", TcpAddress{"h", "http-alt"}, "tcp:h:http-alt"},
        {"tcp:[::1]:80", TcpAddress{"::1", "80"}, "tcp:[::1]:80"},
        {"tcp:[fe80::1%lo]:16509", TcpAddress{"fe80::1%lo", "16509"}, "tcp:[fe80::1%lo]:16509"},
        {"tcp:[::ffff:10.0.0.1]:1", TcpAddress{"::ffff:10.0.0.1", "1"}, "tcp:[::ffff:10.0.0.1]:1"},
        {"tcp:b\xc3\xbc"
         "cher.example:1",
         TcpAddress{"b\xc3\xbc"
                    "cher.example",
                    "1"},
         "tcp:b\xc3\xbc"
         "cher.example:1"},
        {"vsock:3:1024", VsockAddress{3, 1024}, "vsock:3:1024"},
        {"vsock:hypervisor:0", VsockAddress{0, 0}, "vsock:0:0"},
        {"vsock:local:7", VsockAddress{1, 7}, "vsock:1:7"},
        {"vsock:host:4294967294", VsockAddress{2, 4294967294}, "vsock:2:4294967294"},
    };
    for (const Good &good : cases) {
        auto parsed = parse_address(good.text);
        ASSERT_TRUE(parsed) << good.text << ": " << parsed.error().message;
        EXPECT_EQ(*parsed, good.address) << good.text;
        EXPECT_EQ(to_string(*parsed), good.written);
        auto again = parse_address(to_string(*parsed));
        ASSERT_TRUE(again) << good.written;
        EXPECT_EQ(*again, *parsed) << good.written;
    }
}

struct Bad {
    std::string_view text;
    const char *says;
};

TEST(Address, RefusesWithAReason)
{
    using namespace std::string_view_literals;
    const Bad cases[] = {
        {"", "it is empty"},
        {"foo", "unknown kind"},
        {"run/x.sock", "unknown kind"},
        {"@name", "unknown kind"},
        {"udp:h:1", "unknown kind"},
        {"unix:", "path is empty"},
        {"unix:@", "abstract name is empty"},
        {"unix:x.sock", "path is relative"},
        {"/a\0b"sv, "NUL"},
        {"unix:@a\0"sv, "NUL"},
        {"tcp:", "host is empty"},
        {"tcp::80", "host is empty"},
        {"tcp:h", "port is missing"},
        {"tcp:h:", "port is missing"},
        {"tcp:h:0", "outside 1 to 65535"},
        {"tcp:h:65536", "outside 1 to 65535"},
        {"tcp:h:99999999999999999999", "outside 1 to 65535"},
        {"tcp:h:-1", "is no port"},
        {"tcp:h:+1", "is no port"},
        {"tcp:h: 80", "is no port"},
        {"tcp:h:80/", "is no port"},
        {"tcp:::1:80", "stands in brackets"},
        {"tcp:[::1:80", "bracket is not closed"},
        {"tcp:[::1]", "port is missing"},
        {"tcp:[::1]80", "something else than a colon"},
        {"tcp:[::1]:", "port is missing"},
        {"tcp:[]:80", "is no IPv6 address"},
        {"tcp:[localhost]:80", "is no IPv6 address"},
        {"tcp:[fe80::1%]:80", "scope after % is empty"},
        {"tcp:[fe80::1%a b]:80", "is no scope"},
        {"tcp:a b:80", "' ' cannot be in a host name"},
        {"tcp:user@h:80", "'@' cannot be in a host name"},
        {"vsock:3", "port is missing"},
        {"vsock::1", "is no CID"},
        {"vsock:guest:1", "is no CID"},
        {"vsock:-1:1", "is no CID"},
        {"vsock:4294967295:1", "is no CID"},
        {"vsock:3:", "is no vsock port"},
        {"vsock:3:4294967295", "is no vsock port"},
        {"vsock:3:1:2", "is no vsock port"},
    };
    for (const Bad &bad : cases) {
        auto parsed = parse_address(bad.text);
        ASSERT_FALSE(parsed) << bad.text;
        EXPECT_EQ(parsed.error().code, EINVAL) << bad.text;
        EXPECT_NE(parsed.error().message.find(bad.says), std::string::npos) << parsed.error().message;
    }
}

TEST(Address, BoundsTheLengthOfUnixNames)
{
    EXPECT_TRUE(parse_address(path_of(unix_name_bytes_max)));
    EXPECT_TRUE(parse_address("unix:@" + std::string(unix_name_bytes_max, 'n')));
    for (const std::string &text : {path_of(unix_name_bytes_max + 1), "unix:" + path_of(5000),
                                    "unix:@" + std::string(unix_name_bytes_max + 1, 'n')}) {
        auto parsed = parse_address(text);
        ASSERT_FALSE(parsed);
        EXPECT_EQ(parsed.error().code, ENAMETOOLONG);
        EXPECT_NE(parsed.error().message.find("at most 107 bytes"), std::string::npos) << parsed.error().message;
    }
}

TEST(Address, MessagesStayOnOneLine)
{
    auto parsed = parse_address("tcp:a\n\x1b[2J:80");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().message.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_NE(parsed.error().message.find("\\x0a\\x1b[2J"), std::string::npos) << parsed.error().message;
}

} // namespace
} // namespace sluice
