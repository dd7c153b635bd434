// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/notify.hpp"

#include <charconv>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/base/clock.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// Stands in for the manager: a datagram socket that NOTIFY_SOCKET names.
class Notify : public ::testing::Test {
protected:
    void SetUp() override { setenv("NOTIFY_SOCKET", (dir / "notify").c_str(), 1); }
    void TearDown() override
    {
        for (const char *name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
            unsetenv(name);
    }

    struct Message {
        std::string text;
        std::vector<UniqueFd> fds;
    };

    // The oldest message; none is an empty one.
    Message received()
    {
        Message message;
        char bytes[4096];
        alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))];
        iovec io{bytes, sizeof bytes};
        msghdr header{};
        header.msg_iov = &io;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        ssize_t got = recvmsg(manager.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0)
            return message;
        message.text.assign(bytes, static_cast<size_t>(got));
        for (cmsghdr *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
                continue;
            for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
                int fd;
                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
                message.fds.emplace_back(fd);
            }
        }
        return message;
    }

    TestDir dir;
    UniqueFd manager = make_socket(dir / "notify", -1, SOCK_DGRAM);
    Notifier notifier;
};

ino_t inode(int fd)
{
    struct stat status {};
    EXPECT_EQ(fstat(fd, &status), 0);
    return status.st_ino;
}

TEST_F(Notify, SaysWhatGoesOn)
{
    EXPECT_TRUE(notifier.active());
    ASSERT_TRUE(notifier.ready("12/256 connections, 3 refused"));
    EXPECT_EQ(received().text, "READY=1\nSTATUS=12/256 connections, 3 refused");
    ASSERT_TRUE(notifier.status("draining"));
    EXPECT_EQ(received().text, "STATUS=draining");
    ASSERT_TRUE(notifier.stopping());
    EXPECT_EQ(received().text, "STOPPING=1");
    ASSERT_TRUE(notifier.watchdog());
    EXPECT_EQ(received().text, "WATCHDOG=1");
    ASSERT_TRUE(notifier.extend_timeout(90s));
    EXPECT_EQ(received().text, "EXTEND_TIMEOUT_USEC=90000000");
    EXPECT_EQ(received().text, "") << "one message each";
}

TEST_F(Notify, ReloadingHasTheTime)
{
    int64_t before = monotonic_usec();
    ASSERT_TRUE(notifier.reloading());
    int64_t after = monotonic_usec();
    std::string text = received().text, head = "RELOADING=1\nMONOTONIC_USEC=";
    ASSERT_EQ(text.substr(0, head.size()), head);
    int64_t usec = 0;
    auto [end, error] = std::from_chars(text.data() + head.size(), text.data() + text.size(), usec);
    EXPECT_EQ(end, text.data() + text.size());
    EXPECT_GE(usec, before);
    EXPECT_LE(usec, after);
}

TEST_F(Notify, AStatusCannotSayAnythingElse)
{
    ASSERT_TRUE(notifier.status("a\nREADY=1"));
    EXPECT_EQ(received().text, "STATUS=a\\x0aREADY=1");
    ASSERT_TRUE(notifier.ready("b\nSTOPPING=1\n"));
    EXPECT_EQ(received().text, "READY=1\nSTATUS=b\\x0aSTOPPING=1\\x0a");
}

TEST_F(Notify, DoesNothingWithoutAManager)
{
    unsetenv("NOTIFY_SOCKET");
    EXPECT_FALSE(notifier.active());
    int fds[] = {manager.get()};
    EXPECT_TRUE(notifier.ready(""));
    EXPECT_TRUE(notifier.reloading());
    EXPECT_TRUE(notifier.status("x"));
    EXPECT_TRUE(notifier.store_fds("x", fds));
    EXPECT_TRUE(notifier.remove_stored("x"));
    EXPECT_EQ(received().text, "");
    setenv("NOTIFY_SOCKET", "", 1);
    EXPECT_FALSE(notifier.active());
    EXPECT_TRUE(notifier.stopping());
}

TEST_F(Notify, AManagerThatIsGoneIsAnError)
{
    setenv("NOTIFY_SOCKET", (dir / "nobody").c_str(), 1);
    auto said = notifier.ready("");
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().code, ENOENT);
    EXPECT_NE(said.error().message.find("READY=1\\x0aSTATUS="), std::string::npos) << said.error().message;
}

TEST_F(Notify, StoresDescriptors)
{
    UniqueFd a = make_socket(dir / "a", 5), b = make_socket(dir / "b", 5);
    int fds[] = {a.get(), b.get()};
    ASSERT_TRUE(notifier.store_fds("web", fds));
    Message message = received();
    EXPECT_EQ(message.text, "FDSTORE=1\nFDNAME=web");
    ASSERT_EQ(message.fds.size(), 2u);
    EXPECT_EQ(inode(message.fds[0].get()), inode(a.get()));
    EXPECT_EQ(inode(message.fds[1].get()), inode(b.get()));
    ASSERT_TRUE(notifier.remove_stored("web"));
    EXPECT_EQ(received().text, "FDSTOREREMOVE=1\nFDNAME=web");
    ASSERT_TRUE(notifier.store_fds("web", {}));
    EXPECT_EQ(received().text, "") << "nothing to store";
}

TEST_F(Notify, MoreDescriptorsThanAMessageTakes)
{
    std::vector<int> fds(300, manager.get());
    ASSERT_TRUE(notifier.store_fds("many", fds));
    EXPECT_EQ(received().fds.size(), 253u);
    Message rest = received();
    EXPECT_EQ(rest.text, "FDSTORE=1\nFDNAME=many");
    EXPECT_EQ(rest.fds.size(), 47u);
}

TEST_F(Notify, NamesThatTheStoreDoesNotTake)
{
    int fds[] = {manager.get()};
    for (const std::string &name : {std::string(), std::string("a:b"), std::string("a\nREADY=1"), std::string("a b"),
                                    std::string("\xc3\xa4"), std::string(256, 'x')}) {
        auto stored = notifier.store_fds(name, fds);
        ASSERT_FALSE(stored) << name;
        EXPECT_EQ(stored.error().code, EINVAL);
        EXPECT_FALSE(notifier.remove_stored(name));
    }
    EXPECT_EQ(received().text, "");
    EXPECT_TRUE(notifier.store_fds(std::string(255, 'x'), fds));
}

TEST_F(Notify, WatchdogAtHalfItsTime)
{
    EXPECT_EQ(notifier.watchdog_interval(), std::nullopt);
    setenv("WATCHDOG_USEC", "30000000", 1);
    EXPECT_EQ(notifier.watchdog_interval(), 15s);
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
    EXPECT_EQ(notifier.watchdog_interval(), 15s);
    setenv("WATCHDOG_PID", "1", 1);
    EXPECT_EQ(notifier.watchdog_interval(), std::nullopt) << "it is another's";
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
    setenv("WATCHDOG_USEC", "soon", 1);
    EXPECT_EQ(notifier.watchdog_interval(), std::nullopt);
}

} // namespace
} // namespace sluice
