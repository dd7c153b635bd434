// SPDX-License-Identifier: LGPL-2.1-or-later

// Clients of the admin server that do it wrong, take their time, go away or come in
// numbers; and a daemon that takes its time.

#include <sys/socket.h>

#include "remote/proxyd/admin/admin_fixture.hpp"
#include "remote/proxyd/admin/metrics.hpp"

namespace sluice::proxyd {
namespace {

using namespace std::chrono_literals;
using Orders = std::vector<std::string>;

// For tests in which a client is to be dropped: as soon as can be.
constexpr AdminLimits impatient{.request = 50ms, .answer = 50ms};

class AdminFaults : public AdminServerTest {};

TEST_F(AdminFaults, GarbageIsRefusedAndForgotten)
{
    start();
    for (std::string_view text :
         {"\r\n\r\n", "garbage\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: /\r\n\r\n", "GET metrics HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET ftp://x/ HTTP/1.1\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
          "POST /services/web/drain HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
          "POST /services/web/drain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        Raw raw(*this, address);
        raw.send(text);
        raw.half_close();
        turn_until([&] { return raw.ended; });
        EXPECT_NE(raw.status(), 200) << text << raw.received;
    }
    Raw zeros(*this, address);
    zeros.send(std::string(1000, '\0') + "\r\n\r\n");
    zeros.half_close();
    turn_until([&] { return zeros.ended; });
    EXPECT_EQ(control.orders, Orders{});
    expect_well();
}

TEST_F(AdminFaults, OldHttpWithoutAHostIsServed)
{
    start();
    Raw raw(*this, address);
    raw.send("GET /metrics HTTP/1.0\r\n\r\n");
    turn_until([&] { return raw.ended; });
    EXPECT_EQ(raw.status(), 200) << raw.received;
    EXPECT_TRUE(raw.received.ends_with("\r\n\r\n" + to_metrics(control.status)));
}

TEST_F(AdminFaults, OneRequestToAConnection)
{
    start();
    Raw raw(*this, address);
    raw.send(
        "POST /services/web/drain HTTP/1.1\r\nHost: x\r\n\r\nPOST /services/web/resume HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until([&] { return raw.ended; });
    EXPECT_EQ(raw.status(), 200);
    EXPECT_EQ(control.orders, Orders{"draining web"});
}

TEST_F(AdminFaults, ARequestInPiecesIsServed)
{
    start();
    Raw raw(*this, address);
    for (char c : std::string_view("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")) {
        raw.send({&c, 1});
        loop.iterate(false);
    }
    turn_until([&] { return raw.ended; });
    EXPECT_EQ(raw.status(), 200) << raw.received;
}

TEST_F(AdminFaults, WhoSaysNothingIsDropped)
{
    start(impatient);
    Raw silent(*this, address);
    Raw half(*this, address);
    half.send("GET /metrics HTTP/1.1\r\nHo");
    Raw body(*this, address);
    body.send("POST /services/web/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    turn_until([&] { return silent.ended && half.ended && body.ended; });
    EXPECT_EQ(silent.received + half.received, "");
    EXPECT_NE(body.status(), 200);
    EXPECT_EQ(control.orders, Orders{});
    turn_until([&] { return server->clients() == 0; });
}

TEST_F(AdminFaults, WhoLeavesEarlyIsForgotten)
{
    start();
    for (std::string_view text : {"", "GET", "GET /metrics HTTP/1.1\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}) {
        Raw raw(*this, address);
        raw.send(text);
        raw.close();
        turn_until([&] { return server->clients() == 0; });
    }
    expect_well();
}

TEST_F(AdminFaults, EndlessHeadersAreCutOff)
{
    start();
    Raw raw(*this, address);
    raw.send("GET /metrics HTTP/1.1\r\nHost: x\r\n");
    const std::string line = "X-Filler: " + std::string(1000, 'x') + "\r\n";
    size_t sent = 0;
    while (sent < 64'000'000 && !raw.ended && raw.send(line)) {
        sent += line.size();
        loop.iterate(false);
    }
    EXPECT_LT(sent, 1'000'000u);
    raw.half_close();
    turn_until([&] { return raw.ended; });
    EXPECT_NE(raw.status(), 200) << raw.received.substr(0, 200);
    EXPECT_EQ(control.orders, Orders{});
    expect_well();
}

TEST_F(AdminFaults, ALargeBodyIsRefused)
{
    start();
    const test::TempDir files;
    test::open_file(files / "body", O_WRONLY | O_CREAT);
    std::filesystem::resize_file(files / "body", 40'000);
    const Answer answer =
        curl({"-X", "POST", "-H", "Expect:", "--data-binary", "@" + (files / "body"), "http://x/services/web/drain"});
    EXPECT_EQ(answer.status, 413);
    EXPECT_EQ(answer.body, "{\"error\":\"no request needs so large a body\"}\n");
    EXPECT_EQ(curl({"-X", "POST", "-H", "Expect:", "-H", "Transfer-Encoding: chunked", "--data-binary",
                    "@" + (files / "body"), "http://x/services/web/drain"})
                  .status,
              411);
    EXPECT_EQ(curl({"-X", "POST", "-H", "Expect: 100-continue", "--data-binary", "@" + (files / "body"),
                    "http://x/services/web/drain"})
                  .status,
              413);
    EXPECT_EQ(control.orders, Orders{});
    EXPECT_EQ(curl({"-d", "small=1", "http://x/services/web/drain"}).status, 200);
}

TEST_F(AdminFaults, AnEndlessBodyIsCutOff)
{
    start();
    Raw raw(*this, address);
    raw.send("POST /services/web/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(10'000, 'x');
    size_t sent = 0;
    while (sent < 64'000'000 && !raw.ended && raw.send(block)) {
        sent += block.size();
        loop.iterate(false);
    }
    EXPECT_LT(sent, 2'000'000u);
    turn_until([&] { return raw.ended; });
    EXPECT_EQ(control.orders, Orders{});
    expect_well();
}

TEST_F(AdminFaults, FurtherClientsWaitForAPlace)
{
    start({.clients = 3});
    control.hold = true;
    std::vector<std::unique_ptr<Raw>> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(std::make_unique<Raw>(*this, address));
        clients.back()->send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (size_t served = 0; served < clients.size();) {
        turn_until([&] { return control.held() == std::min<size_t>(3, clients.size() - served); });
        EXPECT_LE(server->clients(), 3u);
        served += control.held();
        control.let_go();
        turn_until([&] {
            return static_cast<size_t>(std::count_if(clients.begin(), clients.end(),
                                                     [](const auto &one) { return one->ended; })) >= served;
        });
    }
    for (const auto &client : clients)
        EXPECT_EQ(client->status(), 200);
}

TEST_F(AdminFaults, ThoseWhoAreRefusedDoNotTakeAllPlaces)
{
    start({.clients = 4, .refused_clients = 2}, [](const Peer &) { return false; });
    std::vector<std::unique_ptr<Raw>> strangers;
    for (int i = 0; i < 6; ++i)
        strangers.push_back(std::make_unique<Raw>(*this, tcp_address));
    auto cut_off = [&] {
        return std::count_if(strangers.begin(), strangers.end(), [](const auto &one) { return one->ended; });
    };
    turn_until([&] { return cut_off() == 4; });
    EXPECT_EQ(server->clients(), 2u);
    EXPECT_EQ(get("/metrics").status, 200);
    EXPECT_EQ(cut_off(), 4);
}

TEST_F(AdminFaults, StrangersAreToldSoWhateverTheySay)
{
    start();
    for (std::string_view text : {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "garbage", "\r\n\r\n", ""}) {
        Raw stranger(*this, tcp_address);
        stranger.send(text);
        stranger.half_close();
        turn_until([&] { return stranger.ended; });
        EXPECT_EQ(stranger.status(), 403) << text;
        EXPECT_TRUE(
            stranger.received.ends_with("\r\n\r\n{\"error\":\"you are not allowed to use the admin socket\"}\n"));
    }
    Raw stranger(*this, tcp_address);
    size_t sent = 0;
    while (sent < 64'000'000 && stranger.send(std::string(1000, 'x'))) {
        sent += 1000;
        loop.iterate(false);
    }
    EXPECT_LT(sent, 10'000'000u);
    expect_well();
}

TEST_F(AdminFaults, StrangersWhoSayNothingAreDropped)
{
    start(impatient);
    Raw stranger(*this, tcp_address);
    turn_until([&] { return stranger.ended; });
    EXPECT_EQ(stranger.received, "");
    turn_until([&] { return server->clients() == 0; });
}

TEST_F(AdminFaults, ASlowDaemonIsWaitedFor)
{
    start();
    control.hold = true;
    Raw status(*this, address);
    status.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    Raw order(*this, address);
    order.send("POST /connections/17/close HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    turn_until([&] { return control.held() == 2; });
    EXPECT_EQ(status.received + order.received, "");
    EXPECT_EQ(get("/").status, 200); // others are served meanwhile
    control.let_go();
    turn_until([&] { return status.ended && order.ended; });
    EXPECT_TRUE(status.received.ends_with("\r\n\r\n" + to_metrics(control.status)));
    EXPECT_TRUE(order.received.ends_with("{\"done\":\"close\",\"connection\":17}\n"));
}

TEST_F(AdminFaults, ADaemonThatIsTooSlowIsGivenUp)
{
    start({.answer = 50ms});
    control.hold = true;
    Raw raw(*this, address);
    raw.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until([&] { return raw.ended; });
    EXPECT_EQ(raw.status(), 503) << raw.received;
    turn_until([&] { return server->clients() == 0; });
    control.let_go(); // too late for anybody
    control.hold = false;
    expect_well();
}

TEST_F(AdminFaults, WhoLeavesWhileTheDaemonThinksIsForgotten)
{
    start();
    control.hold = true;
    Raw raw(*this, address);
    raw.send("GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until([&] { return control.held() == 1; });
    raw.close();
    control.let_go();
    control.hold = false;
    expect_well();
}

TEST_F(AdminFaults, WhoDoesNotTakeTheAnswerIsDropped)
{
    const ConnectionStatus one = control.status.connections[0];
    control.status.connections.assign(20'000, one); // more than a socket holds
    start({.answer = 200ms});
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(fd.get(), address.get(), address.size), 0);
    const std::string_view request = "GET /status HTTP/1.1\r\nHost: x\r\n\r\n";
    ASSERT_EQ(send(fd.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    turn_until([&] { return server->clients() == 1; });
    turn_until([&] { return server->clients() == 0; });
}

TEST_F(AdminFaults, TheServerMayGoWhileClientsWait)
{
    start();
    control.hold = true;
    Raw waiting(*this, address);
    waiting.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    Raw half(*this, address);
    half.send("GET /metr");
    Raw stranger(*this, tcp_address);
    turn_until([&] { return control.held() == 1 && server->clients() == 3; });
    server.reset();
    control.let_go();
    turn_until([&] { return waiting.ended && half.ended && stranger.ended; });
    EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace
} // namespace sluice::proxyd
