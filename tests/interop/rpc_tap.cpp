// SPDX-License-Identifier: LGPL-2.1-or-later
#include "interop/rpc_tap.hpp"

#include <poll.h>

namespace sluice::test {
namespace {

constexpr uint32_t keepalive_program = 0x6b656570;
constexpr uint32_t ping = 1;
constexpr uint32_t pong = 2;
constexpr size_t header_bytes = 16;

uint32_t word(const std::string &message, size_t index)
{
    uint32_t value;
    std::memcpy(&value, message.data() + index * sizeof value, sizeof value);
    return ntohl(value);
}

UniqueFd connect_to(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd fd(must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    must(connect(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof address), "connect");
    return fd;
}

} // namespace

RpcTap::RpcTap(const std::string &path, const std::string &daemon, std::function<void()> changed)
    : daemon_(daemon), changed_(std::move(changed)), listener_(Listener::unix_socket(path)), thread_([this] { run(); })
{}

RpcTap::~RpcTap()
{
    stop_.second.reset();
    thread_.join();
}

void RpcTap::run()
{
    pollfd first[2] = {{listener_.fd(), POLLIN, 0}, {stop_.first.get(), POLLIN, 0}};
    if (poll(first, 2, -1) < 0 || !(first[0].revents & POLLIN))
        return;
    UniqueFd client(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    UniqueFd server = connect_to(daemon_);
    Lane lanes[2] = {{client.get(), server.get(), {}}, {server.get(), client.get(), {}}};
    for (;;) {
        pollfd ready[3] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}, {stop_.first.get(), POLLIN, 0}};
        if (poll(ready, 3, -1) < 0 || ready[2].revents)
            return;
        for (int i = 0; i < 2; ++i)
            if (ready[i].revents && !forward(lanes[i]))
                return;
    }
}

// False at the end of the stream.
bool RpcTap::forward(Lane &lane)
{
    char block[65536];
    const ssize_t got = recv(lane.from, block, sizeof block, 0);
    if (got <= 0)
        return false;
    for (ssize_t sent = 0; sent < got;) {
        const ssize_t now = send(lane.to, block + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
        if (now <= 0)
            return false;
        sent += now;
    }
    lane.pending.append(block, static_cast<size_t>(got));
    while (lane.pending.size() >= header_bytes && lane.pending.size() >= word(lane.pending, 0)) {
        count(lane.pending);
        lane.pending.erase(0, std::max<size_t>(header_bytes, word(lane.pending, 0)));
    }
    return true;
}

void RpcTap::count(const std::string &message)
{
    if (word(message, 1) != keepalive_program)
        return;
    const uint32_t procedure = word(message, 3);
    pings_ += procedure == ping;
    pongs_ += procedure == pong;
    changed_();
}

} // namespace sluice::test
