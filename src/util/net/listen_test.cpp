// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/listen.hpp"

#include <fstream>
#include <memory>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "util/async/task.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

Listener must_listen(const Address &address, const ListenOptions &options = {})
{
    auto listener = listen_on(address, options);
    if (!listener)
        throw std::runtime_error(listener.error().message);
    return std::move(*listener);
}

void turn_until(Loop &loop, const std::function<bool()> &done)
{
    while (!done())
        loop.iterate();
}

TEST(Listen, MakesAndRemovesAUnixPath)
{
    TestDir dir;
    std::string path = dir / "s";
    {
        Listener listener = must_listen(UnixPath{path});
        ASSERT_EQ(listener.addresses().size(), 1u);
        EXPECT_EQ(to_string(listener.addresses()[0]), "unix:" + path);
        UniqueFd client = dial(listener.addresses()[0]);
        EXPECT_TRUE(exists(path));
    }
    EXPECT_FALSE(exists(path));
}

TEST(Listen, SetsTheModeWhateverTheUmask)
{
    TestDir dir;
    std::string path = dir / "s";
    for (mode_t mode : {0600, 0666, 0660}) {
        mode_t before = umask(027);
        ListenOptions options;
        options.mode = mode;
        Listener listener = must_listen(UnixPath{path}, options);
        umask(before);
        struct stat found;
        ASSERT_EQ(stat(path.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, mode);
    }
}

TEST(Listen, ReplacesADeadSocketOnly)
{
    TestDir dir;
    std::string path = dir / "s";
    make_dead_socket(path);
    Listener listener = must_listen(UnixPath{path});

    auto second = listen_on(UnixPath{path});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, EADDRINUSE);
    EXPECT_NE(second.error().message.find("another process listens there"), std::string::npos);
    EXPECT_TRUE(exists(path));

    std::string file = dir / "file";
    std::ofstream(file) << "precious";
    auto third = listen_on(UnixPath{file});
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code, ENOTSOCK);
    EXPECT_TRUE(exists(file));
}

TEST(Listen, LeavesAPathThatSomebodyElseHasTaken)
{
    TestDir dir;
    std::string path = dir / "s";
    auto old = std::make_unique<Listener>(must_listen(UnixPath{path}));
    ASSERT_EQ(unlink(path.c_str()), 0);
    Listener successor = must_listen(UnixPath{path});
    old.reset();
    EXPECT_TRUE(exists(path));
}

