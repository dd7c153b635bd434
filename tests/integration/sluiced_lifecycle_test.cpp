// SPDX-License-Identifier: LGPL-2.1-or-later

// How sluiced begins, is changed while it runs, and ends, and that no client is lost by
// any of it (cases P8 to P11 and P15).

#include <sys/stat.h>

#include <thread>

#include "support/sluiced.hpp"

namespace sluice::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

class SluicedLifecycle : public ::testing::Test {
protected:
    SluicedLifecycle()
        : front_(Listener::unix_socket(folder_ / "front", 1100)), upstream_(Listener::unix_socket(folder_ / "up", 1100))
    {
        signal(SIGPIPE, SIG_IGN);
    }

    Sluiced &start(std::vector<std::string> arguments, bool pass = true)
    {
        daemon_ = std::make_unique<Sluiced>(std::move(arguments));
        if (pass)
            daemon_->command().pass(front_.fd(), "front");
        EXPECT_TRUE(daemon_->start()) << daemon_->child().errors();
        return *daemon_;
    }
    void write_config(const std::string &text) { std::ofstream(folder_ / "sluiced.toml") << text; }
    std::string service(const std::string &name, const std::string &listen, const std::string &connect) const
    {
        return "[[service]]\nname = \"" + name + "\"\nlisten = \"" + listen + "\"\nconnect = \"" + connect + "\"\n";
    }

    struct Pair {
        UniqueFd client, server;
    };
    Pair connect(Listener &upstream, const std::string &front)
    {
        Pair pair{connect_client(front), upstream.accept()};
        EXPECT_TRUE(pair.client);
        EXPECT_TRUE(pair.server);
        return pair;
    }
    Pair connect() { return connect(upstream_, front_.address()); }

    static bool passes(Pair &pair)
    {
        char got;
        return send(pair.client.get(), "x", 1, 0) == 1 && wait_for(pair.server.get(), POLLIN) &&
               recv(pair.server.get(), &got, 1, 0) == 1 && got == 'x';
    }

    TempDir folder_;
    Listener front_, upstream_;
    std::unique_ptr<Sluiced> daemon_;
};

// --- P8: SIGTERM -----------------------------------------------------------------------

TEST_F(SluicedLifecycle, SigtermLetsATransferEnd)
{
    Sluiced &daemon = start({upstream_.address()});
    Pair pair = connect();
    Traffic traffic;
    Feed &up = traffic.feed(pair.client.get(), 30 * MiB);
    Drain &arrived = traffic.drain(pair.server.get(), up.pattern);
    ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes > MiB; }));
    daemon.child().kill(SIGTERM);
    ASSERT_TRUE(daemon.notify().wait_for_text("STOPPING=1"));
    up.when_done = [&] { traffic.close(pair.client); };
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_TRUE(arrived.intact);
    EXPECT_EQ(arrived.bytes, 30 * MiB);
    pair.server.reset();
    auto exit = daemon.child().wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0);
}

TEST_F(SluicedLifecycle, TheDrainTimeoutIsTheEndOfIt)
{
    Sluiced &daemon = start({"--drain-timeout=100ms", upstream_.address()});
    Pair pair = connect();
    auto exit = daemon.stop();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0);
    EXPECT_NE(daemon.child().errors().find("1 connection"), std::string::npos) << daemon.child().errors();
}

TEST_F(SluicedLifecycle, ASecondSigtermCuts)
{
    Sluiced &daemon = start({"--drain-timeout=1h", upstream_.address()});
    Pair pair = connect();
    daemon.child().kill(SIGTERM);
    ASSERT_TRUE(daemon.notify().wait_for_text("STOPPING=1"));
    auto exit = daemon.stop();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0);
}

TEST_F(SluicedLifecycle, WhoComesWhileItDrainsIsServedByTheNextProcess)
{
    Sluiced &old = start({upstream_.address()});
    Pair pair = connect();
    old.child().kill(SIGTERM);
    ASSERT_TRUE(old.notify().wait_for_text("STOPPING=1"));
    UniqueFd late = connect_client(front_.address());
    ASSERT_TRUE(late);
    pair = {};
    ASSERT_TRUE(old.child().wait());
    start({upstream_.address()});
    UniqueFd server = upstream_.accept();
    ASSERT_TRUE(server);
    Pair next{std::move(late), std::move(server)};
    EXPECT_TRUE(passes(next));
}

