// SPDX-License-Identifier: LGPL-2.1-or-later
// Damaged PROXY headers, in pieces: whatever comes, the reader takes no byte twice or too
// many, stays within its limit, and says the same however the bytes are cut.

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "util/net/proxy_bytes.hpp"
#include "util/net/proxy_protocol.hpp"
#include "util/net/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;

// What came of it, so that two can be compared.
struct Outcome {
    enum { incomplete, complete, malformed } end = incomplete;
    size_t taken = 0;
    std::string said;
    bool operator==(const Outcome &) const = default;
};

std::string summary(const ProxyHeader &header)
{
    std::string text = std::to_string(header.version) + " " + std::to_string(static_cast<int>(header.kind)) + " " +
                       to_string(header.source) + " " + to_string(header.destination);
    for (const ProxyTlv &tlv : header.tlvs)
        text += " " + std::to_string(tlv.type) + "=" + tlv.value;
    if (header.credentials)
        text += " uid " + std::to_string(header.credentials->uid);
    return text;
}

// Peeks as a socket would give it: at each of `arrivals` bytes more are there.
template <class NextArrival>
Outcome read_in_pieces(const std::string &input, NextArrival &&next_arrival)
{
    ProxyHeaderReader reader;
    Outcome outcome;
    size_t arrived = 0;
    while (arrived < input.size()) {
        arrived = std::min(input.size(), arrived + next_arrival());
        std::string_view peeked(input.data() + outcome.taken, arrived - outcome.taken);
        auto taken = reader.feed(peeked);
        if (!taken) {
            EXPECT_FALSE(reader.done());
            EXPECT_EQ(taken.error().code, EPROTO);
            EXPECT_FALSE(taken.error().message.empty());
            return {Outcome::malformed, 0, ""};
        }
        EXPECT_LE(*taken, peeked.size());
        outcome.taken += *taken;
        EXPECT_LE(outcome.taken, proxy_v2_bytes_max);
        if (reader.done())
            return {Outcome::complete, outcome.taken, summary(reader.header())};
        EXPECT_EQ(*taken, peeked.size()) << "what is left would be peeked at again and again";
    }
    return outcome;
}

Outcome read_at_once(const std::string &input)
{
    return read_in_pieces(input, [&] { return input.size(); });
}

std::vector<std::string> seeds()
{
    std::string checked = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x13\x01\x02\x03\x04\x05\x06\x07\x08\0\1\0\2\x03\0\4"s;
    proxy_bytes::put32(checked, proxy_bytes::crc32c(checked + "\0\0\0\0"s));
    return {
        "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
        "PROXY TCP6 2001:db8::1 fe80::2 80 65535\r\n",
        "PROXY UNKNOWN\r\n",
        "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n",
        encode_proxy_v2(inet_address("192.0.2.1", 1), inet_address("192.0.2.2", 2)),
        encode_proxy_v2(inet_address("2001:db8::1", 1), inet_address("2001:db8::2", 2), ucred{1, 2, 3}),
        encode_proxy_v2(unix_path("/run/a"), unnamed_unix(), ucred{1, 2, 3}),
        encode_proxy_v2({}, {}),
        "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"s,
        "\r\n\r\n\0\r\nQUIT\n\x20\x11\0\x05xxxxx"s,
        checked,
        encode_proxy_v2(inet_address("192.0.2.1", 1), inet_address("192.0.2.2", 2)).replace(15, 1, "\x12") +
            "\x02\0\3abc"s,
    };
}

// One to four changes: another byte, a bit, one less, one more, a piece doubled, the end cut off.
std::string damaged(std::string text, std::mt19937 &random)
{
    auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    for (size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
        size_t at = below(text.size());
        switch (below(7)) {
        case 0:
            text[at] = static_cast<char>(below(256));
            break;
        case 1:
            text[at] = static_cast<char>(text[at] ^ 1 << below(8));
            break;
        case 2:
            text.erase(at, 1);
            break;
        case 3:
            text.insert(at, 1, " \r\n0:.\xff"[below(7)]);
            break;
        case 4:
            text.insert(at, text.substr(below(text.size()), 1 + below(40)));
            break;
        case 5:
            text.resize(at);
            break;
        default: // a length of the second version is what everything hangs on
            if (text.size() > 16)
                text[14 + below(2)] = static_cast<char>(below(256));
            break;
        }
    }
    return text;
}

TEST(ProxyFuzz, TheSeedsAreGood)
{
    for (const std::string &seed : seeds())
        EXPECT_EQ(read_at_once(seed).end, Outcome::complete) << seed.size();
}

TEST(ProxyFuzz, EverySplitOfAGoodHeader)
{
    for (const std::string &seed : seeds()) {
        std::string input = seed + "behind";
        Outcome whole = read_at_once(input);
        for (size_t first = 1; first < input.size(); ++first) {
            for (size_t second = 1; second <= input.size() - first; ++second) {
                size_t arrivals[] = {first, second, input.size()};
                size_t *next = arrivals;
                ASSERT_EQ(read_in_pieces(input, [&] { return *next++; }), whole) << first << " " << second;
            }
        }
        ASSERT_EQ(read_in_pieces(input, [] { return size_t{1}; }), whole);
    }
}

TEST(ProxyFuzz, DamagedHeaders)
{
    std::mt19937 random(20200305);
    std::vector<std::string> good = seeds();
    size_t ends[3] = {};
    for (int i = 0; i < 100'000; ++i) {
        std::string input = damaged(good[static_cast<size_t>(i) % good.size()], random);
        Outcome whole = read_at_once(input);
        ++ends[whole.end];
        if (input.size() <= 24) {
            for (size_t split = 1; split < input.size(); ++split) {
                size_t arrival = split;
                ASSERT_EQ(read_in_pieces(input, [&] { return std::exchange(arrival, input.size()); }), whole) << i;
            }
        }
        ASSERT_EQ(read_in_pieces(input, [&] { return 1 + random() % 9; }), whole) << i;
    }
    // the damage is neither always nor never fatal
    for (size_t count : ends)
        EXPECT_GT(count, 5'000u);
}

} // namespace
} // namespace sluice
