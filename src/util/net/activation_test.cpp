// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/activation.hpp"

#include <map>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "util/net/proxy_test_support.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

using Environment = std::map<std::string, std::string>;

// Everything that a program wrote to a file of ours.
std::string contents(const UniqueFd &file)
{
    std::string text(4096, '\0');
    ssize_t got = pread(file.get(), text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
}

// What the probe says that is started with `fds` as its 3, 4, ... The pid is its own,
// unless `environment` says otherwise.
std::string probe(const std::vector<int> &fds, const Environment &environment)
{
    UniqueFd out(memfd_create("out", MFD_CLOEXEC));
    in_child([&] {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out.get(), 1);
        std::vector<int> moved; // out of the way of the numbers they get
        for (int fd : fds)
            moved.push_back(fcntl(fd, F_DUPFD, 100));
        syscall(SYS_close_range, 3, 99, 0);
        for (size_t i = 0; i < moved.size(); ++i)
            dup2(moved[i], 3 + static_cast<int>(i));
        syscall(SYS_close_range, 100, ~0u, 0);
        setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
        for (const auto &[name, value] : environment)
            setenv(name.c_str(), value.c_str(), 1);
        execl(PROBE, PROBE, nullptr);
        return 127;
    });
    return contents(out);
}

class Activation : public ::testing::Test {
protected:
    TestDir dir;
    UniqueFd a = make_socket(dir / "a", 5);
    UniqueFd b = make_socket(dir / "b", 5);
    std::string a_text = " unix:" + dir / "a";
    std::string b_text = " unix:" + dir / "b";
};

UniqueFd listening_tcp(const std::string &host)
{
    SocketAddress at = inet_address(host, 0);
    UniqueFd fd(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(fd.get(), at.get(), at.size) != 0 || listen(fd.get(), 5) != 0)
        throw std::runtime_error("cannot listen on " + host);
    return fd;
}

TEST_F(Activation, TakesThemInTheOrderTheyCome)
{
    UniqueFd tcp = listening_tcp("127.0.0.1"), tcp6 = listening_tcp("::1");
    EXPECT_EQ(
        probe({a.get(), tcp.get(), b.get(), tcp6.get()}, {{"LISTEN_FDS", "4"}, {"LISTEN_FDNAMES", "web:db:web:x"}}),
        "3 web" + a_text + "\n4 db " + to_string(local_address(tcp.get())) + "\n5 web" + b_text + "\n6 x " +
            to_string(local_address(tcp6.get())) + "\n");
    EXPECT_EQ(probe({b.get(), a.get()}, {{"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "x:y"}}),
              "3 x" + b_text + "\n4 y" + a_text + "\n");
}

TEST_F(Activation, WithoutNames)
{
    EXPECT_EQ(probe({a.get(), b.get()}, {{"LISTEN_FDS", "2"}}), "3 unknown" + a_text + "\n4 unknown" + b_text + "\n");
}

TEST_F(Activation, WithoutAnything)
{
    EXPECT_EQ(probe({}, {}), "");
    EXPECT_EQ(probe({a.get()}, {}), "") << "a descriptor that nobody announced is not ours";
}

TEST_F(Activation, ForAnotherProcess)
{
    EXPECT_EQ(probe({a.get()}, {{"LISTEN_FDS", "1"}, {"LISTEN_PID", "1"}}), "");
}

TEST_F(Activation, FewerThanWereAnnounced)
{
    EXPECT_EQ(probe({a.get()}, {{"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "a:b"}}),
              "error 9 LISTEN_FDS=2 sockets were to be passed, from descriptor 3 on, but not all of them are open\n");
}

TEST_F(Activation, MoreThanWereAnnounced)
{
    EXPECT_EQ(probe({a.get(), b.get()}, {{"LISTEN_FDS", "1"}, {"LISTEN_FDNAMES", "a"}}), "3 a" + a_text + "\n");
}

TEST_F(Activation, NamesAndCountDiffer)
{
    for (const char *names : {"a", "a:b:c"})
        EXPECT_EQ(probe({a.get(), b.get()}, {{"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", names}}),
                  std::string("error 22 cannot take the passed sockets (LISTEN_FDS=2, LISTEN_FDNAMES=") + names +
                      "): Invalid argument\n");
}

TEST_F(Activation, NumbersThatAreNone)
{
    for (const char *count : {"x", "-1", "0", ""})
        EXPECT_EQ(probe({a.get()}, {{"LISTEN_FDS", count}}),
                  std::string("error 22 cannot take the passed sockets (LISTEN_FDS=") + count +
                      ", LISTEN_FDNAMES=): Invalid argument\n");
}

TEST_F(Activation, WhatIsNoListeningStreamSocket)
{
    auto fault = [&](int fd) {
        return probe({a.get(), fd}, {{"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "good:bad\x01"}});
    };
    const std::string which = " passed descriptor 4 ('bad\\x01'): it ";

    EXPECT_EQ(fault(make_socket(dir / "d", -1, SOCK_DGRAM).get()),
              "error 91" + which + "is no stream socket; write ListenStream= in the socket unit\n");
    EXPECT_EQ(fault(make_socket(dir / "q", 5, SOCK_SEQPACKET).get()),
              "error 91" + which + "is no stream socket; write ListenStream= in the socket unit\n");
    UniqueFd udp(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(fault(udp.get()), "error 91" + which + "is no stream socket; write ListenStream= in the socket unit\n");
    UniqueFd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
    EXPECT_EQ(fault(netlink.get()),
              "error 91" + which + "is no unix, TCP or vsock socket; write ListenStream= in the socket unit\n");

    EXPECT_EQ(fault(make_socket(dir / "n", -1).get()),
              "error 22" + which + "does not listen; whoever passes it must call listen() first\n");
    UniqueFd client = dial(*to_socket_address(UnixPath{dir / "b"}));
    UniqueFd connection(accept4(b.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_EQ(fault(connection.get()),
              "error 22" + which + "is a connection, not a listening socket; write Accept=no in the socket unit\n");

    int pipe_fds[2];
    ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    UniqueFd reader(pipe_fds[0]), writer(pipe_fds[1]);
    EXPECT_EQ(fault(reader.get()),
              "error 88" + which + "is a pipe, not a socket; write ListenStream= in the socket unit\n");
    UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(fault(null.get()), "error 88" + which + "is no socket; write ListenStream= in the socket unit\n");
}

// The manager's own way, without the manager.
TEST_F(Activation, UnderSystemdSocketActivate)
{
    if (access(SOCKET_ACTIVATE, X_OK) != 0)
        GTEST_SKIP() << "systemd-socket-activate is not installed";
    UniqueFd out(memfd_create("out", MFD_CLOEXEC));
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out.get(), 1);
        UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
        dup2(null.get(), 2);
        syscall(SYS_close_range, 3, ~0u, 0);
        execl(SOCKET_ACTIVATE, "systemd-socket-activate", "-l", (dir / "x").c_str(), "-l", (dir / "y").c_str(),
              "--fdname=x:y", PROBE, nullptr);
        _exit(127);
    }
    // it starts the probe in its own place when the first client comes
    SocketAddress at = *to_socket_address(UnixPath{dir / "y"});
    UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (int tries = 0; connect(client.get(), at.get(), at.size) != 0 && tries < 60'000; ++tries) {
        if (waitpid(pid, nullptr, WNOHANG) != 0)
            break;
        poll(nullptr, 0, 1);
    }
    waitpid(pid, nullptr, 0);
    EXPECT_EQ(contents(out), "3 x unix:" + dir / "x" + "\n4 y unix:" + dir / "y" + "\n");
}

} // namespace
} // namespace sluice
