// SPDX-License-Identifier: LGPL-2.1-or-later

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "util/net/connect_fixture.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST_F(Connect, UnixAtOnce)
{
    TestDir dir;
    UniqueFd path_server = make_socket(dir / "s", 5);
    expect_good(connect_at_once(UnixPath{dir / "s"}));
    EXPECT_EQ(steps, (std::vector<std::string>{"connect", "connected"}));

    UnixAbstract name{"sluice-connect-" + std::to_string(getpid())};
    UniqueFd server(socket(AF_UNIX, SOCK_STREAM, 0));
    auto at = to_socket_address(name);
    ASSERT_EQ(bind(server.get(), at->get(), at->size), 0);
    expect_error(connect_at_once(name), ECONNREFUSED, "unix:@" + name.name);
    ASSERT_EQ(listen(server.get(), 5), 0);
    expect_good(connect_at_once(name));
}

TEST_F(Connect, UnixFailuresAtOnceEachInItsOwnWords)
{
    TestDir dir;
    std::ofstream(dir / "file") << "text";
    make_dead_socket(dir / "dead");
    UniqueFd datagrams = make_socket(dir / "datagrams", -1, SOCK_DGRAM);

    expect_error(connect_at_once(UnixPath{dir / "none"}), ENOENT, "start the daemon");
    expect_error(connect_at_once(UnixPath{dir / "no/folder"}), ENOENT, "unix:" + dir / "no/folder");
    expect_error(connect_at_once(UnixPath{dir / "file/s"}), ENOTDIR, "does not lead anywhere");
    expect_error(connect_at_once(UnixPath{dir / "file"}), ENOTSOCK, "is no socket");
    expect_error(connect_at_once(UnixPath{dir.path()}), ENOTSOCK, "is no socket");
    expect_error(connect_at_once(UnixPath{dir / "dead"}), ECONNREFUSED, "nobody listens");
    expect_error(connect_at_once(UnixPath{dir / "datagrams"}), EPROTOTYPE, "stream kind");
    expect_error(connect_at_once(UnixPath{"/" + std::string(107, 'p')}), ENAMETOOLONG, "at most 107 bytes");
    expect_error(connect_at_once(UnixAbstract{std::string(108, 'p')}), ENAMETOOLONG, "at most 107 bytes");
}

TEST_F(Connect, UnixNotPermitted)
{
    TestDir dir;
    UniqueFd server = make_socket(dir / "s", 5);
    chmod(dir.path().c_str(), 0755);
    chmod((dir / "s").c_str(), 0);
    EXPECT_EQ(in_child([&] {
                  if (!become_unprivileged())
                      return 1;
                  auto result = connect_at_once(UnixPath{dir / "s"});
                  bool said = !result && result.error().message.find("permission") != std::string::npos;
                  return said && result.error().code == EACCES ? 0 : 2;
              }),
              0);
}

// Case H12.
TEST_F(Connect, WaitsForRoomInTheBacklog)
{
    TestDir dir;
    UniqueFd server = make_socket(dir / "s", 0);
    auto clients = fill_backlog(*to_socket_address(UnixPath{dir / "s"}));
    ASSERT_FALSE(clients.empty());

    auto task = connect_to(loop, UnixPath{dir / "s"}, options);
    task.start();
    while (std::count(steps.begin(), steps.end(), "retry") < 3)
        loop.iterate();
    ASSERT_FALSE(task.done());
    UniqueFd accepted(accept(server.get(), nullptr, nullptr));
    ASSERT_TRUE(accepted);
    while (!task.done())
        loop.iterate();
    expect_good(task.take());
    EXPECT_EQ(steps.back(), "connected");
}

TEST_F(Connect, GivesUpOnAFullBacklog)
{
    TestDir dir;
    UniqueFd server = make_socket(dir / "s", 0);
    auto clients = fill_backlog(*to_socket_address(UnixPath{dir / "s"}));
    options.timeout = 20ms;
    expect_error(connect(UnixPath{dir / "s"}), ETIMEDOUT, "did not accept the connection within 0.02 s");
    options.timeout = 0ms;
    expect_error(connect_at_once(UnixPath{dir / "s"}), ETIMEDOUT, "overloaded or hangs");
}

