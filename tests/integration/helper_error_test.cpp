// SPDX-License-Identifier: LGPL-2.1-or-later

// What cannot work says so in one line that names the address and the cause, and
// ends with the exit code of its kind (cases H6 and H7).

#include <sys/stat.h>

#include "support/helper.hpp"

namespace sluice::test {
namespace {

constexpr uid_t nobody = 65534;

class HelperError : public HelperTest {
protected:
    // One line on stderr that has all of these in it.
    static void expect_failure(Child child, int code, const std::vector<std::string> &parts)
    {
        const std::optional<Exit> exit = child.wait();
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->signal, 0);
        EXPECT_EQ(exit->code, code) << child.errors();
        expect_one_line(child.errors());
        for (const std::string &part : parts)
            EXPECT_NE(child.errors().find(part), std::string::npos) << child.errors();
    }

    // A program that another user may run, wherever the build folder is.
    Command helper_as_nobody(const std::string &address)
    {
        const std::string copy = dir / "helper";
        std::filesystem::copy_file(helper_path(), copy, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::permissions(copy, std::filesystem::perms(0755));
        Command command({copy, address});
        command.env("LC_ALL", "C.UTF-8");
        if (geteuid() == 0)
            command.as_user(nobody);
        return command;
    }
};

TEST_F(HelperError, MissingSocket)
{
    const std::string address = dir / "missing.sock";
    expect_failure(helper({address}).start(), exit_code::no_socket, {address, "No such file or directory"});
    const std::string nowhere = dir / "no/such/folder/daemon.sock";
    expect_failure(helper({nowhere}).start(), exit_code::no_socket, {nowhere, "No such file or directory"});
    expect_failure(helper({"unix:" + address}).start(), exit_code::no_socket, {address});
}

TEST_F(HelperError, NobodyListens)
{
    const std::string address = daemon.address();
    daemon.close();
    expect_failure(helper({address}).start(), exit_code::unavailable, {address, "Connection refused"});
}

TEST_F(HelperError, NobodyListensOnAbstractName)
{
    const std::string address = "unix:@" + (dir / "abstract");
    const std::optional<Exit> exit = helper({address}).start().wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, exit_code::unavailable);
}

TEST_F(HelperError, NoSocketAtAll)
{
    const std::string file = dir / "file";
    open_file(file, O_CREAT | O_WRONLY);
    // the system says "refused" to that, which would send the operator looking for a daemon
    expect_failure(helper({file}).start(), exit_code::no_socket, {file, "socket"});
    expect_failure(helper({dir / "."}).start(), exit_code::no_socket, {dir / ".", "socket"});
}

TEST_F(HelperError, PathThroughAFile)
{
    open_file(dir / "file", O_CREAT | O_WRONLY);
    expect_failure(helper({dir / "file/daemon.sock"}).start(), exit_code::no_socket, {dir / "file/daemon.sock"});
}

TEST_F(HelperError, NotPermitted)
{
    ASSERT_EQ(chmod(daemon.address().c_str(), 0), 0);
    expect_failure(helper_as_nobody(daemon.address()).start(), exit_code::not_permitted,
                   {daemon.address(), "Permission denied"});
}

TEST_F(HelperError, FolderNotPermitted)
{
    ASSERT_EQ(mkdir((dir / "closed").c_str(), 0700), 0);
    Listener inside = Listener::unix_socket(dir / "closed/daemon.sock");
    ASSERT_EQ(chmod((dir / "closed").c_str(), 0), 0);
    expect_failure(helper_as_nobody(inside.address()).start(), exit_code::not_permitted,
                   {inside.address(), "Permission denied"});
    ASSERT_EQ(chmod((dir / "closed").c_str(), 0700), 0);
}

TEST_F(HelperError, WrongKindOfSocket)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = dir / "datagram.sock";
    std::copy(path.begin(), path.end(), address.sun_path);
    const UniqueFd datagram{must(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")};
    must(bind(datagram.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)), "bind");
    const std::optional<Exit> exit = helper({path}).start().wait();
    ASSERT_TRUE(exit);
    EXPECT_NE(exit->code, 0);
    EXPECT_EQ(exit->signal, 0);
}

TEST_F(HelperError, PathTooLong)
{
    const std::string address = dir / std::string(200, 'x');
    expect_failure(helper({address}).start(), exit_code::usage, {address, "107"});
    // the longest that fits is no usage error
    const std::string fits = dir / std::string(107 - (dir / "").size(), 'x');
    ASSERT_EQ(fits.size(), 107u);
    expect_failure(helper({fits}).start(), exit_code::no_socket, {fits});
    Listener longest = Listener::unix_socket(fits);
    RelaySession session = RelaySession::start(Stdio::pipes, helper({fits}));
    EXPECT_TRUE(longest.accept());
}

TEST_F(HelperError, TcpRefused)
{
    Listener listener = Listener::tcp4();
    const std::string address = listener.address();
    listener.close();
    expect_failure(helper({address}).start(), exit_code::unavailable, {address, "Connection refused"});
}

TEST_F(HelperError, TcpNameUnknown)
{
    expect_failure(helper({"tcp:no-such-host.invalid:1"}).start(), exit_code::unavailable, {"no-such-host.invalid"});
}

TEST_F(HelperError, Usage)
{
    const std::vector<std::vector<std::string>> wrong = {
        {},
        {""},
        {daemon.address(), daemon.address()},
        {"--no-such-option", daemon.address()},
        {"--connect-timeout=soon", daemon.address()},
        {"--buffer-size=x", daemon.address()},
        {"--buffer-size=0", daemon.address()},
        {"--buffer-size=2M", daemon.address()},
        {"--progress=sometimes", daemon.address()},
        {"--connect-timeout=-1", daemon.address()},
        {"--log-level=loud", daemon.address()},
        {"relative/path"},
        {"unix:"},
        {"unix:relative"},
        {"unix:@"},
        {"tcp:host"},
        {"tcp:host:"},
        {"tcp:host:0"},
        {"tcp:host:65536"},
        {"tcp:host:80/"},
        {"tcp::80"},
        {"tcp:[::1:80"},
        {"tcp:[::1]80"},
        {"tcp:::1:80"},
        {"vsock:2"},
        {"vsock:two:1"},
        {"vsock:2:4294967295"},
        {"nonsense:1"},
        {"qemu+ssh://host/system"},
        {"qemu:///system?mode=sideways"},
    };
    for (const std::vector<std::string> &arguments : wrong) {
        SCOPED_TRACE(arguments.empty() ? "no arguments" : arguments.back());
        expect_failure(helper(arguments).start(), exit_code::usage, {});
    }
    EXPECT_FALSE(daemon.accept(Deadline{0})) << "connected in spite of a usage error";
}

class HelperOutputGone : public HelperTest, public ::testing::WithParamInterface<Stdio> {};

INSTANTIATE_TEST_SUITE_P(Stdio, HelperOutputGone, ::testing::Values(Stdio::pipes, Stdio::socketpair),
                         [](const auto &which) { return name_of(which.param); });

TEST_P(HelperOutputGone, SaysSoAndEnds)
{
    RelaySession session = connect(GetParam());
    session.output.reset();
    if (GetParam() == Stdio::socketpair)
        session.input.reset(); // the same socket
    ASSERT_GE(write(session.server.get(), "reply", 5), 0);
    expect_exit(session.child, exit_code::io);
}

TEST_P(HelperOutputGone, SaysSoAndEndsInTheMiddleOfALargeReply)
{
    RelaySession session = connect(GetParam());
    Traffic traffic;
    Feed &down = traffic.feed(session.server.get(), 64 << 20);
    Drain &output = traffic.drain(session.output.get());
    ASSERT_TRUE(traffic.run_until([&] { return output.bytes > 16 << 20; }));
    traffic.close(session.output);
    if (GetParam() == Stdio::socketpair)
        session.input.reset();
    EXPECT_TRUE(traffic.run_until([&] { return down.error != 0 || down.done; }));
    expect_exit(session.child, exit_code::io);
}

// An I/O error that is no closed pipe.
TEST_F(HelperTest, FullOutputDeviceIsAnError)
{
    const UniqueFd full = open_file("/dev/full", O_WRONLY);
    Ends input = make_pipe();
    Child child = helper({daemon.address()}).input(input.first.get()).output(full.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    ASSERT_EQ(write(server.get(), "reply", 5), 5);
    expect_exit(child, exit_code::io);
    EXPECT_NE(child.errors().find("No space left on device"), std::string::npos) << child.errors();
}

// stderr may be gone as well; that is no reason to die of a signal.
TEST_F(HelperTest, MessageThatNobodyReadsIsNotFatal)
{
    Ends errors = make_pipe();
    errors.first.reset();
    const std::optional<Exit> exit = helper({dir / "missing"}).errors(errors.second.get()).start().wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->signal, 0);
    EXPECT_EQ(exit->code, exit_code::no_socket);
}

} // namespace
} // namespace sluice::test
