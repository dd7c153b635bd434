// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/autostart.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>

#include <gtest/gtest.h>

#include "util/net/test_support.hpp"

// TEST_DAEMON, the path of test_daemon, comes from meson.build.

namespace sluice {
namespace {

using namespace std::chrono_literals;

class Autostart : public ::testing::Test {
protected:
    Autostart()
    {
        options.timeout = 60s;
        options.on_step = [this](const char *step, const std::string &) { steps.push_back(step); };
    }
    ~Autostart() override
    {
        for (int pid : values<int>("pid"))
            kill(pid, SIGKILL);
    }

    DaemonStart daemon(const std::string &mode)
    {
        return {TEST_DAEMON, {mode, record, socket}, dir / "run/libvirt", dir / "run/libvirt/d.lock"};
    }
    Result<UniqueFd> connect(const std::string &mode)
    {
        return run(loop, connect_or_start(loop, UnixPath{socket}, daemon(mode), options));
    }

    // What the daemons have recorded under `key`, in order.
    template <class T = std::string>
    std::vector<T> values(const std::string &key) const
    {
        std::vector<T> found;
        std::ifstream in(record);
        for (std::string line; std::getline(in, line);) {
            if (!line.starts_with(key + " "))
                continue;
            std::string value = line.substr(key.size() + 1);
            if constexpr (std::is_same_v<T, int>)
                found.push_back(std::stoi(value));
            else
                found.push_back(value);
        }
        return found;
    }

