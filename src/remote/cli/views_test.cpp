// SPDX-License-Identifier: LGPL-2.1-or-later

// What is printed, from statuses made up here.

#include <gtest/gtest.h>

#include "remote/cli/amounts.hpp"
#include "remote/cli/status_view.hpp"
#include "remote/cli/top_view.hpp"

namespace sluice::cli {
namespace {

std::string text_of(const std::vector<Line> &lines)
{
    std::string text;
    for (const Line &line : lines)
        text += line.text + '\n';
    return text;
}

// The line that begins with this, blanks aside; empty if there is none.
Line find(const std::vector<Line> &lines, std::string_view beginning)
{
    for (const Line &line : lines) {
        const size_t at = line.text.find_first_not_of(' ');
        if (at != std::string::npos && line.text.substr(at).starts_with(beginning))
            return line;
    }
    return {};
}

Status sample()
{
    Status status;
    status.version = "1.2.3";
    status.state = "ready";
    status.pid = 77;
    status.uptime_seconds = 3725;
    status.fds_open = 9;
    status.fds_max = 1024;
    status.services.push_back(
        {.name = "web",
         .state = "open",
         .listen = {"tcp:[::]:80"},
         .upstreams = {{"unix:/run/app.sock", "up", "", 2, 11, 0}, {"tcp:10.0.0.1:80", "down", "timed out", 0, 0, 4}},
         .active = 2,
         .limit = 256,
         .accepted = 1000,
         .rejected = 5,
         .bytes_up = 300,
         .bytes_down = 5 << 20});
    status.services.push_back({.name = "db", .state = "draining", .listen = {}, .upstreams = {}});
    for (uint64_t id = 1; id <= 3; ++id)
        status.connections.push_back({.id = id,
                                      .service = "web",
                                      .peer = "uid 0 pid 9",
                                      .upstream = "unix:/run/app.sock",
                                      .state = "relaying",
                                      .age_seconds = 12,
                                      .idle_seconds = 0.25,
                                      .up = {"finished", "copying", "nothing", 100},
                                      .down = {"flowing", "spliced", "sink", 2048}});
    return status;
}

TEST(Amounts, AreReadable)
{
    EXPECT_EQ(bytes_text(0), "0 B");
    EXPECT_EQ(bytes_text(1023), "1023 B");
    EXPECT_EQ(bytes_text(1024), "1.0 KiB");
    EXPECT_EQ(bytes_text(1024 * 1024 - 1), "1.0 MiB");
    EXPECT_EQ(bytes_text(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
    EXPECT_EQ(bytes_text(18446744073709551615.0), "16384.0 PiB");
    EXPECT_EQ(rate_text(300), "300 B/s");
    EXPECT_EQ(time_text(0.25), "0.2 s");
    EXPECT_EQ(time_text(9.97), "10 s");
    EXPECT_EQ(time_text(59.6), "1 min 0 s");
    EXPECT_EQ(time_text(184), "3 min 4 s");
    EXPECT_EQ(time_text(3725), "1 h 2 min");
    EXPECT_EQ(time_text(9 * 86400 + 3 * 3600), "9 d 3 h");
    EXPECT_EQ(time_text(-1), "0.0 s");
}

TEST(StatusView, AlignsItsTables)
{
    EXPECT_EQ(text_of(status_view(sample(), false)),
              "sluiced 1.2.3, pid 77: ready for 1 h 2 min, 9 of 1024 file descriptors, 0 reloads\n"
              "\n"
              "SERVICE  STATE     CONNECTIONS  ACCEPTED  REFUSED     UP     DOWN  LISTENS ON\n"
              "web      open            2/256      1000        5  300 B  5.0 MiB  tcp:[::]:80\n"
              "db       draining            0         0        0    0 B      0 B\n"
              "\n"
              "SERVICE  UPSTREAM            STATE  CONNECTIONS  CONNECTS  FAILURES  LAST ERROR\n"
              "web      unix:/run/app.sock  up               2        11         0\n"
              "web      tcp:10.0.0.1:80     down             0         0         4  timed out\n");
}

TEST(StatusView, ShowsConnectionsAndTheirLanes)
{
    const auto lines = status_view(sample(), true);
    EXPECT_EQ(find(lines, "2  web").text, " 2  web      12 s  0.2 s  uid 0 pid 9  unix:/run/app.sock  relaying  100 B  "
                                          "2.0 KiB  finished  flowing spliced, awaits sink");
}

TEST(StatusView, MarksWhatIsWrong)
{
    Status status = sample();
    status.reloads_failed = 2;
    status.last_reload_error = "line 3: no such key";
    const auto lines = status_view(status, false);
    EXPECT_EQ(find(lines, "2 more reloads").style, Style::bad);
    EXPECT_NE(find(lines, "2 more reloads").text.find("line 3: no such key"), std::string::npos);
    EXPECT_EQ(find(lines, "web      tcp:10").style, Style::bad);
    EXPECT_EQ(find(lines, "web      unix").style, Style::plain);
    EXPECT_EQ(find(lines, "db").style, Style::warning);
}

TEST(TopView, RatesComeFromTwoStatuses)
{
    const Status before = sample();
    Status now = sample();
    now.uptime_seconds += 2;
    now.services[0].bytes_up += 2000;
    now.services[0].bytes_down += 4 << 20;
    now.services[0].accepted += 5;
    now.services[0].rejected += 1;
    now.connections[1].down.bytes += 1 << 20;
    now.connections[2].up.bytes += 3 << 20;
    const auto lines = top_view(now, &before, "", {120, 30});
    EXPECT_NE(lines[0].text.find("1000 B/s up, 2.0 MiB/s down"), std::string::npos) << lines[0].text;
    EXPECT_EQ(find(lines, "web").text,
              "web      open            2/256    2.5        0.5  1000 B/s  2.0 MiB/s  1 of 2 up");
    EXPECT_EQ(find(lines, "web").style, Style::warning);
    const std::string text = text_of(lines);
    EXPECT_LT(text.find("\n 3  web"), text.find("\n 2  web"));
    EXPECT_LT(text.find("\n 2  web"), text.find("\n 1  web"));
    EXPECT_EQ(find(lines, "3  web").text,
              " 3  web      1.5 MiB/s        0 B/s  12 s  relaying  uid 0 pid 9  unix:/run/app.sock");
}

TEST(TopView, WithoutAnEarlierFigureThereIsNoRate)
{
    const Status now = sample();
    EXPECT_EQ(find(top_view(now, nullptr, "", {120, 30}), "web").text,
              "web      open            2/256      -          -   -     -  1 of 2 up");
    Status other = sample();
    other.uptime_seconds -= 10;
    other.services[0].bytes_up = 0;
    other.pid = 78; // another daemon
    EXPECT_EQ(find(top_view(now, &other, "", {120, 30}), "web").text,
              "web      open            2/256      -          -   -     -  1 of 2 up");
    other.pid = 77;
    other.services.clear(); // a new service
    EXPECT_NE(find(top_view(now, &other, "", {120, 30}), "web").text.find("  -  "), std::string::npos);
}

TEST(TopView, FitsTheTerminal)
{
    Status status = sample();
    for (uint64_t id = 4; id < 100; ++id) {
        status.connections.push_back(status.connections[0]);
        status.connections.back().id = id;
        status.services.push_back(status.services[1]);
    }
    for (size_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 24u, 100u, 300u}) {
        for (size_t columns : {1u, 10u, 80u, 200u}) {
            const auto lines = top_view(status, nullptr, "notice", {columns, rows});
            EXPECT_EQ(lines.size(), rows);
            for (const Line &line : lines)
                EXPECT_LE(display_width(line.text), columns);
        }
    }
    const auto lines = top_view(status, nullptr, "notice", {80, 24});
    EXPECT_EQ(display_width(lines[0].text), 80u);
    EXPECT_EQ(lines[1].text, "notice");
    EXPECT_EQ(lines[23].text, "q: quit");
    // 20 lines to share, a heading and a last one in each half
    EXPECT_EQ(lines[11].text, "... and 90 more");
    EXPECT_EQ(lines[22].text, "... and 91 more");
    const auto all = top_view(status, nullptr, "", {80, 300});
    EXPECT_EQ(text_of(all).find("more"), std::string::npos);
    EXPECT_NE(find(all, "99  web").text, "");
}

TEST(Table, KnowsHowWideTextIs)
{
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("über"), 4u);
    EXPECT_EQ(display_width("日本"), 4u);
    EXPECT_EQ(display_width("e\xcc\x81"), 1u); // a combining accent
    EXPECT_EQ(display_width("a\xff z"), 3u);
    EXPECT_EQ(cut_to("日本", 3), "日");
    EXPECT_EQ(cut_to("über", 2), "üb");
    EXPECT_EQ(cut_to("abc", 9), "abc");
    Table table({{"A"}, {"B", Table::Align::right}});
    table.add({"日", "1"});
    table.add({"xyz", "100"});
    EXPECT_EQ(text_of(table.lines()), "A      B\n日     1\nxyz  100\n");
}

TEST(Paint, LeavesTheTextAloneWithoutColours)
{
    EXPECT_EQ(paint({"x", Style::bad}, false), "x");
    EXPECT_EQ(paint({"x", Style::bad}, true), "\x1b[31mx\x1b[0m");
    EXPECT_EQ(paint({"x", Style::plain}, true), "x");
}

TEST(StatusModel, ReadsWhatItKnowsAndPassesOverTheRest)
{
    auto status = parse_status(R"({"version":"9","new":[1],"services":[{"name":"a\u001b[31m","state":7,"limit":"x",
        "rejected":{"limit":2,"access":3},"upstreams":[{"address":"unix:/x","active":1.0}]},3]})");
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(status->services.size(), 2u);
    EXPECT_EQ(status->services[0].name, "a\\x1b[31m");
    EXPECT_EQ(status->services[0].state, "");
    EXPECT_EQ(status->services[0].limit, 0u);
    EXPECT_EQ(status->services[0].rejected, 5u);
    EXPECT_EQ(status->services[0].upstreams[0].address, "unix:/x");
    EXPECT_TRUE(status->connections.empty());
}

TEST(StatusModel, RefusesWhatIsNone)
{
    for (const char *text : {"", "{", "[]", "{}", "3", "null", R"({"version":"9"})", R"({"services":[]})",
                             R"({"version":"9","services":{}})"}) {
        auto status = parse_status(text);
        ASSERT_FALSE(status) << text;
        EXPECT_EQ(status.error().code, EPROTO) << text;
    }
}

} // namespace
} // namespace sluice::cli
