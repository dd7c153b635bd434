// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/libvirt_uri.hpp"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/net/test_support.hpp"

namespace sluice {
namespace {

// A machine in a folder: nothing is there but what a test puts there.
class LibvirtUri : public ::testing::Test {
protected:
    void SetUp() override
    {
        host.run_dir = dir / "run";
        host.user_run_dir = dir / "user";
        host.daemon_dirs = {dir / "sbin", dir / "bin"};
        host.is_root = false;
        for (const std::string &path : {dir / "run/libvirt", dir / "user/libvirt", dir / "sbin", dir / "bin"})
            std::filesystem::create_directories(path);
    }

    void touch(const std::string &name) { std::ofstream(dir / name).flush(); }
    void install(const std::string &name)
    {
        touch(name);
        chmod((dir / name).c_str(), 0755);
    }

    LibvirtSocket find(const std::string &uri, bool read_only = false)
    {
        options.read_only = read_only;
        auto found = find_libvirt_socket(uri, options, host);
        if (!found)
            throw std::runtime_error(found.error().message);
        return *found;
    }
    // Relative to the machine's folder.
    std::string path_of(const std::string &uri, bool read_only = false)
    {
        std::string path = find(uri, read_only).path;
        return path.starts_with(dir.path() + "/") ? path.substr(dir.path().size() + 1) : path;
    }