    TestDir dir;
    std::string record = dir / "record";
    std::string socket = dir / "run/libvirt/s";
    Loop loop;
    ConnectOptions options;
    std::vector<std::string> steps;
};

std::string read_all(Loop &loop, int fd)
{
    auto reader = [](Loop on, int from) -> Task<std::string> {
        std::string text;
        for (;;) {
            co_await on.readable(from);
            char buffer[64];
            ssize_t got = read(from, buffer, sizeof buffer);
            if (got <= 0)
                co_return text;
            text.append(buffer, static_cast<size_t>(got));
        }
    };
    return run(loop, reader(loop, fd));
}

TEST_F(Autostart, StartsTheDaemonAndConnects)
{
    auto result = connect("listen");
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(read_all(loop, result->get()), "hello");
    EXPECT_EQ(std::count(steps.begin(), steps.end(), "start"), 1);
    EXPECT_EQ(steps.back(), "connected");
    EXPECT_FALSE(exists(dir / "run/libvirt/d.lock"));

    // the second time it is there
    steps.clear();
    auto again = connect("listen");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(std::count(steps.begin(), steps.end(), "start"), 0);
    EXPECT_EQ(values("pid").size(), 1u);
}

TEST_F(Autostart, TheDaemonIsOnItsOwn)
{
    // what it must not inherit: an open descriptor, signals ignored and blocked, our environment
    UniqueFd inherited(open("/dev/zero", O_RDONLY)); // no O_CLOEXEC
    setenv("SLUICE_TEST_SECRET", "1", 1);
    setenv("XDG_RUNTIME_DIR", dir.path().c_str(), 1);
    auto old_handler = signal(SIGPIPE, SIG_IGN);
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigprocmask(SIG_BLOCK, &block, &before);
    auto result = connect("listen");
    sigset_t after;
    sigprocmask(SIG_SETMASK, &before, &after);
    signal(SIGPIPE, old_handler);
    unsetenv("SLUICE_TEST_SECRET");
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(sigismember(&after, SIGUSR1)); // ours is as it was

    EXPECT_EQ(values("fd"), (std::vector<std::string>{"0 /dev/null", "1 /dev/null", "2 /dev/null"}));
    EXPECT_EQ(values("sigpipe"), std::vector<std::string>{"default"});
    EXPECT_EQ(values("sigusr1"), std::vector<std::string>{"open"});
    EXPECT_EQ(values("cwd"), std::vector<std::string>{"/"});
    ASSERT_EQ(values("parent").size(), 1u);
    EXPECT_NE(values<int>("parent")[0], getpid());
    EXPECT_NE(values<int>("session")[0], getsid(0));

    auto environment = values("env");
    auto has = [&](const std::string &text) {
        return std::find(environment.begin(), environment.end(), text) != environment.end();
    };
    EXPECT_TRUE(has("LC_ALL=C"));
    EXPECT_TRUE(has("XDG_RUNTIME_DIR=" + dir.path()));
    EXPECT_FALSE(has("SLUICE_TEST_SECRET=1"));
}

TEST_F(Autostart, WorksWithStdinAndStdoutClosed)
{
    EXPECT_EQ(in_child([&] {
                  for (int fd = 0; fd <= 2; ++fd)
                      close(fd);
                  return connect("listen") ? 0 : 1;
              }),
              0);
    EXPECT_EQ(values("fd"), (std::vector<std::string>{"0 /dev/null", "1 /dev/null", "2 /dev/null"}));
}

TEST_F(Autostart, ReplacesADaemonThatDied)
{
    std::filesystem::create_directories(dir / "run/libvirt");
    make_dead_socket(socket);
    auto result = connect("listen");
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(values("pid").size(), 1u);
}

TEST_F(Autostart, StartsOneForMany)
{
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
        pid_t child = fork();
        if (child == 0)
            _exit(connect("listen") ? 0 : 1);
        children.push_back(child);
    }
    for (pid_t child : children) {
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(values("pid").size(), 1u);
    EXPECT_FALSE(exists(dir / "run/libvirt/d.lock"));
}

TEST_F(Autostart, WaitsForTheLockOfAnother)
{
    std::filesystem::create_directories(dir / "run/libvirt");
    // a lock held by another process, as libvirt's client takes it
    int ready[2], release[2];
    ASSERT_EQ(pipe(ready), 0);
    ASSERT_EQ(pipe(release), 0);
    pid_t other = fork();
    if (other == 0) {
        close(release[1]);
        int fd = open((dir / "run/libvirt/d.lock").c_str(), O_RDWR | O_CREAT, 0600);
        struct flock range {};
        range.l_type = F_WRLCK;
        range.l_whence = SEEK_SET;
        range.l_len = 1;
        char byte = fcntl(fd, F_SETLK, &range) == 0 ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        (void)!read(release[0], &byte, 1);
        _exit(0);
    }
    close(release[0]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');

    options.timeout = 20ms;
    auto locked_out = connect("listen");
    ASSERT_FALSE(locked_out);
    EXPECT_EQ(locked_out.error().code, ETIMEDOUT);
    EXPECT_NE(locked_out.error().message.find("d.lock"), std::string::npos) << locked_out.error().message;
    EXPECT_TRUE(values("pid").empty());
    EXPECT_TRUE(exists(dir / "run/libvirt/d.lock")); // it is not ours to remove

    close(release[1]);
    options.timeout = 60s;
    EXPECT_TRUE(connect("listen"));
    waitpid(other, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
}

TEST_F(Autostart, SaysWhyTheDaemonIsNotThere)
{
    auto ended = connect("end");
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, ECONNREFUSED);
    EXPECT_NE(ended.error().message.find("ended at once"), std::string::npos) << ended.error().message;

    options.timeout = 100ms;
    auto deaf = connect("deaf");
    ASSERT_FALSE(deaf);
    EXPECT_EQ(deaf.error().code, ETIMEDOUT);
    EXPECT_NE(deaf.error().message.find("did not listen within 0.1 s"), std::string::npos) << deaf.error().message;
    EXPECT_FALSE(exists(dir / "run/libvirt/d.lock"));

    auto start = daemon("listen");
    start.binary = dir / "no-such-daemon";
    auto missing = run(loop, connect_or_start(loop, UnixPath{socket}, start, options));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ENOENT);
    EXPECT_NE(missing.error().message.find("cannot start " + start.binary), std::string::npos)
        << missing.error().message;
}

TEST_F(Autostart, DoesNotStartWhereSomethingElseIsWrong)
{
    std::filesystem::create_directories(dir / "run/libvirt");
    std::ofstream(socket) << "no socket";
    auto result = connect("listen");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ENOTSOCK);
    EXPECT_TRUE(values("pid").empty());
}

} // namespace
} // namespace sluice
