// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/config_file.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "remote/proxyd/config/time_span.hpp"

namespace sluice::proxyd {
namespace {

using namespace std::chrono_literals;

Config good(std::string_view text)
{
    auto config = parse_config(text, "test.toml");
    if (config)
        return *config;
    for (const Problem &problem : config.error())
        ADD_FAILURE() << to_string(problem);
    return {};
}

class Folder {
public:
    Folder()
    {
        char name[] = "/tmp/sluiced-config-XXXXXX";
        path_ = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string write(const std::string &name, std::string_view text)
    {
        auto path = path_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path;
    }
    std::string operator/(const std::string &name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

constexpr const char *minimal = "[[service]]\nname = 'a'\nlisten = '/run/a'\nconnect = '/run/b'\n";

TEST(ConfigFile, TheLeastIsAServiceWithNameListenAndConnect)
{
    Config config = good(minimal);
    ASSERT_EQ(config.services.size(), 1u);
    const ServiceConfig &service = config.services[0];
    EXPECT_EQ(service.name, "a");
    ASSERT_EQ(service.listen.size(), 1u);
    EXPECT_EQ(service.listen[0].at, (std::variant<PassedSocket, Address>(Address(UnixPath{"/run/a"}))));
    EXPECT_EQ(service.connect, std::vector<Address>{UnixPath{"/run/b"}});
    EXPECT_EQ(service.place.line, 1u);
    EXPECT_EQ(service.listen[0].place.line, 3u);
    ServiceConfig plain;
    plain.name = "a";
    plain.listen = service.listen;
    plain.connect = service.connect;
    EXPECT_EQ(service, plain);
    Config rest = config;
    rest.services.clear();
    EXPECT_EQ(rest, Config{});
}

constexpr const char *everything = R"(
[daemon]
workers = 4
drain-timeout = "1min 30s"
exit-idle-time = 0
log-level = "debug"

[admin]
listen = { address = "/run/sluiced/admin.sock", mode = "0660", group = 7 }
allow-uid = ["root", 1000]
deny-uid = 5
allow-gid = [7]
deny-gid = [8]
allow-address = "127.0.0.0/8"
deny-address = ["::1"]

[[service]]
name = "db"
listen = ["systemd:db", { address = "unix:@db" }, { address = "/run/db", mode = 0o600, user = "root", group = "root" },
          "tcp:[::]:5432", "vsock:1:7"]
connect = ["/run/postgresql/.s.PGSQL.5432", "tcp:db.example.org:5432"]
balance = "round-robin"
wait-for-upstream = "10s"
send-proxy-protocol = "v2"
accept-proxy-protocol-from = ["10.0.0.0/8", "uid:0", "gid:root", "vsock:3"]
pass-fds = "pass"
splice = false
log-connections = "all"

[service.limits]
connections = 500
when-full = "refuse"
per-peer = 20
memory = "64M"
buffer-size = "32K"
rate-up = "1M"
rate-down = 2000000
connection-rate-up = "100K"
connection-rate-down = "200K"

[service.timeouts]
connect = 2.5
idle = "1h"
fin = 5
half-closed = "2min"
header = "500ms"

[service.health]
failures = 3
retry-after = "1s"

[service.keepalive]
on = true
idle = "2min"
interval = 5
count = 3

[service.access]
allow-uid = [1, 2]
deny-uid = [3]
allow-gid = [4]
deny-gid = [5]
allow-address = ["10.0.0.0/8", "fe80::/10"]
deny-address = ["10.1.0.0/16", "vsock:any"]

[[service]]
name = "web.2_x-Y"
listen = "systemd:"
connect = "vsock:2:80"
keepalive = { on = false }
)";

TEST(ConfigFile, EveryKeyGoesToItsField)
{
    Config config = good(everything);
    EXPECT_EQ(config.workers, 4u);
    EXPECT_EQ(config.drain_timeout, 90s);
    EXPECT_EQ(config.exit_idle_time, 0s);
    EXPECT_EQ(config.log_level, LogLevel::debug);
    ASSERT_EQ(config.admin.listen.size(), 1u);
    EXPECT_EQ(config.admin.listen[0].mode, 0660u);
    EXPECT_EQ(config.admin.listen[0].group, 7u);
    EXPECT_FALSE(config.admin.listen[0].owner);
    AccessRules admin;
    admin.allow_uids = {0, 1000};
    admin.deny_uids = {5};
    admin.allow_gids = {7};
    admin.deny_gids = {8};
    admin.allow_ranges = {*parse_address_range("127.0.0.0/8")};
    admin.deny_ranges = {*parse_address_range("::1")};
    EXPECT_EQ(config.admin.access, admin);

    ASSERT_EQ(config.services.size(), 2u);
    const ServiceConfig &db = config.services[0];
    ASSERT_EQ(db.listen.size(), 5u);
    EXPECT_EQ(std::get<PassedSocket>(db.listen[0].at).name, "db");
    EXPECT_EQ(std::get<Address>(db.listen[1].at), Address(UnixAbstract{"db"}));
    EXPECT_EQ(db.listen[2].mode, 0600u);
    EXPECT_EQ(db.listen[2].owner, 0u);
    EXPECT_EQ(db.listen[2].group, 0u);
    EXPECT_EQ(std::get<Address>(db.listen[3].at), Address(TcpAddress{"::", "5432"}));
    EXPECT_EQ(std::get<Address>(db.listen[4].at), Address(VsockAddress{1, 7}));
    ASSERT_EQ(db.connect.size(), 2u);
    EXPECT_EQ(db.connect[1], Address(TcpAddress{"db.example.org", "5432"}));
    EXPECT_EQ(db.balance, Balance::round_robin);
    EXPECT_EQ(db.send_proxy, ProxyProtocol::v2);
    EXPECT_EQ(db.pass_fds, PassFds::pass);
    EXPECT_FALSE(db.splice);
    EXPECT_EQ(db.log_connections, LogConnections::all);
    Limits limits{500, WhenFull::refuse, 20, 64 << 20, 1 << 20, 2000000, 100 << 10, 200 << 10, 32 << 10};
    EXPECT_EQ(db.limits, limits);
    Timeouts timeouts{2500ms, 10s, 1h, 5s, 2min, 500ms};
    EXPECT_EQ(db.timeouts, timeouts);
    EXPECT_EQ(db.health, (Health{3, 1s}));
    EXPECT_EQ(db.keepalive, (Keepalive{true, 120s, 5s, 3}));
    AccessRules access;
    access.allow_uids = {1, 2};
    access.deny_uids = {3};
    access.allow_gids = {4};
    access.deny_gids = {5};
    access.allow_ranges = {*parse_address_range("10.0.0.0/8"), *parse_address_range("fe80::/10")};
    access.deny_ranges = {*parse_address_range("10.1.0.0/16"), *parse_address_range("vsock:any")};
    EXPECT_EQ(db.access, access);

    const ServiceConfig &web = config.services[1];
    EXPECT_EQ(web.name, "web.2_x-Y");
    EXPECT_EQ(std::get<PassedSocket>(web.listen[0].at).name, "");
    EXPECT_FALSE(web.keepalive.on);
    EXPECT_EQ(web.limits, Limits{});
}

Peer unix_peer(uid_t uid)
{
    Peer peer;
    peer.address.storage.ss_family = AF_UNIX;
    peer.address.size = sizeof(sa_family_t);
    peer.credentials = ucred{1, uid, uid};
    return peer;
}

Peer loopback_peer()
{
    Peer peer;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&peer.address.storage, &at, peer.address.size = sizeof at);
    return peer;
}

TEST(ConfigFile, OnlyWhoIsNamedMaySendAProxyHeader)
{
    auto trusted = [](const std::string &list) {
        return *good(minimal + ("accept-proxy-protocol-from = " + list + "\n")).services[0].accept_proxy;
    };
    AccessRules by_uid = trusted("'uid:7'");
    EXPECT_TRUE(by_uid.permits(unix_peer(7)));
    EXPECT_FALSE(by_uid.permits(unix_peer(8)));
    EXPECT_FALSE(by_uid.permits(loopback_peer()));
    AccessRules by_address = trusted("['127.0.0.1']");
    EXPECT_TRUE(by_address.permits(loopback_peer()));
    EXPECT_FALSE(by_address.permits(unix_peer(0)));
    AccessRules both = trusted("['uid:root', '127.0.0.1']");
    EXPECT_TRUE(both.permits(unix_peer(0)));
    EXPECT_FALSE(both.permits(unix_peer(1)));
    EXPECT_TRUE(both.permits(loopback_peer()));
}

TEST(ConfigFile, EqualMeansTheSameWhereverItStands)
{
    Config one = good(everything);
    EXPECT_EQ(one, good(std::string("\n\n# moved\n") + everything));
    std::string other = everything;
    other.replace(other.find("count = 3"), 9, "count = 4");
    EXPECT_NE(one, good(other));
}

TEST(ConfigFile, DropInsAddServicesAndChangeSingleKeys)
{
    Folder folder;
    std::string path =
        folder.write("s.toml", "[daemon]\nworkers = 2\nlog-level = 'error'\n"
                               "[[service]]\nname = 'a'\nlisten = '/run/a'\nconnect = ['/run/1', '/run/2']\n"
                               "[service.limits]\nconnections = 10\nper-peer = 3\n"
                               "[[service]]\nname = 'b'\nlisten = '/run/b'\nconnect = '/run/3'\n");
    // written in another order than they are read in
    folder.write("s.toml.d/20-more.toml", "[[service]]\nname = 'c'\nlisten = '/run/c'\nconnect = '/run/4'\n"
                                          "[[service]]\nname = 'a'\nlimits.connections = 30\n");
    folder.write("s.toml.d/10-first.toml", "daemon.workers = 3\n[[service]]\nname = 'a'\nconnect = '/run/9'\n"
                                           "[service.limits]\nconnections = 20\nwhen-full = 'refuse'\n");
    folder.write("s.toml.d/30-not-this.toml.bak", "garbage");
    folder.write("s.toml.d/.40-hidden.toml", "garbage");
    auto config = read_config(path);
    ASSERT_TRUE(config) << to_string(config.error()[0]);
    EXPECT_EQ(config->workers, 3u);
    EXPECT_EQ(config->log_level, LogLevel::error);
    ASSERT_EQ(config->services.size(), 3u);
    const ServiceConfig &a = config->services[0];
    EXPECT_EQ(a.connect, std::vector<Address>{UnixPath{"/run/9"}});
    EXPECT_EQ(a.limits.connections, 30u);
    EXPECT_EQ(a.limits.per_peer, 3u);
    EXPECT_EQ(a.limits.when_full, WhenFull::refuse);
    EXPECT_EQ(a.listen.size(), 1u);
    EXPECT_EQ(config->services[1].name, "b");
    EXPECT_EQ(config->services[2].name, "c");
    EXPECT_EQ(config->services[2].place.file, folder / "s.toml.d/20-more.toml");
}

TEST(ConfigFile, ProblemsNameTheFileTheyAreIn)
{
    Folder folder;
    std::string path = folder.write("s.toml", "[daemon]\nworkers = 0\n[[service]]\nname = 'a'\nlisten = '/run/a'\n"
                                              "connect = '/run/b'\n");
    std::string first = folder.write("s.toml.d/1.toml", "[[service]]\nname = 'a'\nbalance = 'least'\n");
    std::string second = folder.write("s.toml.d/2.toml", "\n[[service]]\nname = 'b'\nlisten = '/run/a'\n");
    auto config = read_config(path);
    ASSERT_FALSE(config);
    std::vector<std::string> heads;
    for (const Problem &problem : config.error())
        heads.push_back(to_string(problem).substr(0, to_string(problem).find(": ")));
    EXPECT_EQ(heads, (std::vector<std::string>{path + ":2:11", first + ":3:11", second + ":2:1", second + ":4:10"}))
        << to_string(config.error().back());
}

TEST(ConfigFile, AFileThatCannotBeReadIsAProblem)
{
    Folder folder;
    auto says = [](const tl::expected<Config, std::vector<Problem>> &config) {
        return config ? std::string("good") : to_string(config.error()[0]);
    };
    EXPECT_EQ(says(read_config(folder / "none.toml")),
              (folder / "none.toml") + ": cannot be opened: No such file or directory");
    EXPECT_EQ(says(read_config(folder / "")), (folder / "") + ": cannot be read: Is a directory");
    std::string path = folder.write("s.toml", minimal);
    EXPECT_EQ(says(read_config(path)), "good");
    std::filesystem::create_directories(folder / "s.toml.d/x.toml");
    EXPECT_EQ(says(read_config(path)), (folder / "s.toml.d/x.toml") + ": cannot be read: Is a directory");
    std::filesystem::remove_all(folder / "s.toml.d");
    folder.write("s.toml.d", "");
    EXPECT_EQ(says(read_config(path)), (folder / "s.toml.d") + ": cannot be opened: Not a directory");
    std::string large = folder.write("large.toml", std::string(2 << 20, '#'));
    EXPECT_NE(says(read_config(large)).find("is larger than 1048576 bytes"), std::string::npos);
    EXPECT_NE(says(read_config("/dev/zero")).find("is larger than 1048576 bytes"), std::string::npos);
}

TEST(ConfigFile, TheCommandLineHasTheLastWord)
{
    Folder folder;
    std::string path = folder.write("s.toml", minimal);
    auto config = read_config(path, [](Config &read) { read.workers = 7; });
    ASSERT_TRUE(config);
    EXPECT_EQ(config->workers, 7u);
    // and what it says is checked together with the rest
    config = read_config(path, [](Config &read) { read.exit_idle_time = 1s; });
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error()[0].place.line, 3u);
}

} // namespace
} // namespace sluice::proxyd
