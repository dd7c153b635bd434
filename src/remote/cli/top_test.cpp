// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice top in a real terminal: what is on its screen, and what it leaves behind.

#include <sys/ioctl.h>

#include "remote/cli/cli_fixture.hpp"

namespace sluice::cli {
namespace {

constexpr const char *enter_screen = "\x1b[?1049h";
constexpr const char *leave_screen = "\x1b[?25h\x1b[?1049l";

class TopOnATerminal : public CliTest {
protected:
    void SetUp() override
    {
        CliTest::SetUp();
        resize(30, 120);
        before = settings();
    }

    void start(std::vector<std::string> args = {"top", "--interval=100ms"}, const char *no_color = "")
    {
        top = command(std::move(args))
                  .env("TERM", "xterm")
                  .env("NO_COLOR", no_color)
                  .input(terminal.second.get())
                  .output(terminal.second.get())
                  .start();
    }
    void resize(unsigned short rows, unsigned short columns)
    {
        const winsize size{rows, columns, 0, 0};
        test::must(ioctl(terminal.first.get(), TIOCSWINSZ, &size), "TIOCSWINSZ");
    }
    termios settings() const
    {
        termios now{};
        test::must(tcgetattr(terminal.second.get(), &now), "tcgetattr");
        return now;
    }
    bool restored() const
    {
        const termios now = settings();
        return now.c_lflag == before.c_lflag && now.c_iflag == before.c_iflag && now.c_oflag == before.c_oflag;
    }
    void type(char key) { ASSERT_EQ(write(terminal.first.get(), &key, 1), 1); }

    // Read what is drawn until it is as wanted.
    template <class Wanted>
    bool until(Wanted &&wanted)
    {
        const test::Deadline deadline;
        while (!wanted()) {
            char block[4096];
            if (!test::wait_for(terminal.first.get(), POLLIN, deadline))
                return false;
            const ssize_t count = read(terminal.first.get(), block, sizeof block);
            if (count <= 0)
                return false;
            drawn.append(block, static_cast<size_t>(count));
        }
        return true;
    }
    // The newest picture that is whole: its lines, without escape sequences.
    std::vector<std::string> picture() const
    {
        const size_t end = drawn.rfind("\x1b[J");
        const size_t start = end == std::string::npos ? end : drawn.rfind("\x1b[H", end);
        if (start == std::string::npos)
            return {};
        std::vector<std::string> lines(1);
        for (size_t i = start; i < end; ++i) {
            if (drawn[i] == '\x1b')
                i = drawn.find_first_not_of("0123456789;?", i + 2);
            else if (drawn[i] == '\n')
                lines.emplace_back();
            else if (drawn[i] != '\r')
                lines.back() += drawn[i];
        }
        return lines;
    }
    bool shows(const std::string &text) const
    {
        for (const std::string &line : picture()) {
            if (line.find(text) != std::string::npos)
                return true;
        }
        return false;
    }
    void expect_end(int code, int signal)
    {
        ASSERT_TRUE(until([&] { return drawn.ends_with(leave_screen); })) << drawn;
        const auto exit = top.wait();
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->code, code) << top.errors();
        EXPECT_EQ(exit->signal, signal);
        EXPECT_TRUE(restored());
        EXPECT_EQ(top.errors(), "");
    }

    test::Ends terminal = test::make_terminal(false);
    termios before{};
    test::Child top;
    std::string drawn;
};

TEST_F(TopOnATerminal, ShowsRatesAndTheBusiestFirst)
{
    start();
    ASSERT_TRUE(until([&] { return shows("3.0 MiB/s"); })) << drawn;
    EXPECT_TRUE(drawn.starts_with(enter_screen));
    EXPECT_FALSE(restored());
    EXPECT_EQ(settings().c_lflag & (ICANON | ECHO | ISIG), 0u);
    const auto lines = picture();
    ASSERT_EQ(lines.size(), 30u);
    EXPECT_TRUE(lines[0].starts_with("sluiced 1.2.3, ready for 1 h 0 min: 2 connections, 1.0 KiB/s up, 3.0 MiB/s down"))
        << lines[0];
    EXPECT_EQ(lines[3], "web      open          2/256    7.0        0.0  1.0 KiB/s  3.0 MiB/s  1 of 2 up");
    auto row_of = [&](const char *beginning) {
        return std::find_if(lines.begin(), lines.end(), [&](const auto &line) { return line.starts_with(beginning); });
    };
    EXPECT_LT(row_of("18  web"), row_of("17  web"));
    EXPECT_TRUE(row_of("18  web")->starts_with("18  web      0 B/s  2.0 MiB/s")) << *row_of("18  web");
    EXPECT_EQ(lines[29], "q: quit");
    type('q');
    expect_end(0, 0);
}

TEST_F(TopOnATerminal, EndsAtControlC)
{
    start();
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    type('\x03');
    expect_end(0, 0);
}

TEST_F(TopOnATerminal, EndsAtASignalAndTidiesUp)
{
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        drawn.clear();
        start();
        ASSERT_TRUE(until([&] { return shows("q: quit"); }));
        top.kill(signal);
        expect_end(-1, signal);
    }
}

