// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/base/units.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Units, Durations)
{
    EXPECT_EQ(parse_duration("30"), 30s);
    EXPECT_EQ(parse_duration("1.5s"), 1500ms);
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("2min"), 120s);
    EXPECT_EQ(parse_duration("1h"), 3600s);
    EXPECT_EQ(parse_duration("0"), 0s);
    for (const char *bad : {"", "s", "-1", "1x", "1 s", "1e3", "nan", "inf", "99999h", "1.2.3", "+1"})
        EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, Sizes)
{
    EXPECT_EQ(parse_size("4096"), 4096u);
    EXPECT_EQ(parse_size("64K"), 65536u);
    EXPECT_EQ(parse_size("1M"), 1048576u);
    EXPECT_EQ(parse_size("2G"), 2147483648u);
    for (const char *bad : {"", "K", "-1", "1k", "1MB", "1.5M", "99999999999G", "0x10"})
        EXPECT_FALSE(parse_size(bad)) << bad;
}

} // namespace
} // namespace sluice