// --- P9: idle exit -----------------------------------------------------------------------

// Clients that come at the very moment of the exit: a supervisor starts the next process
// as soon as one has ended, as systemd does, and every client must get its answer.
TEST_F(SluicedLifecycle, NoClientIsLostToTheIdleExit)
{
    constexpr int clients = 1000;
    write_config("[daemon]\nexit-idle-time = \"1ms\"\n" + service("one", "systemd:front", upstream_.address()));
    std::atomic<bool> over{false};
    std::thread echo([&] {
        while (!over) {
            UniqueFd server = upstream_.accept(Deadline{0.05});
            char got;
            if (server && recv(server.get(), &got, 1, 0) == 1)
                send(server.get(), &got, 1, 0);
        }
    });
    std::atomic<int> processes{0};
    std::thread supervisor([&] {
        Command command({sluiced_path(), "--config", folder_ / "sluiced.toml"});
        command.pass(front_.fd(), "front");
        while (!over) {
            // as systemd: not before a client is there
            if (!wait_for(front_.fd(), POLLIN, Deadline{0.05}))
                continue;
            Child child = command.start();
            ++processes;
            while (!over && !child.wait(Deadline{0.05}))
                ;
        }
    });
    int answered = 0;
    for (int i = 0; i < clients; ++i) {
        UniqueFd client = connect_client(front_.address());
        char sent = char(i), got = 0;
        if (client && send(client.get(), &sent, 1, 0) == 1 && wait_for(client.get(), POLLIN) &&
            recv(client.get(), &got, 1, 0) == 1 && got == sent)
            ++answered;
        client.reset();
        // from none at all to longer than the idle time: some meet the exit
        std::this_thread::sleep_for(std::chrono::microseconds{(i % 16) * 200});
    }
    over = true;
    supervisor.join();
    echo.join();
    EXPECT_EQ(answered, clients);
    EXPECT_GT(processes, 1) << "it never exited, so nothing was tested";
}

// --- P10 and P11: activation ---------------------------------------------------------------

TEST_F(SluicedLifecycle, APassedSocketsPathIsStillThereAfterTheEnd)
{
    Sluiced &daemon = start({upstream_.address()});
    ASSERT_TRUE(daemon.stop());
    EXPECT_TRUE(std::filesystem::is_socket(front_.address()));
}

TEST_F(SluicedLifecycle, SocketsAreMatchedByName)
{
    Listener other = Listener::unix_socket(folder_ / "other-front");
    Listener other_up = Listener::unix_socket(folder_ / "other-up");
    write_config(service("one", "systemd:first", upstream_.address()) +
                 service("two", "systemd:second", other_up.address()));
    Sluiced daemon({"--config", folder_ / "sluiced.toml"});
    daemon.command().pass(other.fd(), "second").pass(front_.fd(), "first");
    ASSERT_TRUE(daemon.start()) << daemon.child().errors();
    Pair one = connect();
    EXPECT_TRUE(passes(one));
    Pair two = connect(other_up, other.address());
    EXPECT_TRUE(passes(two));
}

TEST_F(SluicedLifecycle, AMissingNameIsSaidWithThoseThatThereAre)
{
    write_config(service("one", "systemd:first", upstream_.address()));
    Sluiced daemon({"--config", folder_ / "sluiced.toml"});
    daemon.command().pass(front_.fd(), "frist");
    Child child = daemon.command().start();
    auto exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_NE(exit->code, 0);
    EXPECT_NE(child.errors().find("\"first\""), std::string::npos) << child.errors();
    EXPECT_NE(child.errors().find("frist"), std::string::npos) << child.errors();
}