TEST_F(TopOnATerminal, FollowsTheSizeOfTheTerminal)
{
    start({"top", "--interval=1h"});
    ASSERT_TRUE(until([&] { return picture().size() == 30; }));
    resize(10, 20);
    top.kill(SIGWINCH);
    ASSERT_TRUE(until([&] { return picture().size() == 10; })) << drawn;
    for (const std::string &line : picture())
        EXPECT_LE(line.size(), 20u) << line;
    type('q');
    expect_end(0, 0);
}

TEST_F(TopOnATerminal, StopsAndGoesOn)
{
    start({"top", "--interval=1h"});
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    type('\x1a');
    ASSERT_TRUE(until([&] { return drawn.ends_with(leave_screen); }));
    ASSERT_TRUE(test::eventually([&] {
        const std::string stat = test::file_text("/proc/" + std::to_string(top.pid()) + "/stat");
        return stat.find(") T ") != std::string::npos;
    }));
    EXPECT_TRUE(restored());
    drawn.clear();
    top.kill(SIGCONT);
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    EXPECT_TRUE(drawn.starts_with(enter_screen));
    EXPECT_FALSE(restored());
    type('q');
    expect_end(0, 0);
}

TEST_F(TopOnATerminal, SaysThatTheDaemonHasGoneAndFindsTheNext)
{
    start();
    ASSERT_TRUE(until([&] { return shows("3.0 MiB/s"); }));
    stop_daemon();
    ASSERT_TRUE(until([&] { return shows("there is no such socket"); })) << drawn;
    EXPECT_TRUE(shows("web"));
    start_daemon();
    ASSERT_TRUE(until([&] { return !shows("there is no such socket"); })) << drawn;
    type('q');
    expect_end(0, 0);
}

TEST_F(TopOnATerminal, HasColoursUnlessTheyAreUnwanted)
{
    start();
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    EXPECT_NE(drawn.find("\x1b[7m"), std::string::npos);
    type('q');
    expect_end(0, 0);
    drawn.clear();
    start({"top", "--interval=100ms"}, "1");
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    type('q');
    expect_end(0, 0);
    for (size_t at = 0; (at = drawn.find('\x1b', at)) != std::string::npos; ++at)
        EXPECT_NE(drawn[drawn.find_first_not_of("0123456789;?", at + 2)], 'm') << drawn.substr(at + 1, 8);
}

// Nobody reads the terminal: it still looks, and ends when it is told to.
TEST_F(TopOnATerminal, ATerminalThatStandsStillDoesNotHoldItUp)
{
    start();
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    for (int i = 0; i < 100; ++i) {
        top.kill(SIGWINCH);
        ASSERT_TRUE(test::eventually([&] { return top.sleeping(); }));
    }
    while (!told.empty())
        told.clear();
    ASSERT_TRUE(hears("snapshot with connections"));
    ASSERT_TRUE(hears("snapshot with connections"));
    top.kill(SIGTERM);
    const auto exit = top.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->signal, SIGTERM);
    EXPECT_TRUE(restored());
}

TEST_F(TopOnATerminal, ATerminalThatGoesAwayEndsIt)
{
    start();
    ASSERT_TRUE(until([&] { return shows("q: quit"); }));
    terminal.second.reset();
    terminal.first.reset();
    const auto exit = top.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->signal, SIGHUP);
}

TEST_F(TopOnATerminal, WithoutADaemonTheScreenIsLeftAlone)
{
    stop_daemon();
    start();
    const auto exit = top.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 66);
    EXPECT_NE(top.errors().find("there is no such socket"), std::string::npos) << top.errors();
    EXPECT_TRUE(restored());
    char byte;
    EXPECT_FALSE(test::wait_for(terminal.first.get(), POLLIN, test::Deadline{0}) &&
                 read(terminal.first.get(), &byte, 1) > 0);
}

TEST_F(TopOnATerminal, ADumbTerminalWillNotDo)
{
    top = command({"top"}).env("TERM", "dumb").input(terminal.second.get()).output(terminal.second.get()).start();
    const auto exit = top.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 64);
    EXPECT_NE(top.errors().find("TERM"), std::string::npos) << top.errors();
}

} // namespace
} // namespace sluice::cli
