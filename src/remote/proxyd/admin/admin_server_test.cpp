// SPDX-License-Identifier: LGPL-2.1-or-later

// What the admin server answers, asked by curl.

#include "remote/proxyd/admin/admin_fixture.hpp"
#include "remote/proxyd/admin/metrics.hpp"
#include "remote/proxyd/admin/status_json.hpp"

namespace sluice::proxyd {
namespace {

using Orders = std::vector<std::string>;

bool has_line(const std::string &headers, const std::string &line)
{
    return headers.find("\r\n" + line + "\r\n") != std::string::npos;
}

TEST_F(AdminServerTest, TellsTheMetrics)
{
    start();
    const Answer answer = get("/metrics");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(has_line(answer.headers, "Content-Type: text/plain; version=0.0.4; charset=utf-8")) << answer.headers;
    EXPECT_EQ(answer.body, to_metrics(control.status));
    EXPECT_EQ(control.orders, Orders{"snapshot"});
}

TEST_F(AdminServerTest, TellsTheStatusWithAndWithoutConnections)
{
    start();
    const Answer answer = get("/status");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(has_line(answer.headers, "Content-Type: application/json")) << answer.headers;
    EXPECT_TRUE(has_line(answer.headers, "Connection: close")) << answer.headers;
    EXPECT_EQ(answer.body, to_json(control.status, true));
    EXPECT_EQ(get("/status?connections=yes").body, answer.body);
    EXPECT_EQ(get("/status?connections=no").body, to_json(control.status, false));
    EXPECT_EQ(control.orders, (Orders{"snapshot with connections", "snapshot with connections", "snapshot"}));
}

TEST_F(AdminServerTest, AnswersOnTcpWhenTheRulesLetIn)
{
    start({}, [](const Peer &peer) { return parse_address_range("127.0.0.0/8")->contains(peer.address); });
    EXPECT_EQ(curl({"--tcp", "http://" + tcp + "/metrics"}).body, to_metrics(control.status));
}

TEST_F(AdminServerTest, NobodyIsLetInOnTcpWithoutRules)
{
    start();
    const Answer answer = curl({"--tcp", "http://" + tcp + "/metrics"});
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.body, "{\"error\":\"you are not allowed to use the admin socket\"}\n");
    EXPECT_EQ(control.orders, Orders{});
}

TEST_F(AdminServerTest, JudgesAUnixClientByItsUid)
{
    if (geteuid() != 0) {
        if (getenv("CI"))
            FAIL() << "needs root to be somebody else";
        GTEST_SKIP() << "needs root to be somebody else";
    }
    const uid_t nobody = 65534;
    start({}, [](const Peer &peer) { return peer.credentials && peer.credentials->uid == 65533; });
    EXPECT_EQ(curl({"http://x/status"}, nobody).status, 403);
    EXPECT_EQ(curl({"-d", std::string(3000, 'x'), "http://x/services/web/drain"}, nobody).status, 403);
    EXPECT_EQ(control.orders, Orders{});
    EXPECT_EQ(curl({"http://x/status"}, 65533).status, 200);
    EXPECT_EQ(curl({"http://x/status"}).status, 200); // root
    server->set_permit([](const Peer &peer) { return peer.credentials && peer.credentials->uid == 65534; });
    EXPECT_EQ(curl({"http://x/status"}, nobody).status, 200);
    EXPECT_EQ(curl({"http://x/status"}, 65533).status, 403);
}

TEST_F(AdminServerTest, DrainsResumesAndCloses)
{
    start();
    Answer answer = post("/services/web/drain");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "{\"done\":\"drain\",\"service\":\"web\"}\n");
    EXPECT_EQ(control.status.services[0].state, "draining");
    EXPECT_EQ(post("/services/web/drain").status, 409);
    EXPECT_EQ(post("/services/web/resume").body, "{\"done\":\"resume\",\"service\":\"web\"}\n");
    EXPECT_EQ(control.status.services[0].state, "open");
    answer = post("/services/none/drain");
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.body, "{\"error\":\"no service \\\"none\\\"\"}\n");

    EXPECT_EQ(post("/connections/17/close").body, "{\"done\":\"close\",\"connection\":17}\n");
    EXPECT_TRUE(control.status.connections.empty());
    EXPECT_EQ(post("/connections/17/close").status, 404);
    EXPECT_EQ(control.orders,
              (Orders{"draining web", "draining web", "open web", "draining none", "close 17", "close 17"}));
}