TEST(Listen, NeverRemovesThePathOfASocketHandedIn)
{
    TestDir dir;
    std::string path = dir / "s";
    auto at = to_socket_address(UnixPath{path});
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(fd.get(), at->get(), at->size), 0);
    auto deaf = Listener::adopt(UniqueFd(dup(fd.get())));
    ASSERT_FALSE(deaf);
    EXPECT_EQ(deaf.error().code, EINVAL);

    ASSERT_EQ(listen(fd.get(), 5), 0);
    {
        auto listener = Listener::adopt(std::move(fd));
        ASSERT_TRUE(listener) << listener.error().message;
        int number = listener->fds()[0].get();
        EXPECT_NE(fcntl(number, F_GETFL) & O_NONBLOCK, 0);
        EXPECT_NE(fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_TRUE(exists(path));
    EXPECT_FALSE(Listener::adopt(UniqueFd(open("/dev/null", O_RDONLY))));
}

TEST(Listen, SaysWhatIsWrong)
{
    TestDir dir;
    auto missing = listen_on(UnixPath{dir / "no/s"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ENOENT);
    auto too_long = listen_on(UnixPath{"/" + std::string(107, 'p')});
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().code, ENAMETOOLONG);
    auto elsewhere = listen_on(TcpAddress{"192.0.2.77", "0"});
    ASSERT_FALSE(elsewhere);
    EXPECT_EQ(elsewhere.error().code, EADDRNOTAVAIL);
    auto scope = listen_on(TcpAddress{"fe80::1%nonesuch0", "0"});
    ASSERT_FALSE(scope);
    EXPECT_EQ(scope.error().code, ENODEV);
    EXPECT_NE(scope.error().message.find("nonesuch0"), std::string::npos);
}

TEST(Acceptor, TakesConnectionsOfEveryKind)
{
    TestDir dir;
    const Address addresses[] = {UnixPath{dir / "s"}, UnixAbstract{"sluice-test-" + std::to_string(getpid())},
                                 TcpAddress{"127.0.0.1", "0"}, TcpAddress{"::1", "0"}};
    for (const Address &address : addresses) {
        Loop loop;
        UniqueFd accepted;
        SocketAddress peer;
        Acceptor::Callbacks callbacks;
        callbacks.accepted = [&](UniqueFd fd, const SocketAddress &from) {
            accepted = std::move(fd);
            peer = from;
        };
        Acceptor acceptor(loop, must_listen(address), callbacks);
        UniqueFd client = dial(acceptor.listener().addresses()[0]);
        turn_until(loop, [&] { return static_cast<bool>(accepted); });
        EXPECT_NE(fcntl(accepted.get(), F_GETFL) & O_NONBLOCK, 0) << to_string(address);
        EXPECT_NE(fcntl(accepted.get(), F_GETFD) & FD_CLOEXEC, 0) << to_string(address);
        ASSERT_EQ(write(client.get(), "x", 1), 1);
        char byte = 0;
        auto receive = [](Loop on, int fd, char *into) -> Task<ssize_t> {
            co_await on.readable(fd);
            co_return read(fd, into, 1);
        };
        EXPECT_EQ(run(loop, receive(loop, accepted.get(), &byte)), 1);
        EXPECT_EQ(byte, 'x');
        if (std::holds_alternative<TcpAddress>(address)) {
            EXPECT_EQ(to_string(peer), to_string(local_address(client.get())));
            int nodelay = 0;
            socklen_t size = sizeof nodelay;
            getsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &nodelay, &size);
            EXPECT_NE(nodelay, 0);
        }
    }
}

TEST(Acceptor, TakesABoundedBatchATurn)
{
    TestDir dir;
    Loop loop;
    std::vector<UniqueFd> clients, accepted;
    Acceptor::Callbacks callbacks;
    callbacks.accepted = [&](UniqueFd fd, const SocketAddress &) { accepted.push_back(std::move(fd)); };
    Acceptor::Limits limits;
    limits.batch = 4;
    Acceptor acceptor(loop, must_listen(UnixPath{dir / "s"}), callbacks, limits);
    for (int i = 0; i < 10; ++i)
        clients.push_back(dial(acceptor.listener().addresses()[0]));

    turn_until(loop, [&] { return accepted.size() == 10; });
    EXPECT_GE(loop.stats().events, 3u); // callbacks, of at most four connections each
    EXPECT_EQ(acceptor.counters().accepted, 10u);
}

TEST(Acceptor, MayBeDestroyedByItsCallback)
{
    TestDir dir;
    Loop loop;
    std::unique_ptr<Acceptor> acceptor;
    std::vector<UniqueFd> clients;
    int calls = 0;
    Acceptor::Callbacks callbacks;
    callbacks.accepted = [&, text = std::string(100, 'x')](UniqueFd, const SocketAddress &) {
        acceptor.reset();
        calls += text.size() == 100; // our own captures are still there
    };
    acceptor = std::make_unique<Acceptor>(loop, must_listen(UnixPath{dir / "s"}), callbacks);
    for (int i = 0; i < 3; ++i)
        clients.push_back(dial(acceptor->listener().addresses()[0]));
    turn_until(loop, [&] { return acceptor == nullptr; });
    loop.drain();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(loop.stats().handles, 0u);
    EXPECT_EQ(loop.stats().timeouts, 0u);
}