    TestDir dir;
    LibvirtHost host;
    LibvirtOptions options;
};

TEST_F(LibvirtUri, SystemDaemons)
{
    EXPECT_EQ(path_of("qemu:///system"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu+unix:///system"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu+UNIX:///system"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu:"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("test:///default"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("foo:///bar"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu:///session/"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu:///system", true), "run/libvirt/libvirt-sock-ro");
    EXPECT_TRUE(find("qemu:///system", true).read_only);
    EXPECT_FALSE(find("qemu:///system").autostart);
    EXPECT_EQ(find("qemu:///system").daemon, "libvirtd");
}

TEST_F(LibvirtUri, SessionDaemons)
{
    for (const char *uri : {"qemu:///session", "qemu:/session", "qemu+unix:///%73ession#x", "test+unix:///default"}) {
        EXPECT_EQ(path_of(uri), "user/libvirt/libvirt-sock") << uri;
        // a session daemon has no second socket for readers
        EXPECT_EQ(path_of(uri, true), "user/libvirt/libvirt-sock") << uri;
        EXPECT_FALSE(find(uri, true).read_only) << uri;
    }
    host.is_root = true;
    EXPECT_EQ(path_of("qemu:///session"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("test+unix:///default"), "run/libvirt/libvirt-sock");
    EXPECT_FALSE(find("qemu:///session").autostart);
}

TEST_F(LibvirtUri, DirectDaemonsByDriver)
{
    const char *const drivers[] = {"qemu", "storage", "network", "xen",      "lxc",       "vbox", "bhyve",
                                   "vz",   "nodedev", "secret",  "nwfilter", "interface", "ch"};
    for (const char *driver : drivers) {
        std::string uri = std::string(driver) + ":///system?mode=direct";
        std::string daemon = std::string("virt") + driver + "d";
        EXPECT_EQ(path_of(uri), "run/libvirt/" + daemon + "-sock");
        EXPECT_EQ(path_of(uri, true), "run/libvirt/" + daemon + "-sock-ro");
        EXPECT_EQ(find(uri).daemon, daemon);
    }
    EXPECT_EQ(path_of("qemu:///session?mode=direct"), "user/libvirt/virtqemud-sock");
}

TEST_F(LibvirtUri, ModeAutoTakesTheSocketThatIsThere)
{
    touch("run/libvirt/libvirt-sock");
    install("sbin/virtqemud");
    EXPECT_EQ(path_of("qemu:///system"), "run/libvirt/libvirt-sock");
    touch("run/libvirt/virtqemud-sock");
    EXPECT_EQ(path_of("qemu:///system"), "run/libvirt/virtqemud-sock");
    EXPECT_EQ(path_of("qemu:///system?mode=auto"), "run/libvirt/virtqemud-sock");
    EXPECT_EQ(path_of("qemu:///system?mode=legacy"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("storage:///system"), "run/libvirt/libvirt-sock");
    // it is the very socket wanted that counts: this one is not there
    EXPECT_EQ(path_of("storage:///system", true), "run/libvirt/libvirt-sock-ro");
}

TEST_F(LibvirtUri, ModeAutoWithoutSocketsTakesTheDaemonThatIsInstalled)
{
    install("bin/libvirtd");
    EXPECT_EQ(path_of("qemu:///session"), "user/libvirt/libvirt-sock");
    touch("bin/virtqemud"); // not executable
    std::filesystem::create_directory(dir / "sbin/virtqemud");
    EXPECT_EQ(path_of("qemu:///session"), "user/libvirt/libvirt-sock");
    install("bin/virtqemud");
    EXPECT_EQ(path_of("qemu:///session"), "user/libvirt/virtqemud-sock");
}

TEST_F(LibvirtUri, ExplicitSocket)
{
    install("sbin/libvirtd");
    EXPECT_EQ(path_of("qemu:///system?socket=/x/y"), "/x/y");
    EXPECT_EQ(path_of("qemu:///session?socket=/x/y&mode=direct"), "/x/y");
    EXPECT_EQ(path_of("qemu:///system?mode=direct;SOCKET=%2Fx%2Fa%20b"), "/x/a b");
    EXPECT_EQ(path_of("qemu:///system?socket=/first&no_tty=1&socket=/last"), "/last");
    EXPECT_FALSE(find("qemu:///session?socket=/x/y").autostart);
}

TEST_F(LibvirtUri, VirtSshHelperIgnoresTheQuery)
{
    options.read_query = false;
    EXPECT_EQ(path_of("qemu:///system?mode=direct"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu:///system?socket=/x/y"), "run/libvirt/libvirt-sock");
    EXPECT_EQ(path_of("qemu:///system?mode=bogus&x=%zz"), "run/libvirt/libvirt-sock");
}

TEST_F(LibvirtUri, StartsSessionDaemonsOnly)
{
    EXPECT_FALSE(find("qemu:///session").autostart); // not installed
    install("bin/libvirtd");
    DaemonStart wanted{
        dir / "bin/libvirtd", {"--timeout=120"}, dir / "user/libvirt", dir / "user/libvirt/libvirtd.lock"};
    EXPECT_EQ(find("qemu:///session").autostart, wanted);
    EXPECT_EQ(find("test+unix:///default").autostart, wanted);
    EXPECT_FALSE(find("qemu:///system").autostart);
    EXPECT_FALSE(find("test:///default").autostart);

    install("sbin/libvirtd");
    EXPECT_EQ(find("qemu:///session").autostart->binary, dir / "sbin/libvirtd");
    touch("user/libvirt/virtqemud-sock"); // left behind, say
    EXPECT_FALSE(find("qemu:///session").autostart);
    install("sbin/virtqemud");
    wanted = {dir / "sbin/virtqemud", {"--timeout=120"}, dir / "user/libvirt", dir / "user/libvirt/virtqemud.lock"};
    EXPECT_EQ(find("qemu:///session").autostart, wanted);

    host.autostart = false;
    EXPECT_FALSE(find("qemu:///session").autostart);
    host.autostart = true;
    host.is_root = true;
    EXPECT_FALSE(find("qemu:///session").autostart);
}

TEST_F(LibvirtUri, RefusesWithAReason)
{
    const struct {
        std::string_view uri;
        const char *says;
    } cases[] = {
        {"", "no scheme"},
        {"/run/x.sock", "no scheme"},
        {"qemu", "no scheme"},
        {"1qemu:///system", "no scheme"},
        {"qemu://host/system", "names the host 'host'"},
        {"qemu+unix://host/system", "names the host 'host'"},
        {"qemu+ssh:///system", "transport 'ssh'"},
        {"qemu+bogus:///system", "transport 'bogus'"},
        {"qemu+:///system", "transport after + is empty"},
        {"qemu:///system?mode=bogus", "unknown mode 'bogus'"},
        {"qemu:///system?mode=", "unknown mode ''"},
        {"qemu:///system?mode=Direct", "unknown mode 'Direct'"},
        {"qemu:///system?socket=", "socket parameter is empty"},
        {"qemu:///sys%tem", "two hexadecimal digits"},
        {"qemu:///system%00", "two hexadecimal digits"},
        {"qemu:///system?socket=%2", "two hexadecimal digits"},
        {std::string_view("qemu:///sys\0tem", 14), "NUL"},
    };
    for (const auto &bad : cases) {
        auto found = find_libvirt_socket(bad.uri, {}, host);
        ASSERT_FALSE(found) << bad.uri;
        EXPECT_EQ(found.error().code, EINVAL) << bad.uri;
        EXPECT_NE(found.error().message.find(bad.says), std::string::npos) << found.error().message;
    }
}

TEST_F(LibvirtUri, IsToldFromOtherAddresses)
{
    for (const char *uri : {"qemu:///system", "qemu:/session", "test+unix:///default", "qemu+ssh://h/system"})
        EXPECT_TRUE(is_libvirt_uri(uri)) << uri;
    for (const char *other : {"", "/a:/b", "unix:/x", "tcp:/x:1", "vsock:3:1", "tcp:h:80", "qemu", "qemu:", "a b:/c"})
        EXPECT_FALSE(is_libvirt_uri(other)) << other;
}

// --- against libvirt's own program, which names the socket when it cannot connect ---

constexpr const char *real_helper = "/usr/bin/virt-ssh-helper";
constexpr uid_t some_user = 65534;

// What the program says on stderr; it runs as a user who is not root, with `user_run_dir` as XDG_RUNTIME_DIR.
std::string ask_real_helper(const std::string &uri, bool read_only, const std::string &user_run_dir)
{
    int fds[2];
    if (pipe(fds) != 0)
        return "";
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        close(STDIN_FILENO);
        if (geteuid() == 0 && (setgid(some_user) != 0 || setuid(some_user) != 0))
            _exit(126);
        setenv("XDG_RUNTIME_DIR", user_run_dir.c_str(), 1);
        setenv("LIBVIRT_AUTOSTART", "0", 1);
        setenv("LC_ALL", "C", 1);
        if (read_only)
            execl(real_helper, "virt-ssh-helper", "-r", uri.c_str(), nullptr);
        else
            execl(real_helper, "virt-ssh-helper", uri.c_str(), nullptr);
        _exit(127);
    }
    close(fds[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t got; (got = read(fds[0], buffer, sizeof buffer)) > 0;)
        said.append(buffer, static_cast<size_t>(got));
    close(fds[0]);
    waitpid(child, nullptr, 0);
    return said;
}

TEST_F(LibvirtUri, AgreesWithVirtSshHelper)
{
    if (access(real_helper, X_OK) != 0) {
        if (getenv("CI") != nullptr)
            FAIL() << real_helper << " is missing";
        GTEST_SKIP() << real_helper << " is missing";
    }
    host.run_dir = "/var/run";
    host.daemon_dirs = {};
    options.read_query = false;
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
    touch("user/libvirt/virtstoraged-sock");

    int compared = 0;
    for (const char *uri : {"qemu:///system", "qemu:///session", "qemu:/session", "qemu:///session/", "test:///default",
                            "test+unix:///default", "storage:///session", "storage:///system", "qemu+UNIX:///%73ession",
                            "foo:///bar", "qemu:", "qemu:///session?mode=direct", "qemu:///session?socket=/x",
                            "storage:///session?mode=legacy", "qemu:///session#fragment", "QEMU:///session"}) {
        for (bool read_only : {false, true}) {
            LibvirtSocket ours = find(uri, read_only);
            std::string theirs = ask_real_helper(uri, read_only, dir / "user");
            // no message means that a daemon of this machine was reached
            if (theirs.empty())
                continue;
            ++compared;
            EXPECT_NE(theirs.find("cannot connect to '" + ours.path + "'"), std::string::npos)
                << uri << (read_only ? " -r" : "") << ": ours is " << ours.path << ", theirs: " << theirs;
        }
    }
    EXPECT_GE(compared, 16); // sessions are never reached: their folder is our own

    for (const char *uri : {"", "qemu", "/x", "qemu://h/system", "qemu+ssh:///system", "qemu+unix://h/session",
                            "qemu+bogus:///system", "qemu:///sys%tem"}) {
        EXPECT_FALSE(find_libvirt_socket(uri, options, host)) << uri;
        std::string theirs = ask_real_helper(uri, false, dir / "user");
        EXPECT_NE(theirs.find("URI"), std::string::npos) << uri << ": " << theirs;
    }
}

} // namespace
} // namespace sluice
