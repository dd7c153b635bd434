// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/status_json.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <json-glib/json-glib.h>
#include <support/channels.hpp>

#include "remote/proxyd/admin/json_writer.hpp"
#include "remote/proxyd/admin/sample_status.hpp"
#include "util/glib/owners.hpp"

namespace sluice::proxyd {
namespace {

// Read by another's parser; looked into by path, "services.0.name".
class Parsed {
public:
    explicit Parsed(const std::string &text) : parser_(json_parser_new())
    {
        GError *raw = nullptr;
        ok = json_parser_load_from_data(parser_.get(), text.c_str(), static_cast<gssize>(text.size()), &raw);
        GErrorPtr error(raw);
        EXPECT_TRUE(ok) << error->message << " in " << text;
    }

    JsonNode *at(std::string_view path) const
    {
        JsonNode *node = json_parser_get_root(parser_.get());
        while (!path.empty() && node) {
            const std::string part(path.substr(0, path.find('.')));
            path.remove_prefix(std::min(path.size(), part.size() + 1));
            if (JSON_NODE_HOLDS_ARRAY(node)) {
                JsonArray *array = json_node_get_array(node);
                const auto index = static_cast<guint>(std::stoul(part));
                node = index < json_array_get_length(array) ? json_array_get_element(array, index) : nullptr;
            } else {
                node = json_object_get_member(json_node_get_object(node), part.c_str());
            }
        }
        return node;
    }
    std::string text(std::string_view path) const { return json_node_get_string(at(path)); }
    double number(std::string_view path) const { return json_node_get_double(at(path)); }
    int64_t integer(std::string_view path) const { return json_node_get_int(at(path)); }

