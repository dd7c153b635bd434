// SPDX-License-Identifier: LGPL-2.1-or-later
// Good configurations, damaged at random: each is read to its end, and what is wrong with
// it has a place in it. The seed is fixed, so a failure comes again.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "remote/proxyd/config/config_file.hpp"

namespace sluice::proxyd {
namespace {

constexpr int rounds = 6000;

constexpr const char *seed_text = R"([daemon]
workers = 2
drain-timeout = "1min 30s"   # a comment
log-level = 'info'

[admin]
listen = { address = "/run/sluiced/admin.sock", mode = "0660", group = 0 }
allow-uid = ["root", 1000]

[[service]]
name = "db"
listen = ["systemd:db", "unix:@db", { address = "/run/db", mode = 0o600, user = "root" }]
connect = [
    "/run/postgresql/.s.PGSQL.5432",
    "tcp:[fe80::1%eth0]:5432",
]
balance = "round-robin"
accept-proxy-protocol-from = ["10.0.0.0/8", "uid:0"]
limits = { connections = 500, when-full = "refuse", memory = "64M", buffer-size = '8K' }
timeouts.idle = 1.5
timeouts.fin = "30s"

[service.keepalive]
on = true
idle = 60

[service.access]
allow-address = ["10.0.0.0/8", "vsock:any"]

[[service]]
name = "web"
listen = "tcp:[::]:80"
connect = "vsock:2:80"
)";

class Damage {
public:
    explicit Damage(unsigned seed) : random_(seed) {}

    std::string apply(std::string text)
    {
        for (size_t times = 1 + below(6); times > 0; --times)
            once(text);
        return text;
    }

private:
    size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
    size_t place(const std::string &text) { return below(text.size() + 1); }

    void once(std::string &text)
    {
        static const std::string tokens[] = {"[",
                                             "]",
                                             "[[",
                                             "]]",
                                             "{",
                                             "}",
                                             "=",
                                             ".",
                                             "\"\"\"",
                                             "'''",
                                             "\"",
                                             "'",
                                             "#",
                                             "\n",
                                             "\\",
                                             ",",
                                             "0x",
                                             "\\u0000",
                                             "1e999",
                                             "-",
                                             "[[service]]\n",
                                             "name = 'db'\n",
                                             "nan",
                                             "\xff",
                                             "\xe2\x82",
                                             "9223372036854775807",
                                             std::string(1, '\0'),
                                             "systemd:",
                                             "tcp:",
                                             "unix:",
                                             "true",
                                             "1979-05-27T07:32:00Z"};
        size_t at = place(text), count = std::min(below(40), text.size() - at);
        switch (below(7)) {
        case 0:
            text.erase(at, count);
            break;
        case 1:
            text.insert(at, tokens[below(std::size(tokens))]);
            break;
        case 2:
            text.insert(place(text), text.substr(at, count));
            break;
        case 3:
            if (at < text.size())
                text[at] = static_cast<char>(random_());
            break;
        case 4:
            text.resize(at);
            break;
        case 5:
            text.insert(at, std::string(1 + below(400), "[{\"'.=\n"[below(7)]));
            break;
        default: { // two lines change places
            size_t from = text.rfind('\n', at), to = text.find('\n', at);
            if (from == std::string::npos || to == std::string::npos || to <= from)
                break;
            std::string line = text.substr(from, to - from);
            text.erase(from, to - from);
            text.insert(place(text), line);
        }
        }
    }

    std::mt19937 random_;
};

TEST(ConfigFuzz, TheSeedIsGood)
{
    auto config = parse_config(seed_text, "seed");
    ASSERT_TRUE(config) << to_string(config.error()[0]);
    EXPECT_EQ(config->services.size(), 2u);
}

TEST(ConfigFuzz, WhatIsWrongHasAPlace)
{
    Damage damage(7);
    int bad = 0;
    for (int round = 0; round < rounds; ++round) {
        std::string text = damage.apply(seed_text);
        auto config = parse_config(text, "damaged");
        if (config) {
            EXPECT_FALSE(config->services.empty());
            continue;
        }
        ++bad;
        ASSERT_FALSE(config.error().empty()) << text;
        auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n')) + 1;
        for (const Problem &problem : config.error()) {
            ASSERT_EQ(problem.place.file, "damaged") << problem.message << "\n" << text;
            ASSERT_GE(problem.place.line, 1u) << problem.message << "\n" << text;
            ASSERT_LE(problem.place.line, lines + 1) << problem.message << "\n" << text;
            ASSERT_GE(problem.place.column, 1u) << problem.message << "\n" << text;
            ASSERT_FALSE(problem.message.empty()) << text;
            ASSERT_EQ(problem.message.find_first_of(std::string("\n\r\x1b\0", 4)), std::string::npos)
                << problem.message;
        }
    }
    // some changes do no harm, most do
    EXPECT_GT(bad, rounds / 2);
    EXPECT_LT(bad, rounds);
}

TEST(ConfigFuzz, NestingIsBounded)
{
    for (const char *bracket : {"[", "{a=", "[{a="}) {
        std::string text = "x = ";
        for (int i = 0; i < 50000; ++i)
            text += bracket;
        EXPECT_FALSE(parse_config(text, "deep")) << bracket;
    }
    std::string dotted = "a";
    for (int i = 0; i < 5000; ++i)
        dotted += ".a";
    EXPECT_FALSE(parse_config(dotted + " = 1\n", "deep"));
}

} // namespace
} // namespace sluice::proxyd
