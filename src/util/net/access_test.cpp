// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/access.hpp"

#include <grp.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/net/proxy_test_support.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

SocketAddress inet(const std::string &host)
{
    return inet_address(host, 1);
}

AddressRange range(const std::string &text)
{
    auto parsed = parse_address_range(text);
    if (!parsed)
        throw std::runtime_error(parsed.error().message);
    return *parsed;
}

Peer inet_peer(const std::string &host)
{
    return {inet(host), {}, {}};
}

Peer unix_peer(uid_t uid, gid_t gid, std::vector<gid_t> groups = {})
{
    Peer peer{*to_socket_address(UnixPath{"/x"}), ucred{4711, uid, gid}, std::move(groups)};
    return peer;
}

TEST(AddressRange, MatchesByItsBits)
{
    struct Case {
        const char *range, *address;
        bool match;
    };
    for (const Case &each : {
             Case{"10.0.0.0/8", "10.255.0.1", true},
             {"10.0.0.0/8", "11.0.0.0", false},
             {"192.168.128.0/17", "192.168.128.0", true},
             {"192.168.128.0/17", "192.168.255.255", true},
             {"192.168.128.0/17", "192.168.127.255", false},
             {"192.0.2.7", "192.0.2.7", true},
             {"192.0.2.7", "192.0.2.6", false},
             {"192.0.2.6/31", "192.0.2.7", true},
             {"0.0.0.0/0", "255.255.255.255", true},
             {"0.0.0.0/0", "::1", false},
             {"::/0", "::1", true},
             {"fe80::/10", "febf::1", true},
             {"fe80::/10", "fec0::1", false},
             {"2001:db8::/127", "2001:db8::1", true},
             {"2001:db8::/127", "2001:db8::2", false},
             {"::1", "::1", true},
             // an IPv4 client of a dual-stack socket is an IPv4 client
             {"10.0.0.0/8", "::ffff:10.1.2.3", true},
             {"10.0.0.0/8", "::ffff:11.1.2.3", false},
             {"::ffff:10.0.0.0/104", "10.1.2.3", true},
             {"::ffff:10.0.0.0/104", "::ffff:10.1.2.3", true},
             {"::ffff:0.0.0.0/96", "1.2.3.4", true},
             {"::/0", "::ffff:10.1.2.3", false},
             {"::/0", "10.1.2.3", false},
         })
        EXPECT_EQ(range(each.range).contains(inet(each.address)), each.match) << each.range << " " << each.address;
}

TEST(AddressRange, OfVsockMatchesTheCid)
{
    SocketAddress guest = to_socket_address(VsockAddress{3, 1024}), other = to_socket_address(VsockAddress{4, 1024});
    EXPECT_TRUE(range("vsock:3").contains(guest));
    EXPECT_FALSE(range("vsock:3").contains(other));
    EXPECT_TRUE(range("vsock:any").contains(guest));
    EXPECT_TRUE(range("vsock:any").contains(other));
    EXPECT_TRUE(range("vsock:local").contains(to_socket_address(VsockAddress{VMADDR_CID_LOCAL, 9})));
    EXPECT_FALSE(range("vsock:any").contains(inet("0.0.0.3")));
    EXPECT_FALSE(range("0.0.0.0/0").contains(guest));
    EXPECT_FALSE(range("::/0").contains(guest));
    EXPECT_FALSE(range("vsock:any").contains(*to_socket_address(UnixPath{"/x"})));
}

TEST(AddressRange, TextThatIsRead)
{
    for (const char *text : {"10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "::1", "fe80::/10", "::/0", "vsock:3", "vsock:any",
                             "vsock:0", "2001:db8::/33", "192.0.2.6/31"})
        EXPECT_EQ(to_string(range(text)), text);
    EXPECT_EQ(to_string(range("192.0.2.7/32")), "192.0.2.7");
    EXPECT_EQ(to_string(range("::1/128")), "::1");
    EXPECT_EQ(to_string(range("::ffff:192.0.2.0/120")), "192.0.2.0/24");
    EXPECT_EQ(to_string(range("vsock:host")), "vsock:2");
    EXPECT_EQ(range("192.0.2.7/32"), range("192.0.2.7"));
    EXPECT_NE(range("192.0.2.6/31"), range("192.0.2.6"));
}