TEST(Acceptor, HoldsAndReleases)
{
    TestDir dir;
    Loop loop;
    std::vector<UniqueFd> clients, accepted;
    std::unique_ptr<Acceptor> acceptor;
    Acceptor::Callbacks callbacks;
    callbacks.accepted = [&](UniqueFd fd, const SocketAddress &) {
        accepted.push_back(std::move(fd));
        if (accepted.size() == 2)
            acceptor->hold();
    };
    acceptor = std::make_unique<Acceptor>(loop, must_listen(UnixPath{dir / "s"}), callbacks);
    for (int i = 0; i < 5; ++i)
        clients.push_back(dial(acceptor->listener().addresses()[0]));
    turn_until(loop, [&] { return accepted.size() >= 2; });
    for (int i = 0; i < 20; ++i)
        loop.iterate(false);
    EXPECT_EQ(accepted.size(), 2u);
    acceptor->release();
    turn_until(loop, [&] { return accepted.size() == 5; });
}

// Case E1: more clients than descriptors. The steps that fail say so by number.
int run_out_of_descriptors(const std::string &path, bool tell)
{
    constexpr size_t clients_wanted = 60, room = 8;
    Loop loop;
    std::vector<UniqueFd> accepted;
    int paused = 0, recovered = 0;
    Acceptor::Callbacks callbacks;
    callbacks.accepted = [&](UniqueFd fd, const SocketAddress &) { accepted.push_back(std::move(fd)); };
    callbacks.paused = [&](const Error &why) { paused += why.code == EMFILE ? 1 : 1000; };
    callbacks.recovered = [&] { ++recovered; };
    Acceptor::Limits limits;
    if (tell)
        limits.pause = limits.pause_max = 1h; // only being told can help
    Acceptor acceptor(loop, must_listen(UnixPath{path}), callbacks, limits);

    std::vector<UniqueFd> clients;
    for (size_t i = 0; i < clients_wanted; ++i)
        clients.push_back(dial(acceptor.listener().addresses()[0]));
    UniqueFd next(dup(0));
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(next.get()) + room;
    next.reset();
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;

    turn_until(loop, [&] { return acceptor.paused(); });
    if (accepted.size() != room || paused != 1)
        return 2;
    if (!tell) {
        // while nothing is free there are but a few tries, where a spin has many thousands
        auto before = loop.stats();
        run(loop, [](Loop on) -> Task<void> { co_await on.sleep_for(300ms); }(loop));
        if (loop.stats().turns - before.turns > 50 || acceptor.counters().failed > 50 || accepted.size() != room)
            return 3;
    }
    // as room appears, a few at a time, the clients come in, with no second report
    size_t served = 0;
    while (served + accepted.size() < clients_wanted || acceptor.paused()) {
        served += accepted.size();
        accepted.clear();
        if (tell)
            acceptor.resource_freed();
        loop.iterate();
    }
    turn_until(loop, [&] { return recovered == 1; });
    if (paused != 1 || acceptor.counters().pauses != 1 || acceptor.counters().accepted != clients_wanted)
        return 4;
    // a later time of want is reported anew
    limit.rlim_cur += 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    UniqueFd late = dial(acceptor.listener().addresses()[0]);
    limit.rlim_cur = static_cast<rlim_t>(late.get()) + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    turn_until(loop, [&] { return acceptor.paused(); });
    return paused == 2 ? 0 : 5;
}

TEST(Acceptor, PausesWithoutDescriptorsAndRecovers)
{
    TestDir dir;
    EXPECT_EQ(in_child([&] { return run_out_of_descriptors(dir / "timed", false); }), 0);
}

TEST(Acceptor, RecoversAtOnceWhenTold)
{
    TestDir dir;
    EXPECT_EQ(in_child([&] { return run_out_of_descriptors(dir / "told", true); }), 0);
}

} // namespace
} // namespace sluice
