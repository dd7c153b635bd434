// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/upstream_address.hpp"

#include <gtest/gtest.h>

namespace sluice::proxyd {
namespace {

TEST(UpstreamAddress, TakesWhatSystemdSocketProxydTakes)
{
    const std::pair<const char *, const char *> cases[] = {
        {"/run/x.sock", "unix:/run/x.sock"},
        {"@name", "unix:@name"},
        {"localhost:8080", "tcp:localhost:8080"},
        {"localhost:http", "tcp:localhost:http"},
        {"localhost", "tcp:localhost:80"},
        {"10.0.0.1", "tcp:10.0.0.1:80"},
        {"10.0.0.1:81", "tcp:10.0.0.1:81"},
        {"::1:80", "tcp:[::1]:80"},
        {"fe80::1%lo:80", "tcp:[fe80::1%lo]:80"},
        {"2001:db8::7:443", "tcp:[2001:db8::7]:443"},
        {"[::1]:80", "tcp:[::1]:80"},
        {"[::1]", "tcp:[::1]:80"},
        {"[fe80::1%eth0]:80", "tcp:[fe80::1%eth0]:80"},
        {"unix:/run/x.sock", "unix:/run/x.sock"},
        {"unix:@name", "unix:@name"},
        {"tcp:localhost:8080", "tcp:localhost:8080"},
        {"vsock:3:1024", "vsock:3:1024"},
        {"-x:1", "tcp:-x:1"},
    };
    for (auto [text, expected] : cases) {
        auto address = parse_upstream(text);
        ASSERT_TRUE(address) << text << ": " << address.error().message;
        EXPECT_EQ(to_string(*address), expected) << text;
    }
}

TEST(UpstreamAddress, RefusesWithAReason)
{
    const std::pair<const char *, const char *> cases[] = {
        {"", "it is empty"},
        {"8080", "write localhost:8080"},
        {"localhost:", "port is missing"},
        {":80", "host is empty"},
        {"::1", "is no IPv6 address"},
        {"run/x.sock", "a path begins with /"},
        {"@", "abstract name is empty"},
        {"[::1", "bracket is not closed"},
        {"[::1]:", "port is missing"},
        {"localhost:70000", "outside 1 to 65535"},
        {"tcp:80", "port is missing"},
        {"a b:80", "' ' cannot be in a host name"},
    };
    for (auto [text, says] : cases) {
        auto address = parse_upstream(text);
        ASSERT_FALSE(address) << text;
        EXPECT_NE(address.error().message.find(says), std::string::npos) << text << ": " << address.error().message;
    }
}

} // namespace
} // namespace sluice::proxyd
