// SPDX-License-Identifier: LGPL-2.1-or-later

// What the helper tells about itself, its limits, and the signals that end it.

#include <map>
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
    EXPECT_TRUE(
        std::regex_search(output_of(helper({"--version"})), std::regex("sluice.* [0-9]+\\.[0-9]+\\.[0-9]+\n$")));
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

TEST_F(HelperOptions, StatsAreOneLineOfFields)
{
    const std::string line = said_after(5'000'000, 70'000, {"--stats"});
    expect_one_line(line);
    std::map<std::string, std::string> fields;
    const std::regex field("(\\w+)=(\\S+)");
    for (std::sregex_iterator found(line.begin(), line.end(), field), end; found != end; ++found)
        fields[(*found)[1]] = (*found)[2];
    EXPECT_NE(line.find(" stats "), std::string::npos) << line;
    EXPECT_EQ(fields["up_bytes"], "5000000");
    EXPECT_EQ(fields["down_bytes"], "70000");
    EXPECT_GT(std::stod(fields["seconds"]), 0);
    const long calls = std::stol(fields["calls"]);
    EXPECT_EQ(std::stol(fields["up_calls"]) + std::stol(fields["down_calls"]) + std::stol(fields["waits"]), calls);
    // a call moves one byte at least, and no more than the largest pipe holds
    EXPECT_GE(std::stol(fields["up_calls"]), 5);
    EXPECT_LT(calls, 100'000);
    for (const char *mode : {"up_mode", "down_mode"})
        EXPECT_TRUE(fields[mode] == "copy" || fields[mode] == "splice" || fields[mode] == "splice-pipe") << line;
}

TEST_F(HelperOptions, StatsComeAfterAFailureToo)
{
    RelaySession session = connect(Stdio::pipes, {"--stats"});
    session.output.reset();
    ASSERT_EQ(write(session.server.get(), "reply", 5), 5);
    const std::optional<Exit> exit = session.child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, exit_code::io);
    EXPECT_NE(session.child.errors().find(" stats "), std::string::npos) << session.child.errors();
}

TEST_F(HelperOptions, ProgressOnlyWhereItIsWanted)
{
    // stderr is no terminal here
    EXPECT_EQ(said_after(5'000'000, 1000, {"--progress"}), "");
    EXPECT_EQ(said_after(5'000'000, 1000, {"--progress=never"}), "");
    const std::string shown = said_after(5 << 20, 1000, {"--progress=always"});
    EXPECT_NE(shown.find("5.0 MiB up"), std::string::npos) << shown;
    EXPECT_NE(shown.find("1000 B down"), std::string::npos) << shown;
    EXPECT_TRUE(std::regex_search(shown, std::regex("/s, [0-9.]+ s"))) << shown;
    EXPECT_TRUE(shown.ends_with('\n')) << "the next prompt would stand on the same line";
}

TEST_F(HelperOptions, ProgressIsLiveOnATerminal)
{
    Ends terminal = make_terminal(true);
    RelaySession session =
        RelaySession::start(Stdio::pipes, helper({"--progress", daemon.address()}).errors(terminal.second.get()));
    session.server = daemon.accept();
    ASSERT_TRUE(session.server);
    ASSERT_EQ(write(session.input.get(), "0123456789", 10), 10);
    // it comes while nothing has ended yet
    Traffic traffic;
    std::string shown;
    traffic.drain(terminal.first.get()).keep = &shown;
    EXPECT_TRUE(traffic.run_until([&] { return shown.find("10 B up") != std::string::npos; })) << shown;
    EXPECT_EQ(shown.find('\n'), std::string::npos) << shown;
}

TEST_F(HelperOptions, SmallBufferPassesEverything)
{
    EXPECT_EQ(said_after(5'000'000, 5'000'000, {"--buffer-size=4096"}), "");
}

TEST_F(HelperOptions, IdleTimeoutEndsAQuietRelay)
{
    RelaySession session = connect(Stdio::pipes, {"--idle-timeout=200ms"});
    ASSERT_EQ(write(session.input.get(), "x", 1), 1);
    expect_exit(session.child, exit_code::unavailable);
}

TEST_F(HelperOptions, IdleTimeoutLeavesABusyRelayAlone)
{
    RelaySession session = connect(Stdio::pipes, {"--idle-timeout=200ms"});
    Traffic traffic;
    traffic.feed(session.input.get(), UINT64_MAX);
    Drain &arrived = traffic.drain(session.server.get());
    const Deadline well_after{1};
    EXPECT_TRUE(traffic.run_until([&] { return well_after.passed(); }));
    const uint64_t so_far = arrived.bytes;
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes > so_far + (64 << 20); }));
    EXPECT_TRUE(arrived.intact);
}

// The program ends as the signal would have ended it, so that whoever waits for it sees
// why; but only after it has put everything back (HelperFlags in helper_stdio_test).
class HelperSignal : public HelperTest, public ::testing::WithParamInterface<int> {
protected:
    static void expect_ended(Child &child)
    {
        const std::optional<Exit> exit = child.wait();
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->signal, GetParam()) << *exit;
        EXPECT_EQ(child.errors(), "");
    }
};

INSTANTIATE_TEST_SUITE_P(Signals, HelperSignal, ::testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto &which) { return sigabbrev_np(which.param); });

TEST_P(HelperSignal, EndsWhileIdle)
{
    RelaySession session = connect();
    ASSERT_TRUE(eventually([&] { return session.child.sleeping(); }));
    session.child.kill(GetParam());
    expect_ended(session.child);
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
    expect_ended(session.child);
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
    expect_ended(child);
}

} // namespace
} // namespace sluice::test