TEST(AddressRange, TextThatIsRefused)
{
    using namespace std::string_view_literals;
    for (std::string_view text : {""sv,
                                  "/"sv,
                                  "/8"sv,
                                  "10.0.0.0/"sv,
                                  "10.0.0.0/33"sv,
                                  "10.0.0.0/-1"sv,
                                  "10.0.0.0/+8"sv,
                                  "10.0.0.0/8 "sv,
                                  " 10.0.0.0/8"sv,
                                  "10.0.0/8"sv,
                                  "10.0.0.256"sv,
                                  "010.0.0.0/8"sv,
                                  "10.0.0.0/8/8"sv,
                                  "::/129"sv,
                                  "[::1]"sv,
                                  "::1%lo"sv,
                                  "fe80::/1x"sv,
                                  "localhost"sv,
                                  "10.0.0.0:80"sv,
                                  "vsock:"sv,
                                  "vsock:3:4"sv,
                                  "vsock:x"sv,
                                  "vsock:4294967295"sv,
                                  "vsock:-1"sv,
                                  "10.0.0.0\0/8"sv,
                                  "::1\0"sv,
                                  "vsock:3\0"sv,
                                  "unix:/x"sv}) {
        auto parsed = parse_address_range(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, EINVAL);
        EXPECT_NE(parsed.error().message.find("bad address range '"), std::string::npos) << parsed.error().message;
    }
}

TEST(AddressRange, BitsBehindThePrefixAreASlip)
{
    auto parsed = parse_address_range("10.1.2.3/8");
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().message.find("10.0.0.0/8"), std::string::npos) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find("or 10.1.2.3 "), std::string::npos) << parsed.error().message;
    EXPECT_FALSE(parse_address_range("fe80::1/64"));
    EXPECT_FALSE(parse_address_range("192.0.2.7/31"));
    EXPECT_FALSE(parse_address_range("0.0.0.1/0"));
}

TEST(AccessRules, WithoutRulesAllMay)
{
    AccessRules rules;
    EXPECT_TRUE(rules.empty());
    EXPECT_FALSE(rules.needs_groups());
    EXPECT_TRUE(rules.permits(unix_peer(1000, 1000)));
    EXPECT_TRUE(rules.permits(inet_peer("192.0.2.1")));
    EXPECT_TRUE(rules.permits(Peer{}));
    EXPECT_TRUE(rules.permits(Peer{*to_socket_address(UnixPath{"/x"}), {}, {}}));
}

TEST(AccessRules, AnAllowRuleShutsOutTheRestOfItsKind)
{
    AccessRules by_uid;
    by_uid.allow_uids = {1000};
    EXPECT_FALSE(by_uid.empty());
    EXPECT_TRUE(by_uid.permits(unix_peer(1000, 5)));
    EXPECT_FALSE(by_uid.permits(unix_peer(1001, 1000)));
    EXPECT_FALSE(by_uid.permits(unix_peer(0, 0))) << "root is no exception";
    EXPECT_TRUE(by_uid.permits(inet_peer("192.0.2.1"))) << "rules about uids say nothing about addresses";

    AccessRules by_range;
    by_range.allow_ranges = {range("192.0.2.0/24")};
    EXPECT_TRUE(by_range.permits(inet_peer("192.0.2.1")));
    EXPECT_TRUE(by_range.permits(inet_peer("::ffff:192.0.2.1")));
    EXPECT_FALSE(by_range.permits(inet_peer("192.0.3.1")));
    EXPECT_FALSE(by_range.permits(inet_peer("::1")));
    EXPECT_FALSE(by_range.permits({to_socket_address(VsockAddress{3, 1}), {}, {}}));
    EXPECT_TRUE(by_range.permits(unix_peer(1000, 1000)));
}

