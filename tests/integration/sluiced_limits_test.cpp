// SPDX-License-Identifier: LGPL-2.1-or-later

// Who gets in and how many, and what happens when something runs out (cases P2, P4, P5,
// P6, P7, P12 and P13).

#include <sys/resource.h>

#include "support/sluiced.hpp"

namespace sluice::test {
namespace {

// What a program may use while it has nothing to do, where one that spins would use
// all the time that the transfer beside it takes.
constexpr double idle_cpu_s_max = 0.05;

class SluicedLimits : public ::testing::Test {
protected:
    SluicedLimits()
        : front_(Listener::unix_socket(folder_ / "front", 128)), upstream_(Listener::unix_socket(folder_ / "up", 128))
    {
        signal(SIGPIPE, SIG_IGN);
    }

    // The daemon with one service, "front", and these lines in it.
    Sluiced &serve(const std::string &lines, const std::string &before = "")
    {
        std::ofstream(folder_ / "sluiced.toml")
            << before << "[[service]]\nname = \"front\"\nlisten = \"systemd:front\"\n"
            << "connect = \"" << upstream_.address() << "\"\n"
            << lines;
        daemon_ = std::make_unique<Sluiced>(std::vector<std::string>{"--config", folder_ / "sluiced.toml"});
        daemon_->command().pass(front_.fd(), "front");
        EXPECT_TRUE(daemon_->start()) << daemon_->child().errors();
        return *daemon_;
    }

    struct Pair {
        UniqueFd client, server;
    };
    Pair connect()
    {
        Pair pair{connect_client(front_.address()), upstream_.accept()};
        EXPECT_TRUE(pair.client);
        EXPECT_TRUE(pair.server);
        return pair;
    }
    bool anybody_comes(int ms) { return wait_for(upstream_.fd(), POLLIN, Deadline{ms / 1000.0}); }

    static bool closed_without_a_byte(int fd)
    {
        char byte;
        return wait_for(fd, POLLIN) && recv(fd, &byte, 1, 0) <= 0;
    }

    // Bytes through a pair, for long enough that a program which spins is noticed.
    static void keep_busy()
    {
        Ends ends = make_socketpair();
        Traffic traffic;
        traffic.feed(ends.first.get(), 256 << 20);
        Drain &arrived = traffic.drain(ends.second.get());
        ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes == 256 << 20; }));
    }
    void expect_idle()
    {
        const double before_s = daemon_->child().cpu_s();
        keep_busy();
        EXPECT_LT(daemon_->child().cpu_s() - before_s, idle_cpu_s_max);
    }

    static rlim_t lowest_free_descriptor(pid_t pid)
    {
        rlim_t number = 0;
        while (std::filesystem::is_symlink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number)))
            ++number;
        return number;
    }

    TempDir folder_;
    Listener front_, upstream_;
    std::unique_ptr<Sluiced> daemon_;
};

TEST_F(SluicedLimits, TheLimitIsHardAndTheNextOneWaits)
{
    serve("[service.limits]\nconnections = 3\n");
    std::vector<Pair> inside;
    for (int i = 0; i < 3; ++i)
        inside.push_back(connect());
    UniqueFd fourth = connect_client(front_.address());
    ASSERT_TRUE(fourth) << "it is in the backlog";
    EXPECT_EQ(send(fourth.get(), "hello", 5, 0), 5);
    EXPECT_FALSE(anybody_comes(200));
    expect_idle();
    inside.erase(inside.begin());
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    char got[5];
    EXPECT_EQ(recv(server.get(), got, 5, MSG_WAITALL), 5) << "what it sent while it waited is there";
}

TEST_F(SluicedLimits, OrTheNextOneIsTurnedAway)
{
    serve("[service.limits]\nconnections = 2\nwhen-full = \"refuse\"\n");
    Pair first = connect(), second = connect();
    UniqueFd third = connect_client(front_.address());
    ASSERT_TRUE(third);
    EXPECT_TRUE(closed_without_a_byte(third.get()));
    EXPECT_FALSE(anybody_comes(0));
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find("(limit)") != std::string::npos; }));
}

