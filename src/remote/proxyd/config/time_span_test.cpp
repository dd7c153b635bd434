// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/time_span.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace sluice::proxyd {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

TEST(TimeSpan, ReadsWhatSystemdReads)
{
    const std::pair<const char *, microseconds> cases[] = {
        {"5", 5s},
        {"0", 0s},
        {"1.5", 1500ms},
        {".5s", 500ms},
        {"5min", 5min},
        {"5 min", 5min},
        {"5m", 5min},
        {"5min 20s", 320s},
        {"1h 30min", 90min},
        {"1h30min", 90min},
        {"  2 hours\t", 2h},
        {"1 hr 2hours", 3h},
        {"250ms", 250ms},
        {"7us", 7us},
        {"7\u00b5s", 7us},
        {"7\u03bcs", 7us},
        {"5 6", 11s},
        {"5sec3", 8s},
        {"+5", 5s},
        {"2d", 48h},
        {"1week", 168h},
        {"1M", 2629800s},
        {"1 month", 2629800s},
        {"1y", 31557600s},
        {"0.0000015s", 1us},
        {"0.1month", 262980s},
        {"infinity", infinite_time},
        {" infinity ", infinite_time},
    };
    for (auto [text, expected] : cases) {
        auto span = parse_time_span(text);
        ASSERT_TRUE(span) << text;
        EXPECT_EQ(span->count(), expected.count()) << text;
    }
}

TEST(TimeSpan, RefusesTheRest)
{
    for (const char *text : {"",
                             " ",
                             "-1",
                             "1.",
                             ".",
                             "+",
                             "1,5s",
                             "12.34.56",
                             "5x",
                             "5S",
                             "s",
                             "min 5",
                             "1e3",
                             "0x10",
                             "5s,",
                             "infinitys",
                             "infinity 5s",
                             "5 infinity",
                             "99999999999999999999",
                             "999999y",
                             "9223372036854775807s",
                             "1h -5s",
                             "--5"})
        EXPECT_FALSE(parse_time_span(text)) << text;
}

// What systemd's own parser says, a microsecond for a microsecond.
std::vector<std::string> ask_systemd(const std::vector<std::string> &spans)
{
    std::string command = "LC_ALL=C systemd-analyze timespan --";
    for (const std::string &span : spans)
        command += " '" + span + "'";
    FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r");
    std::vector<std::string> answers;
    char line[512];
    while (pipe && fgets(line, sizeof line, pipe)) {
        std::string text = line;
        size_t name = text.find_first_not_of(' '), at = text.find("s: ");
        // "us:", or the same with the letter mu, in two bytes
        if (name != std::string::npos && (at == name + 1 || at == name + 2) && (text[name] == 'u' || text[name] < 0))
            answers.push_back(text.substr(at + 3, text.find('\n') - at - 3));
    }
    if (pipe)
        pclose(pipe);
    return answers;
}

TEST(TimeSpan, AgreesWithSystemdAnalyze)
{
    if (std::system("systemd-analyze --version >/dev/null 2>&1") != 0) {
        if (getenv("CI"))
            FAIL() << "systemd-analyze is missing";
        GTEST_SKIP() << "systemd-analyze is missing";
    }
    const char *units[] = {"",    " ",     "s",  "sec ", " seconds", "m",   " min", "minutes ", "h", "hr", " hours ",
                           "ms ", "msec ", "us", "usec", "d",        "day", "w",    " weeks",   "M", "y",  " month "};
    std::mt19937 random(20240611);
    auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    std::vector<std::string> spans;
    for (int i = 0; i < 300; ++i) {
        std::string span;
        for (unsigned parts = 1 + below(4); parts > 0; --parts) {
            span += std::to_string(below(1000));
            if (below(3) == 0)
                span += "." + std::to_string(below(100000));
            span += units[below(std::size(units))];
        }
        if (parse_time_span(span))
            spans.push_back(span);
    }
    ASSERT_GT(spans.size(), 150u);
    // it stops at the first that it does not take, so a missing answer is a disagreement
    std::vector<std::string> answers = ask_systemd(spans);
    ASSERT_EQ(answers.size(), spans.size()) << spans[std::min(answers.size(), spans.size() - 1)];
    for (size_t i = 0; i < spans.size(); ++i)
        EXPECT_EQ(std::to_string(parse_time_span(spans[i])->count()), answers[i]) << spans[i];
}

} // namespace
} // namespace sluice::proxyd