    bool ok = false;

private:
    GObjectPtr<JsonParser> parser_;
};

TEST(StatusJson, HoldsEveryField)
{
    const Parsed json(to_json(sample_status(), true));
    ASSERT_TRUE(json.ok);
    EXPECT_EQ(json.text("version"), "1.2.3");
    EXPECT_EQ(json.integer("pid"), 4711);
    EXPECT_EQ(json.text("state"), "ready");
    EXPECT_EQ(json.number("start_time_seconds"), 1700000000.25);
    EXPECT_EQ(json.number("uptime_seconds"), 60.5);
    EXPECT_EQ(json.integer("reloads"), 3);
    EXPECT_EQ(json.integer("reloads_failed"), 1);
    EXPECT_EQ(json.text("last_reload_error"), "line 3: \"x\"\nis no number");
    EXPECT_EQ(json.integer("fds_open"), 42);
    EXPECT_EQ(json.integer("fds_max"), 1024);
    EXPECT_EQ(json.text("workers.0.name"), "main");
    EXPECT_EQ(json.integer("workers.0.connections"), 2);
    EXPECT_EQ(json.number("workers.0.loop_lag_seconds"), 0.001);
    EXPECT_EQ(json.number("workers.0.loop_lag_max_seconds"), 0.25);
    EXPECT_EQ(json.text("workers.1.name"), "worker-1");

    EXPECT_EQ(json.text("services.0.name"), "web");
    EXPECT_EQ(json.text("services.0.state"), "open");
    EXPECT_EQ(json.text("services.0.listen.1"), "unix:/run/web.sock");
    EXPECT_EQ(json.text("services.0.upstreams.1.address"), "tcp:10.0.0.1:80");
    EXPECT_EQ(json.text("services.0.upstreams.1.state"), "down");
    EXPECT_EQ(json.text("services.0.upstreams.1.last_error"), "timed out");
    EXPECT_EQ(json.integer("services.0.upstreams.0.active"), 2);
    EXPECT_EQ(json.integer("services.0.upstreams.0.connects"), 11);
    EXPECT_EQ(json.integer("services.0.upstreams.1.failures"), 4);
    EXPECT_EQ(json.integer("services.0.active"), 2);
    EXPECT_EQ(json.integer("services.0.limit"), 256);
    EXPECT_EQ(json.integer("services.0.accepted"), 12);
    EXPECT_EQ(json.integer("services.0.rejected.limit"), 3);
    EXPECT_EQ(json.integer("services.0.rejected.access"), 0);
    EXPECT_EQ(json.integer("services.0.closed.idle-timeout"), 1);
    EXPECT_EQ(json.integer("services.0.bytes_up"), 1000);
    EXPECT_EQ(json.integer("services.0.bytes_copied"), 24);
    EXPECT_EQ(json.integer("services.0.bytes_spliced"), 976);
    EXPECT_EQ(json.integer("services.0.buffer_bytes"), 65536);
    EXPECT_EQ(json.number("services.0.connect_seconds.buckets.0.le"), 0.0001);
    EXPECT_EQ(json.integer("services.0.connect_seconds.buckets.0.count"), 5);
    EXPECT_EQ(json.integer("services.0.connect_seconds.buckets.3.count"), 8);
    EXPECT_EQ(json.number("services.0.connect_seconds.buckets.11.le"), 5);
    EXPECT_EQ(json.at("services.0.connect_seconds.buckets.12"), nullptr);
    EXPECT_EQ(json.integer("services.0.connect_seconds.count"), 10);
    EXPECT_EQ(json.number("services.0.connect_seconds.sum"), 20.0035);

    EXPECT_EQ(json.integer("connections.0.id"), 17);
    EXPECT_EQ(json.text("connections.0.service"), "web");
    EXPECT_EQ(json.text("connections.0.peer"), "uid 1000 pid 4712");
    EXPECT_EQ(json.text("connections.0.upstream"), "unix:/run/app.sock");
    EXPECT_EQ(json.text("connections.0.state"), "relaying");
    EXPECT_EQ(json.number("connections.0.age_seconds"), 12.5);
    EXPECT_EQ(json.number("connections.0.idle_seconds"), 0.125);
    EXPECT_EQ(json.text("connections.0.up.state"), "finished");
    EXPECT_EQ(json.text("connections.0.down.mode"), "spliced");
    EXPECT_EQ(json.text("connections.0.down.waits_for"), "source");
    EXPECT_EQ(json.integer("connections.0.down.bytes"), 5000);
    EXPECT_EQ(json.integer("connections.0.down.held_bytes"), 4096);
}

TEST(StatusJson, AwkwardTextsStayOneString)
{
    const Parsed json(to_json(sample_status(), false));
    ASSERT_TRUE(json.ok);
    EXPECT_EQ(json.text("services.1.name"), "odd \"name\\\nof\xef\xbf\xbd two lines");
}

TEST(StatusJson, ConnectionsOnlyWhenAskedFor)
{
    EXPECT_EQ(Parsed(to_json(sample_status(), false)).at("connections"), nullptr);
    DaemonStatus none = sample_status();
    none.connections.clear();
    const Parsed json(to_json(none, true));
    ASSERT_NE(json.at("connections"), nullptr);
    EXPECT_EQ(json_array_get_length(json_node_get_array(json.at("connections"))), 0u);
}

// json-glib has no unsigned numbers: the text has the whole of it.
TEST(StatusJson, LargeNumbersAreExact)
{
    EXPECT_NE(to_json(sample_status(), false).find("\"bytes_down\":18446744073709551615,"), std::string::npos);
}

// docs/admin.md names each key after the dot that it stands behind, or at the head of a path.
void expect_documented(JsonNode *node, const std::string &text)
{
    if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        for (guint i = 0; i < json_array_get_length(array); ++i)
            expect_documented(json_array_get_element(array, i), text);
    } else if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObjectIter iter;
        const char *name = nullptr;
        JsonNode *value = nullptr;
        json_object_iter_init(&iter, json_node_get_object(node));
        while (json_object_iter_next(&iter, &name, &value)) {
            const std::string key = name;
            bool found = false;
            for (const char *before : {"`", "."}) {
                for (const char *after : {"`", "[]", "."})
                    found = found || text.find(before + key + after) != std::string::npos;
            }
            EXPECT_TRUE(found) << key;
            if (key != "rejected" && key != "closed") // reasons are sluiced(8)'s
                expect_documented(value, text);
        }
    }
}

TEST(StatusJson, IsDocumented)
{
    const Parsed json(to_json(sample_status(), true));
    expect_documented(json.at(""), test::file_text(SLUICE_ADMIN_DOC));
}

TEST(JsonWriter, PutsCommasAndEscapes)
{
    JsonWriter json;
    json.open('{');
    json.field("a", 1);
    json.key("b");
    json.open('[');
    json.value(true);
    json.value("\t\x7f\"\\ü");
    json.open('{');
    json.close('}');
    json.open('[');
    json.close(']');
    json.close(']');
    json.field("c", 0.1);
    json.field("d", std::numeric_limits<double>::quiet_NaN());
    json.field("e", -1e300);
    json.close('}');
    EXPECT_EQ(json.take(), "{\"a\":1,\"b\":[true,\"\\u0009\\u007f\\\"\\\\ü\",{},[]],\"c\":0.1,\"d\":0,\"e\":-1e+300}");
}

} // namespace
} // namespace sluice::proxyd
