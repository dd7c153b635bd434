// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// sluiced as its manager sees it: started with passed sockets or its own, known to be
// ready by what it tells NOTIFY_SOCKET, stopped by SIGTERM. The program is the one that
// SLUICE_SLUICED names.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/traffic.hpp"

namespace sluice::test {

inline const char *sluiced_path()
{
    const char *path = std::getenv("SLUICE_SLUICED");
    if (!path)
        throw std::runtime_error("SLUICE_SLUICED does not say which program to test");
    return path;
}

// The socket that a service tells its state to.
class NotifySocket {
public:
    explicit NotifySocket(const std::string &path) : fd_(must(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"))
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        must(bind(fd_.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)), "bind");
    }

    // Everything told so far, one message after another.
    const std::string &heard()
    {
        char message[4096];
        ssize_t count = 0;
        while ((count = recv(fd_.get(), message, sizeof(message), MSG_DONTWAIT)) > 0)
            heard_.append(message, size_t(count)).append("\n");
        return heard_;
    }

    // Until `text` has been heard, after what forget() has cleared.
    bool wait_for_text(const std::string &text, const Deadline &deadline = Deadline{})
    {
        while (heard().find(text) == std::string::npos) {
            if (!wait_for(fd_.get(), POLLIN, deadline))
                return false;
        }
        return true;
    }
    void forget() { heard_.clear(); }

private:
    UniqueFd fd_;
    std::string heard_;
};

class Sluiced {
public:
    explicit Sluiced(std::vector<std::string> arguments)
        : notify_(folder_ / "notify"), command_(with_program(arguments))
    {
        command_.env("NOTIFY_SOCKET", folder_ / "notify").env("LC_ALL", "C");
    }

    Command &command() { return command_; }
    // True once it has said READY.
    bool start()
    {
        child_ = command_.start();
        return notify_.wait_for_text("READY=1");
    }

    Child &child() { return child_; }
    NotifySocket &notify() { return notify_; }
    std::string operator/(std::string_view name) const { return folder_ / name; }

    // Asked to stop, and how it ended; nothing if it did not.
    std::optional<Exit> stop()
    {
        child_.kill(SIGTERM);
        return child_.wait();
    }

private:
    static std::vector<std::string> with_program(std::vector<std::string> arguments)
    {
        arguments.insert(arguments.begin(), sluiced_path());
        return arguments;
    }

    TempDir folder_;
    NotifySocket notify_;
    Command command_;
    Child child_;
};

// A connection to an address in the form of Listener::address(); no descriptor if refused.
inline UniqueFd connect_client(const std::string &address)
{
    sockaddr_storage storage{};
    socklen_t size = 0;
    if (address.rfind("tcp:", 0) == 0) {
        auto &in = reinterpret_cast<sockaddr_in &>(storage);
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        in.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
        size = sizeof(in);
    } else {
        auto &un = reinterpret_cast<sockaddr_un &>(storage);
        un.sun_family = AF_UNIX;
        address.copy(un.sun_path, sizeof(un.sun_path) - 1);
        size = sizeof(un);
        if (address.front() == '@') {
            un.sun_path[0] = '\0';
            size = socklen_t(offsetof(sockaddr_un, sun_path) + address.size());
        }
    }
    UniqueFd fd{must(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
    if (connect(fd.get(), reinterpret_cast<sockaddr *>(&storage), size) != 0)
        fd.reset();
    return fd;
}

} // namespace sluice::test
