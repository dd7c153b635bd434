// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Pipes, socket pairs, terminals, listening sockets and scratch folders for tests.
// Every descriptor is close-on-exec and owned; a failure to make one throws, since a
// test cannot go on without it.

#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "deadline.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice::test {

// Hand on the result of a system call, or throw what it failed with.
inline int must(int result, const char *what)
{
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), what);
    return result;
}

struct Ends {
    UniqueFd first;  // read end of a pipe, master of a terminal
    UniqueFd second; // write end of a pipe, the terminal itself
};

inline Ends make_pipe(int size = 0)
{
    int fds[2];
    must(pipe2(fds, O_CLOEXEC), "pipe2");
    Ends ends{UniqueFd{fds[0]}, UniqueFd{fds[1]}};
    if (size > 0)
        must(fcntl(fds[1], F_SETPIPE_SZ, size), "F_SETPIPE_SZ");
    return ends;
}

inline Ends make_socketpair()
{
    int fds[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
    return {UniqueFd{fds[0]}, UniqueFd{fds[1]}};
}

inline Ends make_terminal(bool raw)
{
    int master = -1;
    int slave = -1;
    must(openpty(&master, &slave, nullptr, nullptr, nullptr), "openpty");
    Ends ends{UniqueFd{master}, UniqueFd{slave}};
    for (const int fd : {master, slave})
        must(fcntl(fd, F_SETFD, FD_CLOEXEC), "FD_CLOEXEC");
    termios settings;
    must(tcgetattr(slave, &settings), "tcgetattr");
    if (raw)
        cfmakeraw(&settings);
    else
        settings.c_lflag &= ~tcflag_t{ECHO};
    must(tcsetattr(slave, TCSANOW, &settings), "tcsetattr");
    return ends;
}

inline UniqueFd duplicate(int fd)
{
    return UniqueFd{must(fcntl(fd, F_DUPFD_CLOEXEC, 10), "F_DUPFD_CLOEXEC")};
}

inline UniqueFd open_file(const std::string &path, int flags, mode_t mode = 0600)
{
    return UniqueFd{must(open(path.c_str(), flags | O_CLOEXEC, mode), path.c_str())};
}

inline void set_nonblocking(int fd)
{
    must(fcntl(fd, F_SETFL, must(fcntl(fd, F_GETFL), "F_GETFL") | O_NONBLOCK), "F_SETFL");
}

inline bool is_nonblocking(int fd)
{
    return (must(fcntl(fd, F_GETFL), "F_GETFL") & O_NONBLOCK) != 0;
}

inline std::string file_text(const std::filesystem::path &path)
{
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

// A folder of its own, readable by every user, gone with its owner.
class TempDir {
public:
    TempDir()
    {
        std::string name = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw std::system_error(errno, std::generic_category(), "mkdtemp");
        path_ = name;
        std::filesystem::permissions(path_, std::filesystem::perms(0755));
    }
    ~TempDir()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir &) = delete;
    TempDir &operator=(const TempDir &) = delete;

    const std::filesystem::path &path() const { return path_; }
    std::string operator/(std::string_view name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

// A listening stream socket and the address it has, in the form the helper takes.
class Listener {
public:
    // A path, or an abstract name when it begins with '@'.
    static Listener unix_socket(const std::string &name, int backlog = 16)
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (name.size() >= sizeof(address.sun_path))
            throw std::length_error("socket path too long: " + name);
        std::memcpy(address.sun_path, name.data(), name.size());
        socklen_t size = sizeof(address);
        if (name.front() == '@') {
            address.sun_path[0] = '\0';
            size = socklen_t(offsetof(sockaddr_un, sun_path) + name.size());
        }
        Listener listener(AF_UNIX, reinterpret_cast<sockaddr *>(&address), size, backlog);
        listener.address_ = name;
        if (name.front() != '@')
            must(chmod_all(name), "chmod");
        return listener;
    }

    static Listener tcp4(int backlog = 16)
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        Listener listener(AF_INET, reinterpret_cast<sockaddr *>(&address), sizeof(address), backlog);
        socklen_t size = sizeof(address);
        must(getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
        listener.port_ = ntohs(address.sin_port);
        listener.address_ = "tcp:127.0.0.1:" + std::to_string(listener.port_);
        return listener;
    }

    static Listener tcp6(uint16_t port = 0, int backlog = 16)
    {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_loopback;
        address.sin6_port = htons(port);
        Listener listener(AF_INET6, reinterpret_cast<sockaddr *>(&address), sizeof(address), backlog);
        socklen_t size = sizeof(address);
        must(getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
        listener.port_ = ntohs(address.sin6_port);
        listener.address_ = "tcp:[::1]:" + std::to_string(listener.port_);
        return listener;
    }

    static Listener vsock_loopback(int backlog = 16)
    {
        sockaddr_vm address{};
        address.svm_family = AF_VSOCK;
        address.svm_cid = VMADDR_CID_LOCAL;
        address.svm_port = VMADDR_PORT_ANY;
        Listener listener(AF_VSOCK, reinterpret_cast<sockaddr *>(&address), sizeof(address), backlog);
        socklen_t size = sizeof(address);
        must(getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
        listener.address_ = "vsock:" + std::to_string(VMADDR_CID_LOCAL) + ":" + std::to_string(address.svm_port);
        return listener;
    }

    // The next connection; no descriptor when none came in time.
    UniqueFd accept(const Deadline &deadline = Deadline{})
    {
        if (!wait_for(fd(), POLLIN, deadline))
            return UniqueFd{};
        return UniqueFd{::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC)};
    }

    int fd() const { return fd_.get(); }
    int port() const { return port_; }
    const std::string &address() const { return address_; }
    void close() { fd_.reset(); }

private:
    Listener(int family, const sockaddr *address, socklen_t size, int backlog)
        : fd_(must(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"))
    {
        must(bind(fd(), address, size), "bind");
        must(listen(fd(), backlog), "listen");
    }

    static int chmod_all(const std::string &name)
    {
        std::filesystem::permissions(name, std::filesystem::perms(0777));
        return 0;
    }

    UniqueFd fd_;
    int port_ = 0;
    std::string address_;
};

} // namespace sluice::test
