// SPDX-License-Identifier: LGPL-2.1-or-later

// ssh has the user's login shell run the command: whichever it is, whatever it says
// itself, and however the path of the socket has to be quoted (case H8).

#include <sys/stat.h>

#include "support/helper.hpp"

namespace sluice::test {
namespace {

// In single quotes, which mean the same to sh, csh and fish but for a quote itself.
std::string quoted(const std::string &text)
{
    std::string result = "'";
    for (const char c : text)
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

// A request and its reply through a helper that is run like this; the noise comes first.
void expect_conversation(Listener &listener, const Command &command, const std::string &noise = "")
{
    constexpr uint64_t bytes = 1'000'000;
    RelaySession session = RelaySession::start(Stdio::pipes, command);
    session.server = listener.accept();
    ASSERT_TRUE(session.server) << session.child.errors();
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), bytes);
    up.when_done = [&] { traffic.close(session.input); };
    Drain &arrived = traffic.drain(session.server.get());
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(arrived.bytes, bytes);
    EXPECT_TRUE(arrived.intact);
    Feed &down = traffic.feed(session.server.get(), bytes, Pattern{2});
    down.when_done = [&] { traffic.close(session.server); };
    std::string received;
    Drain &output = traffic.drain(session.output.get());
    output.keep = &received;
    ASSERT_TRUE(traffic.run_until([&] { return output.done; }));
    EXPECT_EQ(received.substr(0, noise.size()), noise);
    received.erase(0, noise.size());
    EXPECT_EQ(received.size(), bytes);
    EXPECT_FALSE(Pattern{2}.first_difference(0, std::as_bytes(std::span{received})));
    const std::optional<Exit> exit = session.child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0) << session.child.errors();
}

class HelperShell : public HelperTest, public ::testing::WithParamInterface<const char *> {
protected:
    void SetUp() override
    {
        HelperTest::SetUp();
        const std::optional<Exit> exit = Command({"sh", "-c", "command -v \"$0\"", GetParam()}).start().wait();
        if (exit && exit->code == 0)
            return;
        if (std::getenv("CI"))
            FAIL() << GetParam() << " is not installed";
        GTEST_SKIP() << GetParam() << " is not installed";
    }

    // As sshd does it: the shell with -c and the whole command line in one word.
    Command by_shell(const std::string &command_line) const
    {
        Command command({GetParam(), "-c", command_line});
        command.env("HOME", dir.path().string()).env("LC_ALL", "C.UTF-8");
        return command;
    }
};

INSTANTIATE_TEST_SUITE_P(Shells, HelperShell, ::testing::Values("sh", "bash", "csh", "fish"),
                         [](const auto &which) { return which.param; });

TEST_P(HelperShell, PlainPath)
{
    expect_conversation(daemon, by_shell(helper_path() + " " + daemon.address()));
}

TEST_P(HelperShell, PathWithSpacesAndQuotes)
{
    for (const char *name : {"with space.sock", "it's.sock", "\"double\".sock", "$HOME.sock", "a;b&c|d.sock", "*?.sock",
                             "ümlaut.sock", "-r"}) {
        SCOPED_TRACE(name);
        Listener listener = Listener::unix_socket(dir / name);
        expect_conversation(listener, by_shell(quoted(helper_path()) + " " + quoted(listener.address())));
    }
}

TEST_P(HelperShell, ProgramInAFolderWithSpaces)
{
    std::filesystem::create_directory(dir / "my programs");
    const std::string program = dir / "my programs/sluice-ssh-helper";
    std::filesystem::create_symlink(helper_path(), program);
    expect_conversation(daemon, by_shell(quoted(program) + " " + quoted(daemon.address())));
}

// Start-up files that print: on stderr it is seen by the user, on stdout the client has
// to skip it. What comes after it is whole.
TEST_P(HelperShell, NoiseBeforeTheStart)
{
    expect_conversation(daemon,
                        by_shell("echo 'You have mail.'; " + quoted(helper_path()) + " " + quoted(daemon.address())),
                        "You have mail.\n");
    expect_conversation(
        daemon, by_shell("/bin/sh -c 'echo oops >&2'; " + quoted(helper_path()) + " " + quoted(daemon.address())));
}

TEST_P(HelperShell, ExitCodeAndMessageComeThrough)
{
    Child child = by_shell(quoted(helper_path()) + " " + quoted(dir / "no such.sock")).start();
    const std::optional<Exit> exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, exit_code::no_socket);
    EXPECT_NE(child.errors().find(dir / "no such.sock"), std::string::npos) << child.errors();
}

// A service account: nothing set at all.
TEST_F(HelperTest, EmptyEnvironment)
{
    expect_conversation(
        daemon, Command({"env", "-i", "/bin/sh", "-c", quoted(helper_path()) + " " + quoted(daemon.address())}));
}

} // namespace
} // namespace sluice::test
