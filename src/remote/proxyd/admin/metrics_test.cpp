// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/metrics.hpp"

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include <gtest/gtest.h>
#include <support/channels.hpp>

#include "remote/proxyd/admin/sample_status.hpp"

namespace sluice::proxyd {
namespace {

// A reader of the text format that takes nothing it is not sure of.
class Reader {
public:
    using Labels = std::map<std::string, std::string>;

    explicit Reader(std::string_view text)
    {
        if (text.empty() || text.back() != '\n')
            fail("the last line does not end", "");
        while (!text.empty()) {
            std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(line.size() + 1);
            if (line.starts_with("# HELP "))
                read_help(line.substr(7));
            else if (line.starts_with("# TYPE "))
                read_type(line.substr(7));
            else
                read_sample(line);
        }
    }

    double value(const std::string &name, const Labels &labels = {}) const
    {
        auto found = samples_.find({name, labels});
        if (found == samples_.end())
            throw std::runtime_error("no sample of " + name);
        return found->second;
    }
    bool has(const std::string &name, const Labels &labels = {}) const { return samples_.contains({name, labels}); }
    std::string type(const std::string &name) const { return types_.at(name); }
    const auto &types() const { return types_; }
    const auto &samples() const { return samples_; }

private:
    [[noreturn]] static void fail(const std::string &what, std::string_view line)
    {
        throw std::runtime_error(what + ": " + std::string(line));
    }
    static bool is_name(std::string_view text)
    {
        auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
        if (text.empty() || !letter(text.front()))
            return false;
        for (char c : text) {
            if (!letter(c) && !(c >= '0' && c <= '9'))
                return false;
        }
        return true;
    }
    void read_help(std::string_view rest)
    {
        current_ = rest.substr(0, rest.find(' '));
        if (!is_name(current_) || rest.size() < current_.size() + 2)
            fail("bad HELP", rest);
        if (!helped_.insert(current_).second)
            fail("HELP twice", rest);
    }
    void read_type(std::string_view rest)
    {
        const std::string name(rest.substr(0, rest.find(' ')));
        const std::string type(rest.substr(std::min(rest.size(), name.size() + 1)));
        if (name != current_ || !std::set<std::string>{"gauge", "counter", "histogram"}.contains(type))
            fail("bad TYPE", rest);
        if (!types_.emplace(name, type).second)
            fail("TYPE twice", rest);
    }
    void read_sample(std::string_view line)
    {
        const size_t name_end = line.find_first_of("{ ");
        if (name_end == std::string_view::npos)
            fail("no value", line);
        const std::string name(line.substr(0, name_end));
        std::string_view rest = line.substr(name_end);
        const std::string type = types_.contains(current_) ? types_[current_] : "";
        const std::string suffix = name.starts_with(current_) ? name.substr(current_.size()) : "?";
        const bool fits = type == "histogram" ? suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
                                              : !type.empty() && suffix.empty();
        if (!is_name(name) || !fits)
            fail("a sample in the wrong place", line);
        Labels labels;
        if (rest.front() == '{')
            rest = read_labels(rest.substr(1), labels);
        if (rest.empty() || rest.front() != ' ')
            fail("no blank before the value", line);
        if (!samples_.emplace(std::pair{name, labels}, read_number(rest.substr(1))).second)
            fail("the same sample twice", line);
    }
    static std::string_view read_labels(std::string_view rest, Labels &labels)
    {
        for (;;) {
            const std::string name(rest.substr(0, rest.find('=')));
            if (!is_name(name) || rest.substr(name.size(), 2) != "=\"")
                fail("bad label", rest);
            rest.remove_prefix(name.size() + 2);
            std::string content;
            while (!rest.empty() && rest.front() != '"') {
                if (rest.front() == '\\') {
                    rest.remove_prefix(1);
                    if (rest.empty() || std::string_view("\\\"n").find(rest.front()) == std::string_view::npos)
                        fail("bad escape", rest);
                    content += rest.front() == 'n' ? '\n' : rest.front();
                } else {
                    content += rest.front();
                }
                rest.remove_prefix(1);
            }
            if (rest.size() < 2 || !labels.emplace(name, content).second)
                fail("bad label", rest);
            rest.remove_prefix(1);
            const char after = rest.front();
            rest.remove_prefix(1);
            if (after == '}')
                return rest;
            if (after != ',')
                fail("bad end of a label", rest);
        }
    }
    static double read_number(std::string_view text)
    {
        if (text == "+Inf")
            return HUGE_VAL;
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size())
            fail("bad number", text);
        return value;
    }