TEST(AccessRules, DenyWins)
{
    AccessRules rules;
    rules.allow_uids = {1000, 1001};
    rules.deny_uids = {1000};
    rules.allow_ranges = {range("10.0.0.0/8")};
    rules.deny_ranges = {range("10.1.0.0/16"), range("::/0")};
    EXPECT_FALSE(rules.permits(unix_peer(1000, 1000)));
    EXPECT_TRUE(rules.permits(unix_peer(1001, 1001)));
    EXPECT_FALSE(rules.permits(inet_peer("10.1.2.3")));
    EXPECT_FALSE(rules.permits(inet_peer("::ffff:10.1.2.3")));
    EXPECT_TRUE(rules.permits(inet_peer("10.2.2.3")));
    EXPECT_FALSE(rules.permits(inet_peer("::1")));
}

TEST(AccessRules, DenyAloneLetsTheRestIn)
{
    AccessRules rules;
    rules.deny_uids = {0};
    rules.deny_ranges = {range("10.0.0.0/8")};
    EXPECT_FALSE(rules.permits(unix_peer(0, 0)));
    EXPECT_TRUE(rules.permits(unix_peer(1, 0)));
    EXPECT_FALSE(rules.permits(inet_peer("10.0.0.1")));
    EXPECT_TRUE(rules.permits(inet_peer("11.0.0.1")));
}

TEST(AccessRules, NamesIsMoreThanWantOfARule)
{
    AccessRules rules;
    EXPECT_FALSE(rules.names(unix_peer(1, 1)));
    rules.allow_ranges = {range("10.0.0.0/8")};
    EXPECT_TRUE(rules.names(inet_peer("10.1.2.3")));
    EXPECT_FALSE(rules.names(inet_peer("192.0.2.1")));
    EXPECT_TRUE(rules.permits(unix_peer(1, 1)));
    EXPECT_FALSE(rules.names(unix_peer(1, 1)));
    rules.deny_ranges = {range("10.1.0.0/16")};
    EXPECT_FALSE(rules.names(inet_peer("10.1.2.3")));
}

TEST(AccessRules, GroupsAreThePeersOwnAndTheSupplementary)
{
    AccessRules allow;
    allow.allow_gids = {50};
    allow.allow_uids = {7};
    EXPECT_TRUE(allow.needs_groups());
    EXPECT_TRUE(allow.permits(unix_peer(1000, 50)));
    EXPECT_TRUE(allow.permits(unix_peer(1000, 1000, {4, 50})));
    EXPECT_FALSE(allow.permits(unix_peer(1000, 1000, {4, 5})));
    EXPECT_TRUE(allow.permits(unix_peer(7, 1000))) << "one allow rule is enough";

    AccessRules deny;
    deny.deny_gids = {50};
    deny.allow_uids = {1000};
    EXPECT_TRUE(deny.needs_groups());
    EXPECT_FALSE(deny.permits(unix_peer(1000, 50)));
    EXPECT_FALSE(deny.permits(unix_peer(1000, 1000, {50})));
    EXPECT_TRUE(deny.permits(unix_peer(1000, 1000, {51})));
}

TEST(AccessRules, WhoIsNotKnownIsDenied)
{
    Peer nameless{*to_socket_address(UnixPath{"/x"}), {}, {}};
    AccessRules allow_uid, deny_uid, allow_gid, deny_gid, ranges;
    allow_uid.allow_uids = {static_cast<uid_t>(-1), 0};
    deny_uid.deny_uids = {5};
    allow_gid.allow_gids = {0};
    deny_gid.deny_gids = {5};
    ranges.deny_ranges = {range("10.0.0.0/8")};
    for (const AccessRules &rules : {allow_uid, deny_uid, allow_gid, deny_gid}) {
        EXPECT_FALSE(rules.permits(nameless));
        EXPECT_FALSE(rules.permits(Peer{}));
    }
    EXPECT_TRUE(ranges.permits(nameless));
    EXPECT_FALSE(ranges.permits(Peer{}));
}