TEST_F(Connect, IsGivenUpByDestroyingTheTask)
{
    TestDir dir;
    UniqueFd server = make_socket(dir / "s", 0);
    auto clients = fill_backlog(*to_socket_address(UnixPath{dir / "s"}));
    TcpServer silent(0);
    auto more = fill_backlog(silent.address);
    UniqueFd first_free(dup(0));
    {
        auto unix_task = connect_to(loop, UnixPath{dir / "s"}, options);
        unix_task.start();
        auto tcp_task = connect_to(loop, silent.name, options);
        tcp_task.start();
        EXPECT_FALSE(unix_task.done());
        EXPECT_FALSE(tcp_task.done());
        EXPECT_GT(loop.stats().timeouts, 0u);
    }
    loop.drain();
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
    int before = first_free.get();
    first_free.reset();
    first_free.reset(dup(0));
    EXPECT_EQ(first_free.get(), before);
    // a look-up whose thread is still at it
    auto named = connect_to(loop, TcpAddress{"localhost", silent.name.service}, options);
    named.start();
}

TEST_F(Connect, TcpByNumberAndByName)
{
    for (const char *host : {"127.0.0.1", "::1"}) {
        TcpServer server(5, host);
        auto result = connect(server.name);
        expect_good(result);
        int nodelay = 0;
        socklen_t size = sizeof nodelay;
        getsockopt(result->get(), IPPROTO_TCP, TCP_NODELAY, &nodelay, &size);
        EXPECT_NE(nodelay, 0);
        EXPECT_EQ(to_string(peer_address(result->get())), to_string(server.address));
    }
    TcpServer server(5);
    steps.clear();
    expect_good(connect(TcpAddress{"localhost", server.name.service}));
    ASSERT_GE(steps.size(), 4u);
    EXPECT_EQ(steps[0], "resolve");
    EXPECT_EQ(steps[1], "resolved");
    EXPECT_EQ(steps[2], "connect");
    EXPECT_EQ(steps.back(), "connected");
}

TEST_F(Connect, TcpFailures)
{
    TcpServer closed(-1);
    expect_error(connect(closed.name), ECONNREFUSED, "nobody listens on this port");
    expect_error(connect(TcpAddress{"fe80::1%nonesuch0", "80"}), ENODEV, "no network interface 'nonesuch0'");
    expect_error(connect(TcpAddress{"localhost", "no-such-service"}), name_not_found, "'no-such-service'");
    // a label of more than 63 bytes: refused without asking any server
    expect_error(connect(TcpAddress{std::string(64, 'a') + ".invalid", "80"}), name_not_found, "no address is known");
}

TEST_F(Connect, TcpWithAScope)
{
    ifaddrs *list = nullptr;
    ASSERT_EQ(getifaddrs(&list), 0);
    std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
    for (const ifaddrs *entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET6 || !(entry->ifa_flags & IFF_UP))
            continue;
        SocketAddress at;
        at.size = sizeof(sockaddr_in6);
        std::memcpy(&at.storage, entry->ifa_addr, sizeof(sockaddr_in6));
        std::string text = to_string(at); // [fe80::1%eth0]:0
        if (!text.starts_with("[fe80:"))
            continue;
        TcpServer server(5, text.substr(1, text.find(']') - 1).c_str());
        expect_good(connect(server.name));
        return;
    }
    GTEST_SKIP() << "no interface has a link-local address";
}

