// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/options.hpp"

#include <gtest/gtest.h>

namespace sluice::disk {
namespace {

using namespace std::chrono_literals;

TEST(DiskOptions, ASpecIsANameAndKeys)
{
    auto spec = parse_spec("cache,file=/a,,b,size=10G,verify");
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->name, "cache");
    EXPECT_EQ(spec->options, (Options{{"file", "/a,b"}, {"size", "10G"}, {"verify", "yes"}}));
    EXPECT_EQ(to_string(*spec), "cache,file=/a,,b,size=10G,verify=yes");
    EXPECT_EQ(parse_spec(to_string(*spec)).value(), *spec);
}

TEST(DiskOptions, WhatIsNoSpec)
{
    for (const char *text : {"", ",a=b", "cow,=x"}) {
        auto spec = parse_spec(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_EQ(spec.error().code, EINVAL);
        EXPECT_NE(spec.error().message.find(text), std::string::npos);
    }
}

TEST(DiskOptions, ValuesOfEachKind)
{
    Options options{{"n", "7"},    {"s", "2T"},  {"f", "off"}, {"part", "25%"},
                    {"t", "1.5s"}, {"c", "two"}, {"x", "one"}, {"x", "again"}};
    OptionReader reader(options, "test");
    EXPECT_EQ(reader.number("n", 1, 0, 9), 7u);
    EXPECT_EQ(reader.size("s", 0), uint64_t{2} << 40);
    EXPECT_FALSE(reader.flag("f", true));
    EXPECT_DOUBLE_EQ(reader.fraction("part", 0), 0.25);
    EXPECT_EQ(reader.duration("t", 0us), 1500ms);
    EXPECT_EQ(reader.choice("c", 0, {"one", "two"}), 1u);
    EXPECT_EQ(reader.texts("x"), (std::vector<std::string>{"one", "again"}));
    EXPECT_EQ(reader.text("absent", "fallback"), "fallback");
    EXPECT_TRUE(reader.finish());
}

TEST(DiskOptions, AllThatIsWrongIsToldAtOnce)
{
    Options options{{"n", "70"},   {"s", "1Q"},    {"f", "maybe"}, {"part", "2"},
                    {"t", "soon"}, {"c", "three"}, {"siez", "1"}};
    OptionReader reader(options, "test");
    EXPECT_EQ(reader.number("n", 1, 0, 9), 1u);
    EXPECT_EQ(reader.size("s", 5), 5u);
    EXPECT_TRUE(reader.flag("f", true));
    EXPECT_DOUBLE_EQ(reader.fraction("part", 0.5), 0.5);
    EXPECT_EQ(reader.duration("t", 3us), 3us);
    EXPECT_EQ(reader.choice("c", 0, {"one", "two"}), 0u);
    EXPECT_EQ(reader.size("size", 0), 0u);
    auto done = reader.finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, EINVAL);
    for (const char *part :
         {"test: n: found \"70\", expected a number from 0 to 9", "test: s: ", "\"maybe\"", "test: part: ", "\"soon\"",
          "one of: one, two", "test: siez: no such key; did you mean \"size\"?"})
        EXPECT_NE(done.error().message.find(part), std::string::npos) << part << " in " << done.error().message;
}

TEST(DiskOptions, SizesHaveBounds)
{
    Options options{{"small", "1K"}, {"large", "1G"}};
    OptionReader reader(options, "test");
    EXPECT_EQ(reader.size("small", 9, 4096, 8192), 9u);
    EXPECT_EQ(reader.size("large", 9, 4096, 8192), 9u);
    auto done = reader.finish();
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("4096 bytes or more"), std::string::npos);
    EXPECT_NE(done.error().message.find("8192 bytes at most"), std::string::npos);
}

} // namespace
} // namespace sluice::disk