    std::string current_;
    std::set<std::string> helped_;
    std::map<std::string, std::string> types_;
    std::map<std::pair<std::string, Labels>, double> samples_;
};

TEST(Metrics, SayWhatTheStatusSays)
{
    const Reader read(to_metrics(sample_status()));
    EXPECT_EQ(read.value("sluice_build_info", {{"version", "1.2.3"}}), 1);
    EXPECT_EQ(read.value("process_start_time_seconds"), 1700000000.25);
    EXPECT_EQ(read.value("sluice_uptime_seconds"), 60.5);
    EXPECT_EQ(read.value("sluice_draining"), 0);
    EXPECT_EQ(read.value("sluice_reloads_total", {{"result", "ok"}}), 3);
    EXPECT_EQ(read.value("sluice_reloads_total", {{"result", "failed"}}), 1);
    EXPECT_EQ(read.value("sluice_fds_open"), 42);
    EXPECT_EQ(read.value("sluice_fds_max"), 1024);
    EXPECT_EQ(read.value("sluice_worker_connections", {{"worker", "worker-1"}}), 1);
    EXPECT_EQ(read.value("sluice_loop_lag_seconds", {{"worker", "main"}}), 0.001);
    EXPECT_EQ(read.value("sluice_loop_lag_max_seconds", {{"worker", "main"}}), 0.25);

    EXPECT_EQ(read.value("sluice_service_state", {{"service", "web"}, {"state", "open"}}), 1);
    EXPECT_EQ(read.value("sluice_service_state", {{"service", "web"}, {"state", "full"}}), 0);
    EXPECT_EQ(read.value("sluice_connections_active", {{"service", "web"}}), 2);
    EXPECT_EQ(read.value("sluice_connections_limit", {{"service", "web"}}), 256);
    EXPECT_EQ(read.value("sluice_connections_accepted_total", {{"service", "web"}}), 12);
    EXPECT_EQ(read.value("sluice_connections_rejected_total", {{"service", "web"}, {"reason", "limit"}}), 3);
    EXPECT_EQ(read.value("sluice_connections_rejected_total", {{"service", "web"}, {"reason", "access"}}), 0);
    EXPECT_EQ(read.value("sluice_connections_closed_total", {{"service", "web"}, {"reason", "complete"}}), 9);
    EXPECT_EQ(read.value("sluice_bytes_total", {{"service", "web"}, {"direction", "up"}}), 1000);
    EXPECT_EQ(read.value("sluice_bytes_total", {{"service", "web"}, {"direction", "down"}}), 18446744073709551615.0);
    EXPECT_EQ(read.value("sluice_relay_bytes_total", {{"service", "web"}, {"mode", "copying"}}), 24);
    EXPECT_EQ(read.value("sluice_relay_bytes_total", {{"service", "web"}, {"mode", "spliced"}}), 976);
    EXPECT_EQ(read.value("sluice_buffer_bytes", {{"service", "web"}}), 65536);
    const Reader::Labels app{{"service", "web"}, {"upstream", "unix:/run/app.sock"}};
    const Reader::Labels far{{"service", "web"}, {"upstream", "tcp:10.0.0.1:80"}};
    EXPECT_EQ(read.value("sluice_upstream_up", app), 1);
    EXPECT_EQ(read.value("sluice_upstream_up", far), 0);
    EXPECT_EQ(read.value("sluice_upstream_connections_active", app), 2);
    EXPECT_EQ(read.value("sluice_upstream_connects_total", app), 11);
    EXPECT_EQ(read.value("sluice_upstream_failures_total", far), 4);
}

TEST(Metrics, BucketsAreCumulative)
{
    const Reader read(to_metrics(sample_status()));
    auto bucket = [&](const char *le) {
        return read.value("sluice_connect_seconds_bucket", {{"service", "web"}, {"le", le}});
    };
    EXPECT_EQ(read.type("sluice_connect_seconds"), "histogram");
    EXPECT_EQ(bucket("0.0001"), 5);
    EXPECT_EQ(bucket("0.0005"), 5);
    EXPECT_EQ(bucket("0.001"), 8);
    EXPECT_EQ(bucket("5"), 8);
    EXPECT_EQ(bucket("+Inf"), 10);
    EXPECT_EQ(read.value("sluice_connect_seconds_count", {{"service", "web"}}), 10);
    EXPECT_EQ(read.value("sluice_connect_seconds_sum", {{"service", "web"}}), 20.0035);
}

TEST(Metrics, AwkwardLabelsComeBackAsTheyWere)
{
    const Reader read(to_metrics(sample_status()));
    EXPECT_EQ(read.value("sluice_connections_active", {{"service", "odd \"name\\\nof\xef\xbf\xbd two lines"}}), 0);
}

TEST(Metrics, AnAddressNamedTwiceIsOneUpstream)
{
    const Reader read(to_metrics(sample_status()));
    for (const auto &[key, value] : read.samples()) {
        const auto upstream = key.second.find("upstream");
        if (upstream == key.second.end() || upstream->second != "unix:/a")
            continue;
        EXPECT_EQ(value, key.first == "sluice_upstream_up"                   ? 1
                         : key.first == "sluice_upstream_connections_active" ? 11
                         : key.first == "sluice_upstream_connects_total"     ? 22
                                                                             : 33)
            << key.first;
    }
}

TEST(Metrics, CountersAreCalledSo)
{
    const Reader read(to_metrics(sample_status()));
    for (const auto &[name, type] : read.types())
        EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
}

// docs/admin.md has a line for each: | `name` | type | `label`, ... |
TEST(Metrics, AreDocumented)
{
    const std::string text = test::file_text(SLUICE_ADMIN_DOC);
    const Reader read(to_metrics(sample_status()));
    size_t documented = 0;
    for (size_t at = 0; (at = text.find("\n| `", at)) != std::string::npos; ++at)
        documented += text.compare(at + 4, 7, "sluice_") == 0 || text.compare(at + 4, 8, "process_") == 0;
    EXPECT_EQ(documented, read.types().size());
    for (const auto &[name, type] : read.types())
        EXPECT_NE(text.find("\n| `" + name + "` | " + type + " | "), std::string::npos) << name;
    for (const auto &[key, value] : read.samples()) {
        const std::string name = key.first.substr(0, key.first.find("_seconds_") + 8);
        const size_t row = text.find("\n| `" + (read.types().contains(key.first) ? key.first : name) + '`');
        const std::string line = text.substr(row, text.find('\n', row + 1) - row);
        for (const auto &[label, content] : key.second)
            EXPECT_TRUE(label == "le" || line.find('`' + label + '`') != std::string::npos)
                << key.first << ' ' << label;
    }
}

TEST(Metrics, NothingToTellIsStillWellFormed)
{
    const Reader read(to_metrics(DaemonStatus{}));
    EXPECT_EQ(read.value("sluice_fds_open"), 0);
    EXPECT_FALSE(read.has("process_start_time_seconds"));
    DaemonStatus draining;
    draining.state = "draining";
    EXPECT_EQ(Reader(to_metrics(draining)).value("sluice_draining"), 1);
}

// The reader is as strict as it says.
TEST(Metrics, TheReaderOfThisTestFindsFaults)
{
    const std::string head = "# HELP a text\n# TYPE a counter\n";
    EXPECT_NO_THROW(Reader(head + "a{x=\"1\"} 2\n"));
    for (const char *bad :
         {"a{x=\"1\"} 2", "b 1\n", "a{x=1} 2\n", "a{x=\"1\"} two\n", "a{x=\"1\"}2\n", "a_bucket 1\n",
          "a{x=\"1\",x=\"2\"} 2\n", "a{x=\"\"\"} 2\n", "a{x=\"\\t\"} 2\n", "a 1\na 1\n", "a \n", "# HELP a again\n"})
        EXPECT_THROW(Reader(head + bad), std::runtime_error) << bad;
}

} // namespace
} // namespace sluice::proxyd
