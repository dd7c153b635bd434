// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// For the tests of the relay: pipes and socket pairs whose near side is an Endpoint
// and whose far side the test plays, and a pattern that shows loss, doubling and
// disorder.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "remote/relay/lane.hpp"

namespace sluice::relay {

// One end for the relay, one for the test, which never blocks.
struct Channel {
    Endpoint near;
    UniqueFd far;
};

inline Endpoint adopt(int fd, Endpoint::Use use)
{
    auto end = Endpoint::adopt(UniqueFd(fd), use, "end");
    EXPECT_TRUE(end.has_value());
    return std::move(*end);
}

inline Channel pipe_source()
{
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    return {adopt(fds[0], Endpoint::Use::read), UniqueFd(fds[1])};
}

inline Channel pipe_sink()
{
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    return {adopt(fds[1], Endpoint::Use::write), UniqueFd(fds[0])};
}

inline Channel socket_pair()
{
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    return {adopt(fds[0], Endpoint::Use::both), UniqueFd(fds[1])};
}

// Both ends of it taken for what the proxy makes of its sockets.
inline Channel own_socket_pair()
{
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    return {Endpoint::socket(UniqueFd(fds[0]), "end"), UniqueFd(fds[1])};
}

inline std::string pattern(size_t bytes, size_t from = 0)
{
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i)
        text[i] = static_cast<char>((from + i) * 2654435761u >> 13);
    return text;
}

// Nothing that is written to it goes out any more, until somebody reads at the far end;
// what is to be read there first.
inline size_t fill_up(const Endpoint &end)
{
    std::string text(4096, '#');
    size_t bytes = 0;
    for (ssize_t n = 0; (n = send(end.fd(), text.data(), text.size(), MSG_DONTWAIT)) > 0;)
        bytes += static_cast<size_t>(n);
    return bytes;
}

// Both ends are polled by nobody: say that they are ready, and let the lane find out.
inline bool turn(Lane &lane)
{
    lane.source_ready();
    lane.sink_ready();
    return lane.run();
}

// As much as goes without blocking; the number of bytes.
inline size_t feed(const UniqueFd &fd, std::string_view text)
{
    size_t done = 0;
    while (done < text.size()) {
        ssize_t n = write(fd.get(), text.data() + done, text.size() - done);
        if (n <= 0)
            break;
        done += static_cast<size_t>(n);
    }
    return done;
}

// What can be read without blocking; `ended` says whether the end was among it.
inline std::string take(const UniqueFd &fd, bool *ended = nullptr, size_t limit = SIZE_MAX)
{
    std::string text;
    char buffer[65536];
    while (text.size() < limit) {
        ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, limit - text.size()));
        if (n == 0 && ended)
            *ended = true;
        if (n <= 0)
            break;
        text.append(buffer, static_cast<size_t>(n));
    }
    return text;
}

} // namespace sluice::relay
