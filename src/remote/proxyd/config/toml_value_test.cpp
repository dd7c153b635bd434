// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/toml_value.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "remote/proxyd/config/toml_repair.hpp"

namespace sluice::proxyd {
namespace {

std::vector<unsigned> lines_of(const TomlText &toml)
{
    std::vector<unsigned> lines;
    for (const Problem &problem : toml.problems)
        lines.push_back(problem.place.line);
    return lines;
}

const TomlValue *find(const TomlValue &table, const std::string &key)
{
    for (const TomlEntry &entry : *table.table()) {
        if (entry.key == key)
            return &entry.value;
    }
    return nullptr;
}

TEST(Toml, KeepsPlacesAndOrder)
{
    TomlText toml = parse_toml("z = 1\n\n[b]\n  x = [ \"one\",\n    2.5 ]\n[a]\nm = 0o660\nd = 2024-01-01\n", "f.toml");
    ASSERT_TRUE(toml.problems.empty()) << toml.problems[0].message;
    const auto &root = *toml.root.table();
    ASSERT_EQ(root.size(), 3u);
    EXPECT_EQ(root[0].key, "z");
    EXPECT_EQ(*root[0].value.integer(), 1);
    EXPECT_EQ(root[1].key, "b");
    EXPECT_EQ(root[1].place.file, "f.toml");
    EXPECT_EQ(root[1].place.line, 3u);
    EXPECT_EQ(root[2].key, "a");
    const TomlValue &x = *find(root[1].value, "x");
    ASSERT_EQ(x.array()->size(), 2u);
    EXPECT_EQ((*x.array())[0].place.line, 4u);
    EXPECT_EQ((*x.array())[0].place.column, 9u);
    EXPECT_EQ((*x.array())[1].place.line, 5u);
    EXPECT_TRUE(find(root[2].value, "m")->octal);
    EXPECT_EQ(*find(root[2].value, "m")->integer(), 0660);
    EXPECT_EQ(describe(*find(root[2].value, "d")), "a date or time");
}

TEST(Toml, ADottedKeyHasAPlaceThroughout)
{
    TomlText toml = parse_toml("\na.b.c = 1\n", "f.toml");
    const TomlEntry &a = toml.root.table()->front();
    EXPECT_EQ(a.place.line, 2u);
    const TomlEntry &b = a.value.table()->front();
    EXPECT_EQ(b.place.line, 2u);
    EXPECT_EQ(b.value.place.line, 2u);
}

TEST(Toml, DescribesWhatWasFound)
{
    TomlText toml =
        parse_toml("v = [ \"a\\nb\", \"" + std::string(100, 'x') + "\", 5, 1.5, true, [], [1], {} ]\n", "f");
    ASSERT_TRUE(toml.problems.empty());
    const auto &v = *find(toml.root, "v")->array();
    EXPECT_EQ(describe(v[0]), "\"a\\x0ab\"");
    EXPECT_EQ(describe(v[1]), "\"" + std::string(60, 'x') + "...\"");
    EXPECT_EQ(describe(v[2]), "5");
    EXPECT_EQ(describe(v[3]), "1.5");
    EXPECT_EQ(describe(v[4]), "true");
    EXPECT_EQ(describe(v[5]), "an empty array");
    EXPECT_EQ(describe(v[6]), "an array");
    EXPECT_EQ(describe(v[7]), "a table");
}

TEST(Toml, FindsEachFaultOfTheSyntax)
{
    TomlText toml = parse_toml("a = \n"               // 1
                               "b = 2\n"              // 2
                               "c = [ 1, 2\n"         // 3, noticed at 4
                               "d = 4\n"              // 4
                               "e == 5\n"             // 5
                               "f = \"open\n"         // 6
                               "[t]\n"                // 7
                               "g = 1\n"              // 8
                               "g = 2\n"              // 9
                               "garbage\n"            // 10
                               "h = [ 1,\n   ; 2 ]\n" // 11, 12
                               "i = 9\n",
                               "f.toml");
    EXPECT_EQ(lines_of(toml), (std::vector<unsigned>{1, 4, 5, 6, 9, 10, 12}));
    for (const Problem &problem : toml.problems)
        EXPECT_TRUE(problem.message.starts_with("this is not TOML: ")) << problem.message;
    // the good ones are there nevertheless
    ASSERT_NE(find(toml.root, "b"), nullptr);
    ASSERT_NE(find(toml.root, "d"), nullptr);
    const TomlValue *t = find(toml.root, "t");
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(*find(*t, "g")->integer(), 1);
    ASSERT_NE(find(*t, "i"), nullptr);
}

TEST(Toml, ABrokenHeaderTakesItsSectionWithIt)
{
    TomlText toml = parse_toml("[[service]]\nname = \"a\"\n[[service]\nname = \"b\"\n[service.limits]\nx = 1\n"
                               "[[service]]\nname = \"c\"\n",
                               "f.toml");
    EXPECT_EQ(lines_of(toml), std::vector<unsigned>{3});
    const auto &services = *find(toml.root, "service")->array();
    ASSERT_EQ(services.size(), 2u);
    EXPECT_EQ(*find(services[0], "name")->text(), "a");
    EXPECT_EQ(*find(services[1], "name")->text(), "c");
}

TEST(Toml, EndsWithATextThatIsAllFaults)
{
    std::string text;
    for (int i = 0; i < 1000; ++i)
        text += "= = =\n";
    EXPECT_EQ(parse_toml(text, "f").problems.size(), 20u);
    EXPECT_EQ(lines_of(parse_toml(std::string("a = \"\0\"", 7), "f")), std::vector<unsigned>{1});
    EXPECT_EQ(lines_of(parse_toml("a = '\xff'\nb = 1", "f")), std::vector<unsigned>{1});
    EXPECT_EQ(lines_of(parse_toml("a = '''\nb = 1\n", "f")).size(), 1u);
    EXPECT_TRUE(parse_toml("", "f").problems.empty());
    EXPECT_TRUE(parse_toml("\xef\xbb\xbf# only a comment", "f").problems.empty());
}

TEST(TomlRepair, KeepsTheNumbersOfLines)
{
    TomlRepair repair("a = 1\nb = [\n  2,\n  x ]\nc = 3\n");
    EXPECT_TRUE(repair.leave_out(4, 3));
    EXPECT_EQ(std::count(repair.text().begin(), repair.text().end(), '\n'), 5);
    EXPECT_EQ(repair.text().substr(0, 6), "a = 1\n");
    EXPECT_NE(repair.text().find("\nc = 3\n"), std::string_view::npos);
    EXPECT_EQ(repair.text().find('2'), std::string_view::npos);
    EXPECT_FALSE(repair.leave_out(4, 3));
    EXPECT_FALSE(repair.leave_out(999, 1));
}

} // namespace
} // namespace sluice::proxyd
