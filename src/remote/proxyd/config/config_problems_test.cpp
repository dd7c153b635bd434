// SPDX-License-Identifier: LGPL-2.1-or-later
// What is said about configurations that are wrong: which place, what was found, and
// what was expected.

#include <gtest/gtest.h>

#include "remote/proxyd/config/config_file.hpp"

namespace sluice::proxyd {
namespace {

std::vector<std::string> problems_of(const std::string &text)
{
    auto config = parse_config(text, "f");
    std::vector<std::string> list;
    if (!config) {
        for (const Problem &problem : config.error())
            list.push_back(to_string(problem));
    }
    return list;
}

const std::string head = "[[service]]\nname = 'a'\nlisten = '/run/a'\nconnect = '/run/b'\n"; // four lines

struct Bad {
    std::string text;
    std::string place;
    std::string says;
};

void expect_one(const Bad &bad)
{
    auto problems = problems_of(bad.text);
    ASSERT_EQ(problems.size(), 1u) << bad.text << (problems.empty() ? "" : problems[0] + "\n" + problems.back());
    EXPECT_TRUE(problems[0].starts_with("f:" + bad.place + ": ")) << problems[0];
    EXPECT_NE(problems[0].find(bad.says), std::string::npos) << problems[0];
}

TEST(ConfigProblems, OfSingleValues)
{
    const Bad cases[] = {
        {head + "balance = 'frist'\n", "5:11",
         "service.balance: found \"frist\", expected \"first\" or \"round-robin\"; did you mean \"first\"?"},
        {head + "balance = 3\n", "5:11", "found 3, expected \"first\" or \"round-robin\""},
        {head + "splice = 'no'\n", "5:10", "service.splice: found \"no\", expected true or false"},
        {head + "wait-for-upstream = '5 parsecs'\n", "5:21", "found \"5 parsecs\", expected a time up to 1000h"},
        {head + "wait-for-upstream = -1\n", "5:21", "found -1, expected a time"},
        {head + "wait-for-upstream = 3.7e6\n", "5:21", "expected a time"},
        {head + "wait-for-upstream = nan\n", "5:21", "found nan, expected a time"},
        {head + "wait-for-upstream = 'infinity'\n", "5:21", "expected a time"},
        {head + "wait-for-upstream = 2024-01-01\n", "5:21", "found a date or time, expected a time"},
        {head + "send-proxy-protocol = 'v3'\n", "5:23", "expected \"none\", \"v1\" or \"v2\""},
        {head + "accept-proxy-protocol-from = ['10.0.0.0/8', 'uid:no-such-user']\n", "5:45",
         "there is no user \"no-such-user\" here"},
        {head + "accept-proxy-protocol-from = ['10.0.0.1/8']\n", "5:31", "bits behind the prefix"},
        {head + "accept-proxy-protocol-from = []\n", "5:30", "expected at least one"},
        {head + "pass-fds = true\n", "5:12", "found true, expected \"detect\", \"refuse\" or \"pass\""},
        {head + "[service.limits]\nconnections = 0\n", "6:15",
         "service.limits.connections: found 0, expected a whole number from 1 to 1000000"},
        {head + "[service.limits]\nconnections = 1.5\n", "6:15", "found 1.5, expected a whole number"},
        {head + "[service.limits]\nconnections = '5'\n", "6:15", "found \"5\", expected a whole number"},
        {head + "[service.limits]\nper-peer = -1\n", "6:12", "found -1, expected a whole number from 0"},
        {head + "[service.limits]\nbuffer-size = '100K'\n", "6:15",
         "found \"100K\", expected a power of two from 4K to 1M"},
        {head + "[service.limits]\nbuffer-size = 2048\n", "6:15", "found 2048, expected a power of two"},
        {head + "[service.limits]\nbuffer-size = '2M'\n", "6:15", "expected a power of two"},
        {head + "[service.limits]\nrate-up = '10 MB'\n", "6:11", "found \"10 MB\", expected a number of bytes"},
        {head + "[service.limits]\nmemory = 1000\n", "1:1", "limits.memory is 1000, expected at least"},
        {head + "[service.keepalive]\nidle = 0\n", "6:8", "found 0, expected a time in whole seconds from 1 to 32767"},
        {head + "[service.keepalive]\nidle = '1500ms'\n", "6:8", "found \"1500ms\", expected a time in whole seconds"},
        {head + "[service.keepalive]\ncount = 128\n", "6:9", "found 128, expected a whole number from 1 to 127"},
        {head + "[service.timeouts]\nconnect = 0\n", "6:11", "found 0, expected a time above 0"},
        {head + "[service.timeouts]\nheader = '0s'\n", "6:10", "found \"0s\", expected a time above 0"},
        {head + "[service.health]\nfailures = 0\n", "6:12", "expected a whole number from 1 to 1000"},
        {head + "[service.access]\nallow-uid = [0, true]\n", "6:17", "found true, expected a user, by name or number"},
        {head + "[service.access]\nallow-uid = []\n", "6:13", "found an empty array, expected at least one"},
        {head + "[service.access]\ndeny-gid = 'no-such-group'\n", "6:12", "there is no group \"no-such-group\" here"},
        {head + "[service.access]\nallow-uid = [\"root\\u0000x\"]\n", "6:14", "there is no user \"root\\x00x\" here"},
        {head + "[service.access]\nallow-uid = 4294967295\n", "6:13", "expected a user"},
        {head + "[service.access]\nallow-address = 10\n", "6:17", "found 10, expected a range of addresses"},
        {head + "limits = 5\n", "5:10", "service.limits: found 5, expected a table"},
        {head + "[daemon]\nworkers = 257\n", "6:11",
         "daemon.workers: found 257, expected a whole number from 1 to 256"},
        {head + "[daemon]\nlog-level = 'warn'\n", "6:13", "did you mean \"warning\"?"},
        {"daemon = 1\n" + head, "1:10", "daemon: found 1, expected a table"},
    };
    for (const Bad &bad : cases)
        expect_one(bad);
}

TEST(ConfigProblems, OfKeys)
{
    const Bad cases[] = {
        {head + "conect = 'x'\n", "5:1", "unknown key \"conect\" in [[service]]; did you mean \"connect\"?"},
        {head + "tls = true\n", "5:1", "unknown key \"tls\" in [[service]]"},
        {head + "connections = 5\n", "5:1",
         "unknown key \"connections\" in [[service]]; it belongs in [service.limits]"},
        {head + "drain-timeout = 5\n", "5:1", "it belongs in [daemon]"},
        {head + "[service.limits]\nwhenfull = 'wait'\n", "6:1",
         "unknown key \"whenfull\" in [service.limits]; did you mean \"when-full\"?"},
        {head + "[demon]\nworkers = 1\n", "5:2",
         "unknown table or key \"demon\"; expected [daemon], [admin], "
         "[[service]]; did you mean \"daemon\"?"},
        {"[service]\nname = 'a'\n", "1:1", "service: found a table, expected tables, each under a line [[service]]"},
        {"service = [1]\n", "1:11", "expected tables, each under a line [[service]]"},
        {head + "\"new\\nline\" = 1\n", "5:1", "unknown key \"new\\x0aline\""},
        {"[[service]]\nname = 'a'\nconnect = '/b'\n", "1:1", "service a: the key \"listen\" is missing"},
        {"[[service]]\nname = 'a'\nlisten = '/b'\n", "1:1", "service a: the key \"connect\" is missing"},
        {"[[service]]\nlisten = '/a'\nconnect = '/b'\n", "1:1", "service: the key \"name\" is missing"},
        {"[[service]]\nname = 'a/b'\nlisten = '/a'\nconnect = '/b'\n", "2:8",
         "service.name: found \"a/b\", expected 1 to 64 letters"},
        {"[[service]]\nname = 5\nlisten = '/a'\nconnect = '/b'\n", "2:8", "found 5, expected the name of the service"},
        {"", "1:1", "there is no service; expected at least one [[service]]"},
    };
    for (const Bad &bad : cases)
        expect_one(bad);
}

TEST(ConfigProblems, OfAddresses)
{
    const std::string a = "[[service]]\nname = 'a'\nconnect = '/run/b'\nlisten = ";
    const std::string b = "[[service]]\nname = 'a'\nlisten = '/run/b'\nconnect = ";
    const Bad cases[] = {
        {a + "'run/x'\n", "4:10", "service.listen: bad address 'run/x': unknown kind"},
        {a + "['/run/x', 'tcp:h:0']\n", "4:21", "port 0 is outside"},
        {a + "[]\n", "4:10", "found an empty array, expected at least one address"},
        {a + "[5]\n", "4:11", "found 5, expected an address, or systemd:NAME"},
        {a + "'systemd:a:b'\n", "4:10", "after systemd: comes a FileDescriptorName="},
        {a + "{ mode = '0600' }\n", "4:10", "the key \"address\" is missing"},
        {a + "{ address = '/x', mode = 660 }\n", "4:35",
         "service.listen.mode: found 660, expected permissions in octal"},
        {a + "{ address = '/x', mode = '0888' }\n", "4:35", "expected permissions in octal"},
        {a + "{ address = '/x', mode = '7777' }\n", "4:35", "expected permissions in octal"},
        {a + "{ address = '/x', owner = 'root' }\n", "4:28", "unknown key \"owner\"; expected \"address\", \"mode\""},
        {a + "{ address = 'tcp:h:1', mode = '0600' }\n", "4:33", "are for sockets in the file system"},
        {a + "{ address = 'systemd:x', user = 'root' }\n", "4:35", "SocketMode="},
        {b + "'systemd:x'\n", "4:11", "a socket that is passed in is for \"listen\""},
        {b + "[]\n", "4:11", "expected 1 to 64 addresses"},
        {b + "{ address = '/x' }\n", "4:11", "found a table, expected an address"},
        {a + "['/run/x', 'unix:/run/x']\n", "4:21", "service a: unix:/run/x is listened on already by service a (f:4)"},
        {a + "'/run/x'\n" + "[[service]]\nname = 'b'\nconnect = '/b'\nlisten = '/run/x'\n", "8:10",
         "service b: unix:/run/x is listened on already by service a (f:4)"},
        {a + "'systemd:'\n" + "[[service]]\nname = 'b'\nconnect = '/b'\nlisten = 'systemd:'\n", "8:10",
         "systemd: is listened on already by service a"},
        {a + "'/run/x'\n" + "[admin]\nlisten = '/run/x'\n", "6:10", "[admin]: unix:/run/x is listened on already"},
        {a + "'/run/x'\n" + "[admin]\nlisten = 'tcp:localhost:9000'\n", "6:10",
         "expected allow-address to name who may"},
        {a + "'/run/x'\n" + "[daemon]\nexit-idle-time = 60\n", "4:10",
         "service a: unix:/run/x goes away when the exit-idle-time has passed"},
    };
    for (const Bad &bad : cases)
        expect_one(bad);
    EXPECT_TRUE(problems_of(a + "'/run/x'\n" + "[admin]\nlisten = 'tcp:localhost:9000'\nallow-address = '127.0.0.1'\n")
                    .empty());
    EXPECT_TRUE(problems_of(a + "'systemd:x'\n" + "[daemon]\nexit-idle-time = 60\n").empty());
    EXPECT_TRUE(problems_of(a + "'/run/x'\n" + "[admin]\nlisten = []\n").empty());
    std::string many = b + "[";
    for (int i = 0; i < 65; ++i)
        many += "'/x',";
    EXPECT_EQ(problems_of(many + "]\n").size(), 1u);
}

TEST(ConfigProblems, AllAreTold)
{
    auto problems = problems_of("[daemon]\nworkers = 'many'\nworker = 2\n"
                                "[[service]]\nname = 'a'\nlisten = ['/run/a', 'x']\nconnect = '/run/b'\nsplice = 1\n"
                                "[service.limits]\nconnections = -3\n"
                                "[[service]]\nname = 'a'\nlisten = '/run/c'\nconnect = 'tcp:[::1:80'\n"
                                "[other]\n");
    const char *places[] = {
        "f:2:11: ", "f:3:1: ", "f:6:21: ", "f:8:10: ", "f:10:15: ", "f:12:8: ", "f:14:11: ", "f:15:2: "};
    ASSERT_EQ(problems.size(), std::size(places)) << problems.front() << "\n" << problems.back();
    for (size_t i = 0; i < problems.size(); ++i)
        EXPECT_TRUE(problems[i].starts_with(places[i])) << problems[i];
}

TEST(ConfigProblems, WhatIsUnreadableIsNotMissingToo)
{
    auto problems = problems_of("[[service]]\nname = 'a'\nlisten = '/run/a'\nconnect = '/run/b\nsplice = 5\n");
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_TRUE(problems[0].starts_with("f:4:")) << problems[0];
    EXPECT_TRUE(problems[1].starts_with("f:5:10: ")) << problems[1];
}

} // namespace
} // namespace sluice::proxyd