TEST_F(SluicedLimits, OnePeerMayHaveSoMany)
{
    serve("[service.limits]\nper-peer = 1\n");
    Pair first = connect();
    UniqueFd second = connect_client(front_.address());
    EXPECT_TRUE(closed_without_a_byte(second.get()));
    first = {};
    EXPECT_TRUE(eventually([&] {
        UniqueFd again = connect_client(front_.address());
        return wait_for(upstream_.fd(), POLLIN, Deadline{0.1});
    })) << "its place is free again";
}

TEST_F(SluicedLimits, AUserWhoIsNotAllowedInIsTurnedAway)
{
    serve("[service.access]\ndeny-uid = [" + std::to_string(getuid()) + "]\n");
    UniqueFd client = connect_client(front_.address());
    EXPECT_TRUE(closed_without_a_byte(client.get()));
    EXPECT_FALSE(anybody_comes(0));
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find("(access)") != std::string::npos; }));
}

TEST_F(SluicedLimits, AClientWaitsForAnUpstreamThatIsStillStarting)
{
    std::string path = upstream_.address();
    upstream_.close();
    unlink(path.c_str());
    serve("wait-for-upstream = \"60s\"\n");
    UniqueFd client = connect_client(front_.address());
    ASSERT_TRUE(client);
    EXPECT_EQ(send(client.get(), "early", 5, 0), 5);
    ASSERT_TRUE(eventually([&] {
        return daemon_->child().errors().find("no such") != std::string::npos ||
               daemon_->child().errors().find("No such") != std::string::npos;
    }));
    upstream_ = Listener::unix_socket(path);
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    char got[5];
    ASSERT_EQ(recv(server.get(), got, 5, MSG_WAITALL), 5);
    EXPECT_EQ(std::string(got, 5), "early");
}

TEST_F(SluicedLimits, AClientIsNotKeptWhereNobodyIsToBeWaitedFor)
{
    std::string path = upstream_.address();
    upstream_.close();
    unlink(path.c_str());
    serve("");
    UniqueFd client = connect_client(front_.address());
    EXPECT_TRUE(closed_without_a_byte(client.get()));
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find(path) != std::string::npos; })) << "says where";
}

TEST_F(SluicedLimits, WhoLeavesWhileWaitingIsNotKept)
{
    std::string path = upstream_.address();
    upstream_.close();
    unlink(path.c_str());
    serve("wait-for-upstream = \"600s\"\n[service.limits]\nconnections = 1\n");
    UniqueFd client = connect_client(front_.address());
    ASSERT_TRUE(client);
    ASSERT_TRUE(eventually([&] { return daemon_->child().errors().find(path) != std::string::npos; }));
    client.reset();
    upstream_ = Listener::unix_socket(path);
    UniqueFd next = connect_client(front_.address());
    EXPECT_EQ(send(next.get(), "x", 1, 0), 1);
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server) << "the place of the one that left is free";
    char got;
    EXPECT_EQ(recv(server.get(), &got, 1, 0), 1);
}

TEST_F(SluicedLimits, AQuietConnectionEndsByItsTimeout)
{
    serve("[service.timeouts]\nidle = \"100ms\"\n");
    Pair pair = connect();
    EXPECT_TRUE(closed_without_a_byte(pair.client.get()));
    EXPECT_TRUE(closed_without_a_byte(pair.server.get()));
}

TEST_F(SluicedLimits, WhatNobodyTakesAfterItsSourceHasEndedIsBounded)
{
    serve("[service.timeouts]\nfin = \"100ms\"\n");
    Pair pair = connect();
    Traffic traffic;
    Feed &up = traffic.feed(pair.client.get(), 64 << 20);
    ASSERT_TRUE(traffic.run_until([&] { return up.blocked && up.bytes > 0; }));
    traffic.close(pair.client);
    EXPECT_TRUE(eventually([&] { return daemon_->child().errors().find("fin-timeout") != std::string::npos; }));
}

