// SPDX-License-Identifier: LGPL-2.1-or-later

// Every form of address leads to the socket that it names, libvirt's URIs included,
// and so does the command line of virt-ssh-helper.

#include <net/if.h>
#include <sys/stat.h>

#include "support/helper.hpp"

namespace sluice::test {
namespace {

constexpr uid_t nobody = 65534;

class HelperAddress : public HelperTest {
protected:
    static bool mount_namespaces_work()
    {
        try {
            const std::optional<Exit> exit = Command({"unshare", "-m", "true"}).start().wait();
            return exit && exit->code == 0;
        } catch (const std::system_error &) {
            return false;
        }
    }

    // A helper for which `place` is covered by `ours`.
    static Command with_mount(const std::string &ours, const std::string &place,
                              const std::vector<std::string> &arguments)
    {
        return Command(
                   std::vector<std::string>{"unshare", "-m", "sh", "-c",
                                            "[ -e \"$1\" ] || { mount -t tmpfs none \"${1%/*}\" && mkdir \"$1\"; } && "
                                            "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"",
                                            ours, place, helper_path()} +
                   arguments)
            .env("LC_ALL", "C.UTF-8");
    }

    // A helper started like this gets through to that listener, and bytes pass both ways.
    static void expect_reaches(Listener &listener, const Command &command)
    {
        RelaySession session = RelaySession::start(Stdio::pipes, command);
        session.server = listener.accept();
        ASSERT_TRUE(session.server) << session.child.errors();
        expect_bytes_pass(session);
        session.end_input();
        session.server.reset();
        expect_exit(session.child, 0);
    }

    static void expect_bytes_pass(RelaySession &session)
    {
        constexpr uint64_t bytes = 300'000;
        Traffic traffic;
        traffic.feed(session.input.get(), bytes);
        traffic.feed(session.server.get(), bytes, Pattern{2});
        Drain &arrived = traffic.drain(session.server.get());
        Drain &output = traffic.drain(session.output.get(), Pattern{2});
        EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == bytes && output.bytes == bytes; }));
        EXPECT_TRUE(arrived.intact && output.intact);
    }
};

TEST_F(HelperAddress, Path)
{
    expect_reaches(daemon, helper({daemon.address()}));
    expect_reaches(daemon, helper({"unix:" + daemon.address()}));
    expect_reaches(daemon, helper({"--", daemon.address()}));
}

TEST_F(HelperAddress, PathThroughASymbolicLink)
{
    std::filesystem::create_symlink(daemon.address(), dir / "link");
    expect_reaches(daemon, helper({dir / "link"}));
}

TEST_F(HelperAddress, AbstractName)
{
    Listener abstract = Listener::unix_socket("@" + (dir / "abstract"));
    expect_reaches(abstract, helper({"unix:" + abstract.address()}));
}

TEST_F(HelperAddress, Tcp4)
{
    Listener listener = Listener::tcp4();
    expect_reaches(listener, helper({listener.address()}));
}

TEST_F(HelperAddress, Tcp6)
{
    Listener listener = Listener::tcp6();
    expect_reaches(listener, helper({listener.address()}));
}

// A name of two addresses, of which one is served.
TEST_F(HelperAddress, EachAddressOfAName)
{
    std::ofstream(dir / "hosts") << "::1 two.example\n127.0.0.1 two.example\n";
    if (!mount_namespaces_work())
        GTEST_SKIP() << "no mount namespaces here to cover /etc/hosts in";
    const auto inside = [&](const std::string &address) { return with_mount(dir / "hosts", "/etc/hosts", {address}); };
    Listener only4 = Listener::tcp4();
    expect_reaches(only4, inside("tcp:two.example:" + std::to_string(only4.port())));
    Listener only6 = Listener::tcp6();
    expect_reaches(only6, inside("tcp:two.example:" + std::to_string(only6.port())));
    const std::string nobody_there = "tcp:two.example:" + std::to_string(only6.port());
    only6.close();
    Child child = inside(nobody_there).start();
    expect_exit(child, exit_code::unavailable);
    for (const char *tried : {"two.example", "[::1]", "127.0.0.1", "Connection refused"})
        EXPECT_NE(child.errors().find(tried), std::string::npos) << child.errors();
}

TEST_F(HelperAddress, ServiceNamesAndScopes)
{
    Listener listener = Listener::tcp6();
    // an address that is not link-local takes a scope by number alone
    const std::string scope = std::to_string(if_nametoindex("lo"));
    expect_reaches(listener, helper({"tcp:[::1%" + scope + "]:" + std::to_string(listener.port())}));
    Child child = helper({"tcp:[::1]:no-such-service"}).start();
    expect_exit(child, exit_code::unavailable);
    EXPECT_NE(child.errors().find("no-such-service"), std::string::npos) << child.errors();
}

