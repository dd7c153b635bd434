// SPDX-License-Identifier: LGPL-2.1-or-later
// sluiced.toml(5) explains every key that there is and no other, and the defaults that it
// names are those of the program. A key's entry begins with *key* = under the heading
// of its table, and ends with its default.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "remote/proxyd/config/config_file.hpp"
#include "remote/proxyd/config/keys.hpp"
#include "remote/proxyd/reasons.hpp"

namespace sluice::proxyd {
namespace {

std::string without_escapes(const std::string &text)
{
    return std::regex_replace(text, std::regex(R"(\\(.))"), "$1");
}

// "service.limits.connections" -> the text of its entry.
std::map<std::string, std::string> entries_of(std::istream &manual)
{
    const std::regex heading(R"(#+ \[+([a-z.]+)\]+)"), other_heading("# .*"), definition(R"(\*([a-z-]+)\* = .*)");
    std::map<std::string, std::string> entries;
    std::string line, table, key;
    std::smatch match;
    while (std::getline(manual, line)) {
        if (std::regex_match(line, match, heading)) {
            table = match[1];
            key.clear();
        } else if (std::regex_match(line, other_heading)) {
            table.clear();
            key.clear();
        } else if (!table.empty() && std::regex_match(line, match, definition)) {
            key = table + "." + match[1].str();
            EXPECT_FALSE(entries.contains(key)) << key << " has two entries";
            entries[key];
        } else if (!key.empty()) {
            entries[key] += line + " ";
        }
    }
    return entries;
}

std::map<std::string, std::string> read_manual()
{
    std::ifstream manual(SOURCE_ROOT "/docs/man/sluiced.toml.5.scd");
    EXPECT_TRUE(manual);
    return entries_of(manual);
}

TEST(Manual, ExplainsEveryKeyAndNoOther)
{
    auto entries = read_manual();
    for (const std::string &key : known_keys())
        EXPECT_TRUE(entries.contains(key)) << key << " is not explained";
    auto known = known_keys();
    for (const auto &[key, text] : entries)
        EXPECT_NE(std::find(known.begin(), known.end(), key), known.end()) << key << " is no key";
}

TEST(Manual, NamesTheDefaults)
{
    const std::regex with_default(R"(.*Default: (?:\*([^*]+)\*|none)[.,;].*)"), required(".*Required\\..*");
    auto parse = [](const std::string &key, const std::string &value) {
        std::string text = "[[service]]\nname = 'a'\nlisten = 'systemd:'\nconnect = '/run/b'\n";
        size_t dot = key.find('.');
        std::string table = key.substr(0, dot), name = key.substr(dot + 1);
        if (!value.empty())
            text += (table == "service" ? "" : "[" + table + "]\n") + name + " = " + value + "\n";
        return parse_config(text, "default");
    };
    auto plain = parse("service.x", "");
    ASSERT_TRUE(plain);
    int tried = 0;
    for (const auto &[key, text] : read_manual()) {
        std::smatch match;
        bool has_default = std::regex_match(text, match, with_default);
        EXPECT_NE(has_default, std::regex_match(text, required)) << key << ": " << text;
        if (!has_default || !match[1].matched)
            continue;
        auto config = parse(key, without_escapes(match[1]));
        ASSERT_TRUE(config) << key << ": " << to_string(config.error()[0]);
        EXPECT_EQ(*config, *plain) << key << " = " << match[1] << " is not the default";
        ++tried;
    }
    EXPECT_GT(tried, 25);
}

std::string text_of(const std::string &path)
{
    std::ifstream file(std::string(SOURCE_ROOT "/") + path);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Manual, ListsTheKindsOfRecordsAndTheReasons)
{
    auto numbers_of = [](const std::string &text) {
        const std::regex number("[0-9a-f]{32}");
        std::set<std::string> numbers;
        for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
            numbers.insert(at->str());
        return numbers;
    };
    std::string manual = text_of("docs/man/sluiced.8.scd");
    auto kinds = numbers_of(text_of("src/util/net/message_id.hpp"));
    EXPECT_GT(kinds.size(), 10u);
    EXPECT_EQ(numbers_of(manual), kinds);
    for (const char *reason : rejection_words)
        EXPECT_NE(manual.find("*" + std::string(reason) + "*"), std::string::npos) << reason;
    for (const char *reason : closing_words)
        EXPECT_NE(manual.find("*" + std::string(reason) + "*"), std::string::npos) << reason;
}

TEST(Manual, TheReaderOfItReads)
{
    std::istringstream manual("# NAME\n\n*x* = 1\n\n# [daemon]\n\n*workers* = _N_\n\tText. Default: *1*.\n\n"
                              "## [service.limits]\n\n*buffer* = _SIZE_\n\tMore\n\tof it.\n\n# FILES\n\n*y* = 2\n");
    auto entries = entries_of(manual);
    EXPECT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries["daemon.workers"], "\tText. Default: *1*.  ");
    EXPECT_EQ(entries["service.limits.buffer"], "\tMore \tof it.  ");
}

} // namespace
} // namespace sluice::proxyd
