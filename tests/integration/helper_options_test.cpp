// SPDX-License-Identifier: LGPL-2.1-or-later

// What the helper tells about itself, its limits, and the signals that end it.

#include <regex>

#include "support/helper.hpp"

namespace sluice::test {
namespace {

class HelperOptions : public HelperTest {
protected:
    // Let so much through each way and end; what was said on stderr.
    std::string said_after(uint64_t up_bytes, uint64_t down_bytes, const std::vector<std::string> &options)
    {
        RelaySession session = connect(Stdio::pipes, options);
        Traffic traffic;
        Feed &up = traffic.feed(session.input.get(), up_bytes);
        up.when_done = [&] { traffic.close(session.input); };
        Feed &down = traffic.feed(session.server.get(), down_bytes, Pattern{2});
        down.when_done = [&] { shutdown(session.server.get(), SHUT_WR); };
        Drain &arrived = traffic.drain(session.server.get());
        Drain &output = traffic.drain(session.output.get(), Pattern{2});
        EXPECT_TRUE(traffic.run_until([&] { return arrived.done && output.done; }));
        EXPECT_EQ(arrived.bytes, up_bytes);
        EXPECT_EQ(output.bytes, down_bytes);
        EXPECT_TRUE(arrived.intact && output.intact);
        const std::optional<Exit> exit = session.child.wait();
        EXPECT_TRUE(exit && exit->code == 0) << session.child.errors();
        return session.child.errors();
    }

    static std::string output_of(const Command &command, int expected_code = 0)
    {
        Ends output = make_pipe();
        Child child = Command(command).output(output.second.get()).start();
        output.second.reset();
        std::string text;
        Traffic traffic;
        Drain &drain = traffic.drain(output.first.get());
        drain.keep = &text;
        EXPECT_TRUE(traffic.run_until([&] { return drain.done; }));
        expect_exit(child, expected_code);
        return text;
    }
};

TEST_F(HelperOptions, HelpNamesEveryOption)
{
    const std::string help = output_of(helper({"--help"}));
    for (const char *option : {"--connect-timeout", "--idle-timeout", "--fin-timeout", "--buffer-size", "--log-level",
                               "--progress", "--stats", "--version"})
        EXPECT_NE(help.find(option), std::string::npos) << option << "\n" << help;
}

TEST_F(HelperOptions, Version)
{
    EXPECT_TRUE(std::regex_search(output_of(helper({"--version"})), std::regex("sluice.* [0-9]+\\.[0-9]+\\.[0-9]+\n$")));
}

TEST_F(HelperOptions, QuietUnlessAsked)
{
    EXPECT_EQ(said_after(1000, 1000, {}), "");
}

TEST_F(HelperOptions, DebugLinesCarryFractionalSeconds)
{
    const std::string log = said_after(1000, 1000, {"--log-level=debug"});
    std::istringstream lines(log);
    double last = 0;
    int stamped = 0;
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
        ASSERT_TRUE(std::regex_search(line, found, std::regex("([0-9]+\\.[0-9]{3,})"))) << line;
        const double at = std::stod(found[1]);
        EXPECT_GE(at, last) << log;
        last = at;
        ++stamped;
    }
    EXPECT_GE(stamped, 4) << log;
    for (const char *step : {"connect", "first byte", "last byte", "close"})
        EXPECT_NE(log.find(step), std::string::npos) << step << "\n" << log;
}

TEST_F(HelperOptions, SmallBufferPassesEverything)
{
    EXPECT_EQ(said_after(5'000'000, 5'000'000, {"--buffer-size=4096"}), "");
}

TEST_F(HelperOptions, IdleTimeoutEndsAQuietRelay)
{
    RelaySession session = connect(Stdio::pipes, {"--idle-timeout=1"});
    ASSERT_EQ(write(session.input.get(), "x", 1), 1);
    expect_exit(session.child, exit_code::unavailable);
}

TEST_F(HelperOptions, IdleTimeoutLeavesABusyRelayAlone)
{
    RelaySession session = connect(Stdio::pipes, {"--idle-timeout=1"});
    Traffic traffic;
    traffic.feed(session.input.get(), UINT64_MAX);
    Drain &arrived = traffic.drain(session.server.get());
    const Deadline well_after{2};
    EXPECT_TRUE(traffic.run_until([&] { return well_after.passed(); }));
    const uint64_t so_far = arrived.bytes;
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes > so_far + (64 << 20); }));
    EXPECT_TRUE(arrived.intact);
}

class HelperSignal : public HelperTest, public ::testing::WithParamInterface<int> {
};

INSTANTIATE_TEST_SUITE_P(Signals, HelperSignal, ::testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto &which) { return sigabbrev_np(which.param); });

TEST_P(HelperSignal, EndsWhileIdle)
{
    RelaySession session = connect();
    ASSERT_TRUE(eventually([&] { return session.child.sleeping(); }));
    session.child.kill(GetParam());
    ASSERT_TRUE(session.child.wait());
    // the daemon has its end of it
    char byte;
    ASSERT_TRUE(wait_for(session.server.get(), POLLIN));
    EXPECT_EQ(read(session.server.get(), &byte, 1), 0);
}

TEST_P(HelperSignal, EndsWhileStalled)
{
    RelaySession session = connect();
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 64 << 20);
    Feed &down = traffic.feed(session.server.get(), 64 << 20);
    ASSERT_TRUE(traffic.run_until([&] { return stalled(up, session.child) && stalled(down, session.child); }));
    session.child.kill(GetParam());
    EXPECT_TRUE(session.child.wait());
}

TEST_P(HelperSignal, EndsWhileConnecting)
{
    Listener busy = Listener::unix_socket(dir / "busy.sock", 0);
    UniqueFd taken{must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
    sockaddr_un address{};
    socklen_t size = sizeof(address);
    must(getsockname(busy.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
    must(::connect(taken.get(), reinterpret_cast<sockaddr *>(&address), size), "connect");
    Child child = helper({"--connect-timeout=600", busy.address()}).start();
    ASSERT_TRUE(eventually([&] { return child.sleeping(); }));
    child.kill(GetParam());
    EXPECT_TRUE(child.wait());
}

} // namespace
} // namespace sluice::test