// A peer that is stopped (SIGSTOP) or just does not read: it costs no CPU, little memory,
// and nobody else anything.
TEST_F(SluicedLimits, APeerThatHasStoppedHoldsNobodyUp)
{
    serve("");
    const long before_kib = daemon_->child().rss_peak_kib();
    std::vector<Pair> stopped;
    Traffic traffic;
    std::vector<Feed *> feeds;
    for (int i = 0; i < 10; ++i) {
        stopped.push_back(connect());
        feeds.push_back(&traffic.feed(stopped.back().client.get(), 64 << 20));
    }
    ASSERT_TRUE(traffic.run_until([&] {
        return std::all_of(feeds.begin(), feeds.end(),
                           [](const Feed *feed) { return feed->blocked && feed->bytes > 0; });
    }));
    expect_idle();
    Pair other = connect();
    Feed &up = traffic.feed(other.client.get(), 32 << 20);
    Drain &arrived = traffic.drain(other.server.get(), up.pattern);
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == 32 << 20; }));
    EXPECT_TRUE(arrived.intact);
    if (!sanitized) {
        EXPECT_LT(daemon_->child().rss_peak_kib() - before_kib, 10 * 1024);
    }
}

// Records that cannot be written are no reason to end, to wait or to spin.
TEST_F(SluicedLimits, AFullDiskBehindTheLogIsNoReasonToStop)
{
    std::ofstream(folder_ / "sluiced.toml") << "[[service]]\nname = \"front\"\nlisten = \"systemd:front\"\nconnect = \""
                                            << upstream_.address() << "\"\nlog-connections = \"all\"\n";
    daemon_ = std::make_unique<Sluiced>(std::vector<std::string>{"--config", folder_ / "sluiced.toml"});
    UniqueFd full = open_file("/dev/full", O_WRONLY);
    daemon_->command().pass(front_.fd(), "front").errors(full.get());
    ASSERT_TRUE(daemon_->start());
    for (int i = 0; i < 50; ++i) {
        Pair pair = connect();
        ASSERT_EQ(send(pair.client.get(), "x", 1, 0), 1);
        char got;
        ASSERT_EQ(recv(pair.server.get(), &got, 1, 0), 1);
    }
    expect_idle();
}

TEST_F(SluicedLimits, OutOfDescriptorsItPausesSaysSoOnceAndRecovers)
{
    serve("wait-for-upstream = \"60s\"\n");
    Pair first = connect();
    // only so many descriptors are left that some of these clients find none
    rlimit before{}, few{};
    pid_t pid = daemon_->child().pid();
    ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &before), 0);
    few = {lowest_free_descriptor(pid) + 3, before.rlim_max};
    ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &few, nullptr), 0);
    std::vector<UniqueFd> waiting;
    for (int i = 0; i < 40; ++i)
        waiting.push_back(connect_client(front_.address()));
    ASSERT_TRUE(eventually([&] { return daemon_->child().errors().find("paus") != std::string::npos; }))
        << daemon_->child().errors();
    expect_idle();
    std::string text = daemon_->child().errors();
    EXPECT_EQ(text.find("paus"), text.rfind("paus")) << text;
    ASSERT_EQ(prlimit(daemon_->child().pid(), RLIMIT_NOFILE, &before, nullptr), 0);
    for (size_t i = 0; i < waiting.size(); ++i)
        EXPECT_TRUE(upstream_.accept()) << "a client that waited is served: " << i;
}

TEST_F(SluicedLimits, MoreConnectionsThanFilesAreRefusedAtTheStartWithTheNumbers)
{
    std::ofstream(folder_ / "big.toml") << "[[service]]\nname = \"big\"\nlisten = \"" << (folder_ / "big")
                                        << "\"\nconnect = \"/run/nobody\"\n[service.limits]\nconnections = 600\n";
    Sluiced daemon({"--config", folder_ / "big.toml"});
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    daemon.command().limit_files(1024);
    Child child = daemon.command().start();
    auto exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_NE(exit->code, 0);
    EXPECT_NE(child.errors().find("600"), std::string::npos) << child.errors();
    EXPECT_NE(child.errors().find("1024"), std::string::npos) << child.errors();
}

} // namespace
} // namespace sluice::test