TEST_F(Connect, TriesTheNextAddressWhenOneIsDead)
{
    TcpServer refusing(-1), silent(0), alive(5);
    auto clients = fill_backlog(silent.address);
    TcpAddress name{"several.example", "80"};

    auto after_refusal = run(loop, connect_to_any(loop, name, {refusing.address, alive.address}, options));
    expect_good(after_refusal);
    EXPECT_EQ(to_string(peer_address(after_refusal->get())), to_string(alive.address));

    // silence is waited for, once; the refusal after it is not
    steps.clear();
    uint64_t waits = loop.stats().expirations;
    auto after_silence =
        run(loop, connect_to_any(loop, name, {silent.address, refusing.address, alive.address}, options));
    expect_good(after_silence);
    EXPECT_EQ(to_string(peer_address(after_silence->get())), to_string(alive.address));
    EXPECT_EQ(steps, (std::vector<std::string>{"connect", "connect", "failed", "connect", "connected"}));
    EXPECT_EQ(loop.stats().expirations - waits, 1u);
}

TEST_F(Connect, SaysHowEachAddressFailed)
{
    TcpServer refusing(-1), silent(0);
    auto clients = fill_backlog(silent.address);
    TcpAddress name{"several.example", "80"};
    options.timeout = 20ms;
    auto one = run(loop, connect_to_any(loop, name, {silent.address}, options));
    expect_error(one, ETIMEDOUT, "tcp:several.example:80: no answer within 0.02 s");

    auto two = run(loop, connect_to_any(loop, name, {refusing.address, silent.address}, options));
    expect_error(two, ECONNREFUSED, to_string(refusing.address) + ": Connection refused");
    expect_error(two, ECONNREFUSED, to_string(silent.address) + ": Connection timed out");

    std::vector<SocketAddress> many(7, refusing.address);
    expect_error(run(loop, connect_to_any(loop, name, many, options)), ECONNREFUSED, ", and 3 more");
    expect_error(run(loop, connect_to_any(loop, name, {}, options)), EHOSTUNREACH, "several.example");
}

// In a network of its own where the only port for our end is the one we connect to.
TEST_F(Connect, DoesNotTakeItselfForAServer)
{
    constexpr int skip = 77;
    int result = in_child([&] {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            return skip;
        UniqueFd any(socket(AF_INET, SOCK_DGRAM, 0));
        ifreq lo{};
        std::strcpy(lo.ifr_name, "lo");
        lo.ifr_flags = IFF_UP;
        if (ioctl(any.get(), SIOCSIFFLAGS, &lo) != 0)
            return skip;
        std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
        range << "40001 40001" << std::flush;
        if (!range)
            return skip;
        // the kernel does as we fear
        TcpAddress name{"127.0.0.1", "40001"};
        auto at = run(loop, resolve(loop, name, INT64_MAX));
        UniqueFd itself = dial(at->at(0));
        linger at_once{1, 0}; // no TIME_WAIT, which would keep the port
        setsockopt(itself.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        itself.reset();
        UniqueFd now;
        if (connect_now(at->at(0), now) != ECONNREFUSED || now)
            return 2;
        auto ours = connect(name);
        return !ours && ours.error().code == ECONNREFUSED ? 0 : 1;
    });
    if (result == skip)
        GTEST_SKIP() << "no network namespace to be had";
    EXPECT_EQ(result, 0);
}

TEST_F(Connect, Vsock)
{
    SocketAddress local = to_socket_address(VsockAddress{VMADDR_CID_LOCAL, VMADDR_PORT_ANY});
    UniqueFd server(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!server) {
        expect_error(connect(VsockAddress{VMADDR_CID_LOCAL, 5}), errno, "vsock:1:5");
        return;
    }
    if (bind(server.get(), local.get(), local.size) != 0)
        GTEST_SKIP() << "no vsock loopback (modprobe vsock_loopback)";
    sockaddr_vm bound{};
    socklen_t size = sizeof bound;
    ASSERT_EQ(getsockname(server.get(), reinterpret_cast<sockaddr *>(&bound), &size), 0);
    VsockAddress name{VMADDR_CID_LOCAL, bound.svm_port};
    expect_error(connect(name), ECONNREFUSED, "nobody listens on this port");
    ASSERT_EQ(listen(server.get(), 5), 0);
    expect_good(connect(name));
}

} // namespace
} // namespace sluice
