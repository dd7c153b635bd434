// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tests of sluice-ssh-helper share. The program's path comes from SLUICE_HELPER
// in the environment, which the build sets; a peer's path may be given by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "relay_session.hpp"
#include "traffic.hpp"

namespace sluice::test {

// Exit codes of the helper's contract.
namespace exit_code {
inline constexpr int usage = 64;
inline constexpr int no_socket = 66;
inline constexpr int unavailable = 69;
inline constexpr int io = 74;
inline constexpr int not_permitted = 77;
} // namespace exit_code

inline std::string helper_path()
{
    const char *path = std::getenv("SLUICE_HELPER");
    if (!path)
        throw std::runtime_error("SLUICE_HELPER does not say which program to test");
    return path;
}

inline std::vector<std::string> operator+(std::vector<std::string> left, const std::vector<std::string> &right)
{
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

// A daemon's socket in a folder of its own, and a helper to be run against it.
class HelperTest : public ::testing::Test {
protected:
    void SetUp() override { signal(SIGPIPE, SIG_IGN); }

    static Command helper(const std::vector<std::string> &arguments)
    {
        // messages are compared with what the program says in English
        return Command(std::vector<std::string>{helper_path()} + arguments).env("LC_ALL", "C.UTF-8");
    }

    // A helper that has connected to the daemon's socket.
    RelaySession connect(Stdio kind = Stdio::pipes, const std::vector<std::string> &options = {})
    {
        RelaySession session = RelaySession::start(kind, helper(options + std::vector{daemon.address()}));
        session.server = daemon.accept();
        if (!session.server)
            throw std::runtime_error("the helper did not connect: " + session.child.errors());
        return session;
    }

    // It ends by itself with this code, and says something exactly when that is not 0.
    static void expect_exit(Child &child, int code)
    {
        const std::optional<Exit> exit = child.wait();
        ASSERT_TRUE(exit) << "still running; stderr: " << child.errors();
        EXPECT_EQ(exit->signal, 0);
        EXPECT_EQ(exit->code, code) << child.errors();
        if (code == 0)
            EXPECT_EQ(child.errors(), "");
        else
            expect_one_line(child.errors());
    }

    static void expect_one_line(const std::string &message)
    {
        EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
        EXPECT_TRUE(message.ends_with('\n')) << message;
    }

    // All buffers on the way of `feed` are full and the child has nothing to do: it
    // sleeps, and still there is no room. The last look is what counts, since the
    // child may have been about to make some.
    static bool stalled(const Flow &feed, const Child &child)
    {
        return feed.blocked && child.sleeping() && !writable(feed.fd);
    }

    static bool writable(int fd)
    {
        pollfd entry{fd, POLLOUT, 0};
        return poll(&entry, 1, 0) > 0 && (entry.revents & POLLOUT) != 0;
    }

    TempDir dir;
    Listener daemon = Listener::unix_socket(dir / "daemon.sock");
};

} // namespace sluice::test