TEST_F(AdminServerTest, TakesNamesWithEscapes)
{
    control.status.services[1].name = "a/b c%";
    start();
    EXPECT_EQ(post("/services/a%2Fb%20c%25/drain").status, 200);
    EXPECT_EQ(post("/services/a/b%20c%25/drain").status, 404);
    EXPECT_EQ(control.orders, Orders{"draining a/b c%"});
}

TEST_F(AdminServerTest, ListsWhatThereIs)
{
    start();
    const Answer answer = get("/");
    EXPECT_EQ(answer.status, 200);
    for (const char *part :
         {"/metrics", "/status", "/services/NAME/drain", "/services/NAME/resume", "/connections/ID/close"})
        EXPECT_NE(answer.body.find(part), std::string::npos) << part;
}

TEST_F(AdminServerTest, SaysWhatIsNotThere)
{
    start();
    for (const char *what : {"/no", "/metrics/", "/status/x", "/services", "/services//drain", "/services/web",
                             "/services/web/stop", "/connections/x/close", "/connections/-1/close",
                             "/connections/18446744073709551616/close", "/services/%00/drain"}) {
        const Answer answer = post(what);
        EXPECT_EQ(answer.status, 404) << what;
        EXPECT_EQ(answer.body, "{\"error\":\"no such path; GET / lists what there is\"}\n") << what;
    }
    EXPECT_EQ(post("/services/%zz/drain").status, 400);
    EXPECT_EQ(control.orders, Orders{});
}

TEST_F(AdminServerTest, SaysWhichMethodItTakes)
{
    start();
    Answer answer = post("/metrics");
    EXPECT_EQ(answer.status, 405);
    EXPECT_TRUE(has_line(answer.headers, "Allow: GET, HEAD")) << answer.headers;
    EXPECT_EQ(answer.body, "{\"error\":\"allowed here: GET, HEAD\"}\n");
    for (const char *method : {"GET", "DELETE", "PUT", "OPTIONS"}) {
        answer = curl({"-X", method, "http://x/services/web/drain"});
        EXPECT_EQ(answer.status, 405) << method;
        EXPECT_TRUE(has_line(answer.headers, "Allow: POST")) << answer.headers;
    }
    EXPECT_EQ(control.orders, Orders{});
}

TEST_F(AdminServerTest, HeadHasTheHeadersAlone)
{
    start();
    const Answer answer = curl({"-I", "http://x/metrics"});
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(has_line(answer.headers, "Content-Length: " + std::to_string(to_metrics(control.status).size())))
        << answer.headers;
    EXPECT_EQ(answer.body, "");
}

// A page in a browser could reach a tcp port of its machine.
TEST_F(AdminServerTest, RefusesWebPages)
{
    start();
    const Answer answer = curl({"-X", "POST", "-H", "Origin: http://example.org", "http://x/services/web/drain"});
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.body, "{\"error\":\"requests of web pages are refused\"}\n");
    EXPECT_EQ(control.orders, Orders{});
}

TEST_F(AdminServerTest, AnswersInOnePieceWhateverRangeIsAskedFor)
{
    start();
    const Answer answer = curl({"-r", "0-3,2-9", "http://x/metrics"});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, to_metrics(control.status));
}

TEST_F(AdminServerTest, ALargeAnswerComesWhole)
{
    const ConnectionStatus one = control.status.connections[0];
    for (uint64_t id = 1000; id < 6000; ++id) {
        control.status.connections.push_back(one);
        control.status.connections.back().id = id;
    }
    start();
    const Answer answer = get("/status");
    EXPECT_GT(answer.body.size(), 1'000'000u);
    EXPECT_EQ(answer.body, to_json(control.status, true));
}

} // namespace
} // namespace sluice::proxyd
