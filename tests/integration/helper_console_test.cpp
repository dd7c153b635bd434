// SPDX-License-Identifier: LGPL-2.1-or-later

// An interactive console (case H11) and a daemon with a full backlog (case H12).

#include "support/helper.hpp"

namespace sluice::test {
namespace {

class HelperConsole : public HelperTest, public ::testing::WithParamInterface<Stdio> {};

INSTANTIATE_TEST_SUITE_P(Stdio, HelperConsole, ::testing::Values(Stdio::pipes, Stdio::socketpair),
                         [](const auto &which) { return name_of(which.param); });

// Send the byte in at one end and take it out at the other; -1 when it does not come.
int carried(int from, int to, int value)
{
    const char sent = char(value);
    char received = 0;
    if (write(from, &sent, 1) != 1 || !wait_for(to, POLLIN) || read(to, &received, 1) != 1)
        return -1;
    return uint8_t(received);
}

TEST_P(HelperConsole, OneByteEachWayThousandsOfTimes)
{
    RelaySession session = connect(GetParam());
    for (int i = 0; i < 5000; ++i) {
        ASSERT_EQ(carried(session.input.get(), session.server.get(), i & 0xff), i & 0xff) << i;
        ASSERT_EQ(carried(session.server.get(), session.output.get(), ~i & 0xff), ~i & 0xff) << i;
    }
    session.end_input();
    session.server.reset();
    expect_exit(session.child, 0);
}

// A lane that has moved to large pieces for the sake of a bulk transfer holds no byte back afterwards.
TEST_P(HelperConsole, OneByteAtATimeAfterBulk)
{
    constexpr uint64_t bulk = 64 << 20;
    RelaySession session = connect(GetParam());
    {
        Traffic traffic;
        traffic.feed(session.input.get(), bulk);
        traffic.feed(session.server.get(), bulk, Pattern{2});
        Drain &arrived = traffic.drain(session.server.get());
        Drain &output = traffic.drain(session.output.get(), Pattern{2});
        ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes == bulk && output.bytes == bulk; }));
        EXPECT_TRUE(arrived.intact && output.intact);
    }
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(carried(session.input.get(), session.server.get(), i & 0xff), i & 0xff) << i;
        ASSERT_EQ(carried(session.server.get(), session.output.get(), ~i & 0xff), ~i & 0xff) << i;
    }
}

// Connections that fill the backlog of a unix socket; the next one gets EAGAIN.
std::vector<UniqueFd> fill_backlog(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    std::vector<UniqueFd> waiting;
    for (;;) {
        UniqueFd fd{must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket")};
        if (connect(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0) {
            if (errno != EAGAIN)
                throw std::system_error(errno, std::generic_category(), "connect");
            return waiting;
        }
        waiting.push_back(std::move(fd));
    }
}

class HelperBacklog : public HelperTest {
protected:
    Listener busy = Listener::unix_socket(dir / "busy.sock", 1);
    std::vector<UniqueFd> waiting = fill_backlog(busy.address());
};

TEST_F(HelperBacklog, WaitsForRoom)
{
    RelaySession session = RelaySession::start(Stdio::pipes, helper({"--connect-timeout=60", busy.address()}));
    ASSERT_EQ(write(session.input.get(), "early", 5), 5);
    // it has met the full backlog when it waits for something
    ASSERT_TRUE(eventually([&] { return session.child.sleeping(); }));
    for (size_t i = 0; i < waiting.size(); ++i)
        ASSERT_TRUE(busy.accept());
    session.server = busy.accept();
    ASSERT_TRUE(session.server) << session.child.errors();
    char received[5];
    ASSERT_TRUE(wait_for(session.server.get(), POLLIN));
    EXPECT_EQ(read(session.server.get(), received, 5), 5);
    session.end_input();
    session.server.reset();
    expect_exit(session.child, 0);
}

TEST_F(HelperBacklog, GivesUpAtTheConnectTimeout)
{
    Child child = helper({"--connect-timeout=300ms", busy.address()}).start();
    expect_exit(child, exit_code::unavailable);
    EXPECT_NE(child.errors().find(busy.address()), std::string::npos) << child.errors();
}

TEST_F(HelperBacklog, SaysSoWhenTheDaemonGoesMeanwhile)
{
    Child child = helper({"--connect-timeout=60", busy.address()}).start();
    ASSERT_TRUE(eventually([&] { return child.sleeping(); }));
    busy.close();
    expect_exit(child, exit_code::unavailable);
}

} // namespace
} // namespace sluice::test
