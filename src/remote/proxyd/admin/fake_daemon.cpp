// SPDX-License-Identifier: LGPL-2.1-or-later

// `fake_daemon PATH`: an admin socket with a made-up daemon behind it, for the tests of
// programs that talk to one. It tells each order on stdout, in a line of its own. From one
// status to the next its clock goes on by a second, and its traffic as said below, so that
// rates are known whatever the clock of the machine does. Ends when stdin does.

#include <cstdio>

#include <unistd.h>

#include "remote/proxyd/admin/admin_server.hpp"
#include "remote/proxyd/admin/fake_control.hpp"

namespace sluice::proxyd {
namespace {

class Busy : public FakeControl {
public:
    Busy()
    {
        status.uptime_seconds = 3600;
        status.services[1].name = "db";
        status.services[0].bytes_down = 5 << 20;
        ConnectionStatus quick = status.connections[0];
        quick.id = 18;
        quick.peer = "uid 0 pid 1";
        status.connections.insert(status.connections.begin(), quick);
    }
    void snapshot(bool with_connections, std::function<void(DaemonStatus)> done) override
    {
        status.uptime_seconds += 1;
        status.services[0].bytes_up += 1 << 10;   // 1 KiB/s
        status.services[0].bytes_down += 3 << 20; // 3 MiB/s
        status.services[0].accepted += 7;
        if (status.connections.size() > 1)
            status.connections[0].down.bytes += 2 << 20; // the one with id 18
        status.connections.back().down.bytes += 1 << 20; // the one with id 17
        FakeControl::snapshot(with_connections, std::move(done));
    }
};

int main(const char *path)
{
    Loop loop;
    ListenOptions options;
    options.mode = 0666;
    auto listener = listen_on(UnixPath{path}, options);
    if (!listener) {
        std::fprintf(stderr, "%s\n", listener.error().message.c_str());
        return 1;
    }
    std::vector<Listener> listeners;
    listeners.push_back(std::move(*listener));
    Busy control;
    AdminServer server(loop, std::move(listeners), {}, control);
    bool ended = false;
    Handle input = loop.watch(STDIN_FILENO, SLUICE_EVENT_READABLE, [&](int) {
        char byte;
        ended = read(STDIN_FILENO, &byte, 1) <= 0;
    });
    std::puts("ready");
    std::fflush(stdout);
    while (!ended) {
        loop.iterate();
        for (const std::string &order : std::exchange(control.orders, {}))
            std::puts(order.c_str());
        std::fflush(stdout);
    }
    return 0;
}

} // namespace
} // namespace sluice::proxyd

int main(int argc, char **argv)
{
    return argc == 2 ? sluice::proxyd::main(argv[1]) : 2;
}