// A tcp connection knows a half-close too, and a reset.
TEST_F(HelperAddress, TcpHalfClose)
{
    Listener listener = Listener::tcp4();
    RelaySession session = RelaySession::start(Stdio::pipes, helper({listener.address()}));
    session.server = listener.accept();
    ASSERT_TRUE(session.server);
    Traffic traffic;
    Feed &up = traffic.feed(session.input.get(), 10'000'000);
    up.when_done = [&] { traffic.close(session.input); };
    Drain &arrived = traffic.drain(session.server.get());
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(arrived.bytes, up.total);
    EXPECT_TRUE(arrived.intact);
    Feed &reply = traffic.feed(session.server.get(), 10'000'000, Pattern{2});
    reply.when_done = [&] { traffic.close(session.server); };
    Drain &output = traffic.drain(session.output.get(), Pattern{2});
    ASSERT_TRUE(traffic.run_until([&] { return output.done; }));
    EXPECT_EQ(output.bytes, reply.total);
    EXPECT_TRUE(output.intact);
    expect_exit(session.child, 0);
}

TEST_F(HelperAddress, TcpResetIsAnError)
{
    Listener listener = Listener::tcp4();
    RelaySession session = RelaySession::start(Stdio::pipes, helper({listener.address()}));
    session.server = listener.accept();
    ASSERT_TRUE(session.server);
    // it has connected, and is not about to find out that it has not
    ASSERT_EQ(write(session.server.get(), "x", 1), 1);
    ASSERT_TRUE(wait_for(session.output.get(), POLLIN));
    const linger at_once{1, 0};
    must(setsockopt(session.server.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), "SO_LINGER");
    session.server.reset();
    expect_exit(session.child, exit_code::io);
    EXPECT_NE(session.child.errors().find("reset"), std::string::npos) << session.child.errors();
}

// Whether this machine reaches itself over vsock takes a module that not every kernel has.
bool vsock_works(const Listener &listener)
{
    sockaddr_vm address{};
    socklen_t size = sizeof(address);
    must(getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
    const UniqueFd probe{socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    return probe && ::connect(probe.get(), reinterpret_cast<sockaddr *>(&address), size) == 0;
}

TEST_F(HelperAddress, Vsock)
{
    std::optional<Listener> listener;
    try {
        listener = Listener::vsock_loopback();
    } catch (const std::system_error &error) {
        GTEST_SKIP() << "no vsock here: " << error.what();
    }
    if (!vsock_works(*listener))
        GTEST_SKIP() << "no vsock loopback here";
    listener->accept(); // the probe
    expect_reaches(*listener, helper({listener->address()}));
}

TEST_F(HelperAddress, VsockWithoutPeerSaysSo)
{
    Child child = helper({"--connect-timeout=2", "vsock:1:1"}).start();
    const std::optional<Exit> exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_NE(exit->code, 0);
    EXPECT_EQ(exit->signal, 0);
    expect_one_line(child.errors());
    EXPECT_NE(child.errors().find("vsock:"), std::string::npos) << child.errors();
}

// A folder with the sockets of a user's own libvirt daemons. Root has none, so root
// runs these tests as another user.
class HelperLibvirt : public HelperAddress {
protected:
    void SetUp() override
    {
        HelperAddress::SetUp();
        std::filesystem::create_directory(run_dir);
        std::filesystem::permissions(dir.path(), std::filesystem::perms(0777));
        std::filesystem::permissions(run_dir, std::filesystem::perms(0777));
        std::filesystem::copy_file(helper_path(), program);
        std::filesystem::permissions(program, std::filesystem::perms(0755));
    }

    Command as_user(const std::vector<std::string> &arguments) const
    {
        Command command(std::vector<std::string>{program} + arguments);
        command.env("LC_ALL", "C.UTF-8").env("XDG_RUNTIME_DIR", dir.path().string());
        command.env("LIBVIRT_AUTOSTART", "0").env("VIRTD_PATH", dir / "daemons");
        if (geteuid() == 0)
            command.as_user(nobody);
        return command;
    }

    Listener libvirt_socket(const std::string &name) { return Listener::unix_socket(run_dir + "/" + name); }

    const std::string run_dir = dir / "libvirt";
    const std::string program = dir / "sluice-ssh-helper";
};

TEST_F(HelperLibvirt, SessionSockets)
{
    Listener legacy = libvirt_socket("libvirt-sock");
    expect_reaches(legacy, as_user({"qemu:///session"}));
    Listener direct = libvirt_socket("virtqemud-sock");
    expect_reaches(direct, as_user({"qemu:///session"}));
    expect_reaches(direct, as_user({"qemu+unix:///session"}));
    expect_reaches(legacy, as_user({"qemu:///session?mode=legacy"}));
    expect_reaches(direct, as_user({"qemu:///session?mode=direct"}));
    expect_reaches(direct, as_user({"qemu:///session?mode=auto"}));
    expect_reaches(legacy, as_user({"storage:///session"}));
    // a user's daemon has no read-only socket
    expect_reaches(direct, as_user({"-r", "qemu:///session"}));
    expect_reaches(daemon, as_user({"qemu:///session?socket=" + daemon.address()}));
}

TEST_F(HelperLibvirt, MissingSocketIsNamed)
{
    Child child = as_user({"qemu:///session?mode=legacy"}).start();
    expect_exit(child, exit_code::no_socket);
    EXPECT_NE(child.errors().find(run_dir + "/libvirt-sock"), std::string::npos) << child.errors();
}

TEST_F(HelperLibvirt, CommandLineOfVirtSshHelper)
{
    const std::string name = dir / "virt-ssh-helper";
    std::filesystem::create_symlink(program, name);
    const auto called = [&](const std::vector<std::string> &arguments) {
        Command command(std::vector<std::string>{name} + arguments);
        command.env("LC_ALL", "C.UTF-8").env("XDG_RUNTIME_DIR", dir.path().string()).env("LIBVIRT_AUTOSTART", "0");
        if (geteuid() == 0)
            command.as_user(nobody);
        return command;
    };
    Listener legacy = libvirt_socket("libvirt-sock");
    expect_reaches(legacy, called({"qemu:///session"}));
    expect_reaches(legacy, called({"-r", "qemu:///session"}));
    expect_reaches(legacy, called({"--readonly", "qemu:///session"}));
    expect_reaches(legacy, called({"qemu:///session", "-r"}));
    // it ignores the query
    expect_reaches(legacy, called({"qemu:///session?mode=direct&socket=/nowhere"}));

    const auto status = [&](const std::vector<std::string> &arguments) {
        Child child = called(arguments).start();
        const std::optional<Exit> exit = child.wait();
        return exit ? exit->code : -1;
    };
    EXPECT_EQ(status({"--version"}), 0);
    EXPECT_EQ(status({"-V"}), 0);
    EXPECT_EQ(status({"--help"}), 0);
    // a client tells by any other status that it has to look for another way
    EXPECT_NE(status({}), 0);
    EXPECT_NE(status({"--no-such-option"}), 0);
    EXPECT_NE(status({daemon.address()}), 0) << "an address of ours is no URI";
    EXPECT_NE(status({"qemu+ssh://host/system"}), 0);
    EXPECT_NE(status({"test:///default", "test:///default"}), 0);
}

// A stand-in for the daemon: notes what it was given, makes its socket and serves it.
constexpr const char *fake_daemon = R"(#!/usr/bin/env python3
import os, socket, sys
run = os.path.join(os.environ["XDG_RUNTIME_DIR"], "libvirt")
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd))
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(run, "virtqemud-sock"))
listener.listen()
connection, _ = listener.accept()
connection.sendall(("%s|%s" % (" ".join(sys.argv[1:]), fds)).encode())
connection.shutdown(socket.SHUT_WR)
while connection.recv(65536):
    pass
)";