TEST_F(SluicedLifecycle, WithoutASocketItSaysWhatToDo)
{
    Sluiced daemon({upstream_.address()});
    Child child = daemon.command().start();
    auto exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_NE(exit->code, 0);
    EXPECT_NE(child.errors().find("systemd-socket-activate"), std::string::npos) << child.errors();
}

// --- P15: reload -----------------------------------------------------------------------------

TEST_F(SluicedLifecycle, AReloadTakesEffectForNewConnectionsAndLeavesTheOldAlone)
{
    Listener second_up = Listener::unix_socket(folder_ / "second-up");
    write_config(service("one", "systemd:front", upstream_.address()));
    Sluiced &daemon = start({"--config", folder_ / "sluiced.toml"});
    Pair old = connect();
    write_config(service("one", "systemd:front", second_up.address()));
    daemon.notify().forget();
    daemon.child().kill(SIGHUP);
    ASSERT_TRUE(daemon.notify().wait_for_text("RELOADING=1"));
    ASSERT_TRUE(daemon.notify().wait_for_text("READY=1"));
    Pair now = connect(second_up, front_.address());
    EXPECT_TRUE(passes(now));
    EXPECT_TRUE(passes(old));
}

TEST_F(SluicedLifecycle, ABrokenFileChangesNothingAtAll)
{
    Listener second_up = Listener::unix_socket(folder_ / "second-up");
    write_config(service("one", "systemd:front", upstream_.address()));
    Sluiced &daemon = start({"--config", folder_ / "sluiced.toml"});
    Pair old = connect();
    for (const std::string &broken :
         {service("one", "systemd:front", second_up.address()) + "colour = \"blue\"\n",
          service("one", "systemd:front", second_up.address()) + service("two", folder_ / "no/such/folder", "/run/x"),
          std::string("[[service]\n")}) {
        write_config(broken);
        daemon.notify().forget();
        daemon.child().kill(SIGHUP);
        ASSERT_TRUE(daemon.notify().wait_for_text("READY=1"));
        Pair now = connect();
        EXPECT_TRUE(passes(now)) << "the old upstream still";
        EXPECT_TRUE(passes(old));
    }
    EXPECT_NE(daemon.child().errors().find("sluiced.toml:5"), std::string::npos) << daemon.child().errors();
}

TEST_F(SluicedLifecycle, SocketsOfItsOwnComeAndGoWithAReload)
{
    std::string a = folder_ / "a", b = folder_ / "b";
    write_config(service("one", a, upstream_.address()));
    Sluiced &daemon = start({"--config", folder_ / "sluiced.toml"}, false);
    Pair old = connect(upstream_, a);
    write_config(service("two", b, upstream_.address()));
    daemon.notify().forget();
    daemon.child().kill(SIGHUP);
    ASSERT_TRUE(daemon.notify().wait_for_text("READY=1"));
    EXPECT_FALSE(std::filesystem::exists(a));
    Pair now = connect(upstream_, b);
    EXPECT_TRUE(passes(now));
    EXPECT_TRUE(passes(old)) << "its service is gone, the connection is not";
}

TEST_F(SluicedLifecycle, TheManagerHearsOfConnections)
{
    Sluiced &daemon = start({"--connections-max=7", upstream_.address()});
    EXPECT_NE(daemon.notify().heard().find("STATUS=0/7 connections, 0 refused"), std::string::npos)
        << daemon.notify().heard();
    Pair pair = connect();
    EXPECT_TRUE(daemon.notify().wait_for_text("STATUS=1/7 connections, 0 refused"));
}

TEST_F(SluicedLifecycle, TheWatchdogIsFed)
{
    daemon_ = std::make_unique<Sluiced>(std::vector<std::string>{"--workers=2", upstream_.address()});
    daemon_->command().pass(front_.fd(), "front").env("WATCHDOG_USEC", "200000");
    ASSERT_TRUE(daemon_->start());
    ASSERT_TRUE(daemon_->notify().wait_for_text("WATCHDOG=1"));
    daemon_->notify().forget();
    EXPECT_TRUE(daemon_->notify().wait_for_text("WATCHDOG=1"));
}

} // namespace
} // namespace sluice::test
