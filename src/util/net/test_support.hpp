// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tests of this folder share: a folder of their own, and sockets in odd states.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/base/unique_fd.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

// A new folder, removed with all that is in it. Its path is short enough for a socket's.
class TestDir {
public:
    TestDir()
    {
        std::string name = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("mkdtemp " + name);
        path_ = name;
    }
    TestDir(const TestDir &) = delete;
    TestDir &operator=(const TestDir &) = delete;
    ~TestDir()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::string &path() const noexcept { return path_; }
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline bool exists(const std::string &path)
{
    return access(path.c_str(), F_OK) == 0;
}

// A bound socket; with a backlog >= 0 it listens. Nobody accepts.
inline UniqueFd make_socket(const std::string &path, int backlog, int type = SOCK_STREAM)
{
    auto at = to_socket_address(UnixPath{path});
    UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    if (!at || !fd || bind(fd.get(), at->get(), at->size) != 0 || (backlog >= 0 && listen(fd.get(), backlog) != 0))
        throw std::runtime_error("cannot make a socket at " + path);
    return fd;
}

// Connect and wait for it.
inline UniqueFd dial(const SocketAddress &to)
{
    UniqueFd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd || connect(fd.get(), to.get(), to.size) != 0)
        throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
    return fd;
}

// Clients that fill the backlog of a listening socket: the next one finds no room.
inline std::vector<UniqueFd> fill_backlog(const SocketAddress &to)
{
    std::vector<UniqueFd> clients;
    for (int code = 0; code == 0 || code == EINPROGRESS;) {
        // tcp has no EAGAIN: two more than are answered at once, and the backlog is full
        if (to.family() != AF_UNIX && clients.size() == 3)
            break;
        UniqueFd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        code = connect(fd.get(), to.get(), to.size) == 0 ? 0 : errno;
        if (code == 0 || code == EINPROGRESS)
            clients.push_back(std::move(fd));
    }
    return clients;
}

// Runs `body` in a process of its own, so that limits, users and the like can be
// changed there; its result is the exit status.
inline int in_child(const std::function<int()> &body)
{
    pid_t child = fork();
    if (child == 0) {
        int result = 125;
        try {
            result = body();
        } catch (const std::exception &error) {
            fprintf(stderr, "%s\n", error.what());
        }
        _exit(result);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Root may do anything, so that a test of what is forbidden needs another user; any will do.
inline bool become_unprivileged()
{
    return geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
}

// What a process that was killed leaves behind.
inline void make_dead_socket(const std::string &path)
{
    make_socket(path, 0);
}

} // namespace sluice