TEST(PeerOf, TheKernelNamesAUnixPeer)
{
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    UniqueFd here(fds[0]), there(fds[1]);
    Peer peer = peer_of(here.get(), {});
    EXPECT_TRUE(peer.is_unix());
    ASSERT_TRUE(peer.credentials);
    EXPECT_EQ(peer.credentials->uid, geteuid());
    EXPECT_EQ(peer.credentials->gid, getegid());
    EXPECT_EQ(peer.credentials->pid, getpid());
    EXPECT_EQ(describe(peer), "uid " + std::to_string(geteuid()) + " pid " + std::to_string(getpid()));
    EXPECT_EQ(peer_key(peer), "uid " + std::to_string(geteuid()));
    peer.credentials->pid = 0;
    EXPECT_EQ(describe(peer), "uid " + std::to_string(geteuid()));
}

TEST(PeerOf, AnotherUserWithManyGroups)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can become somebody else";
    TestDir dir;
    ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
    UniqueFd listener = make_socket(dir / "s", 5);
    ASSERT_EQ(chmod((dir / "s").c_str(), 0777), 0);
    std::vector<gid_t> groups;
    for (gid_t gid = 5000; gid < 5100; ++gid)
        groups.push_back(gid);
    int client = in_child([&] {
        if (setgroups(groups.size(), groups.data()) != 0 || setgid(4321) != 0 || setuid(1234) != 0)
            return 1;
        dial(*to_socket_address(UnixPath{dir / "s"}));
        return 0;
    });
    ASSERT_EQ(client, 0);
    UniqueFd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    // as it was when it connected, though it is gone by now
    Peer peer = peer_of(connection.get(), {});
    ASSERT_TRUE(peer.credentials);
    EXPECT_EQ(peer.credentials->uid, 1234u);
    EXPECT_EQ(peer.credentials->gid, 4321u);
    EXPECT_TRUE(peer.groups.empty());
    ASSERT_TRUE(load_groups(connection.get(), peer));
    EXPECT_EQ(peer.groups, groups);
    AccessRules rules;
    rules.allow_gids = {5099};
    EXPECT_TRUE(rules.permits(peer));
    rules.deny_gids = {5042};
    EXPECT_FALSE(rules.permits(peer));
}

TEST(PeerOf, AnAddressIsAllThatAnInetPeerHas)
{
    UniqueFd listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int off = 0;
    ASSERT_EQ(setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
    SocketAddress mapped = inet_address("::ffff:127.0.0.1", 0); // as a dual-stack socket has it
    ASSERT_EQ(bind(listener.get(), mapped.get(), mapped.size), 0);
    ASSERT_EQ(listen(listener.get(), 5), 0);
    SocketAddress bound = local_address(listener.get());
    uint16_t port = ntohs(reinterpret_cast<const sockaddr_in6 *>(&bound.storage)->sin6_port);
    UniqueFd client = dial(inet_address("127.0.0.1", port));
    UniqueFd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Peer peer = peer_of(connection.get(), {});
    EXPECT_FALSE(peer.is_unix());
    EXPECT_FALSE(peer.credentials);
    EXPECT_EQ(peer_key(peer), "127.0.0.1");
    EXPECT_EQ(describe(peer), to_string(peer.address));
    EXPECT_EQ(describe(peer).find("[::ffff:127.0.0.1]:"), 0u) << describe(peer);
    AccessRules rules;
    rules.allow_ranges = {range("127.0.0.0/8")};
    EXPECT_TRUE(rules.permits(peer));
    ASSERT_TRUE(load_groups(connection.get(), peer));
    EXPECT_TRUE(peer.groups.empty());
}

TEST(PeerOf, TextsOfOthers)
{
    EXPECT_EQ(describe({inet_address("::1", 5432), {}, {}}), "[::1]:5432");
    EXPECT_EQ(describe({inet_address("192.0.2.1", 80), {}, {}}), "192.0.2.1:80");
    EXPECT_EQ(describe({to_socket_address(VsockAddress{3, 1024}), {}, {}}), "vsock:3:1024");
    EXPECT_EQ(peer_key({to_socket_address(VsockAddress{3, 1024}), {}, {}}), "vsock:3");
    EXPECT_EQ(peer_key({inet_address("::1", 5432), {}, {}}), "::1");
}

} // namespace
} // namespace sluice