TEST_F(HelperLibvirt, SessionDaemonIsStartedWithoutOurDescriptors)
{
    std::filesystem::create_directory(dir / "daemons");
    const std::string path = dir / "daemons/virtqemud";
    std::ofstream(path) << fake_daemon;
    std::filesystem::permissions(path, std::filesystem::perms(0755));
    const UniqueFd inherited = open_file("/dev/null", O_RDONLY);
    must(fcntl(inherited.get(), F_SETFD, 0), "F_SETFD"); // whoever starts us may have left something open
    RelaySession session = RelaySession::start(
        Stdio::pipes, as_user({"--connect-timeout=60", "qemu:///session"}).env("LIBVIRT_AUTOSTART", "1"));
    std::string said;
    Traffic traffic;
    Drain &output = traffic.drain(session.output.get());
    output.keep = &said;
    EXPECT_TRUE(traffic.run_until([&] { return output.done; }));
    EXPECT_EQ(said, "--timeout=120|[0, 1, 2]") << session.child.errors();
    session.end_input();
    expect_exit(session.child, 0);
}

// The system's sockets are at a fixed place, so it is covered, in a mount namespace of
// the child's own, by a folder of ours.
TEST_F(HelperAddress, SystemSockets)
{
    const std::string place = "/run/libvirt";
    if (!mount_namespaces_work())
        GTEST_SKIP() << "no mount namespaces";
    const auto inside = [&](const std::vector<std::string> &arguments) {
        return with_mount(dir.path().string(), place, arguments).env("VIRTD_PATH", dir / "daemons");
    };
    Listener legacy = Listener::unix_socket(dir / "libvirt-sock");
    Listener legacy_ro = Listener::unix_socket(dir / "libvirt-sock-ro");
    expect_reaches(legacy, inside({"qemu:///system"}));
    expect_reaches(legacy, inside({"test:///default"}));
    expect_reaches(legacy_ro, inside({"-r", "qemu:///system"}));
    Listener direct = Listener::unix_socket(dir / "virtqemud-sock");
    expect_reaches(direct, inside({"qemu:///system"}));
    expect_reaches(legacy, inside({"storage:///system"}));
    expect_reaches(legacy, inside({"qemu:///system?mode=legacy"}));
    Listener storage = Listener::unix_socket(dir / "virtstoraged-sock");
    expect_reaches(storage, inside({"storage:///system"}));
}

} // namespace
} // namespace sluice::test
