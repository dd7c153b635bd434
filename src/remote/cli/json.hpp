// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// JSON as it comes from a daemon that may be older or newer than we are: what is missing
// or of another type is empty, or 0, and what is not known is passed over.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <json-glib/json-glib.h>

#include "util/base/result.hpp"
#include "util/glib/owners.hpp"

namespace sluice::cli {

// A part of a document; valid as long as that is.
class JsonView {
public:
    JsonView() = default;
    explicit JsonView(JsonNode *node) : node_(node) {}

    bool is_object() const { return node_ && JSON_NODE_HOLDS_OBJECT(node_); }
    bool is_array() const { return node_ && JSON_NODE_HOLDS_ARRAY(node_); }

    JsonView operator[](const char *key) const
    {
        return JsonView(is_object() ? json_object_get_member(json_node_get_object(node_), key) : nullptr);
    }
    std::string text(const char *key) const { return (*this)[key].as_text(); }
    double number(const char *key) const
    {
        const JsonView value = (*this)[key];
        return value.is_number() ? json_node_get_double(value.node_) : 0;
    }
    uint64_t count(const char *key) const { return (*this)[key].as_count(); }
    uint64_t as_count() const { return is_number() ? static_cast<uint64_t>(json_node_get_int(node_)) : 0; }
    std::string as_text() const
    {
        return node_ && JSON_NODE_HOLDS_VALUE(node_) && json_node_get_value_type(node_) == G_TYPE_STRING
                   ? json_node_get_string(node_)
                   : "";
    }

    std::vector<JsonView> list(const char *key) const
    {
        std::vector<JsonView> items;
        const JsonView array = (*this)[key];
        if (array.is_array()) {
            JsonArray *of = json_node_get_array(array.node_);
            for (guint i = 0; i < json_array_get_length(of); ++i)
                items.emplace_back(json_array_get_element(of, i));
        }
        return items;
    }
    // The members of an object, in their order.
    std::vector<std::pair<std::string, JsonView>> members(const char *key) const
    {
        std::vector<std::pair<std::string, JsonView>> items;
        const JsonView object = (*this)[key];
        if (object.is_object()) {
            JsonObjectIter iter;
            const char *name = nullptr;
            JsonNode *value = nullptr;
            json_object_iter_init_ordered(&iter, json_node_get_object(object.node_));
            while (json_object_iter_next_ordered(&iter, &name, &value))
                items.emplace_back(name, JsonView(value));
        }
        return items;
    }

private:
    bool is_number() const
    {
        const GType type = node_ && JSON_NODE_HOLDS_VALUE(node_) ? json_node_get_value_type(node_) : G_TYPE_INVALID;
        return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE;
    }

    JsonNode *node_ = nullptr;
};

class JsonDocument {
public:
    // Code: EPROTO.
    static Result<JsonDocument> parse(const std::string &text)
    {
        JsonDocument document;
        GError *raw = nullptr;
        if (!json_parser_load_from_data(document.parser_.get(), text.data(), static_cast<gssize>(text.size()), &raw)) {
            GErrorPtr error(raw);
            return fail(EPROTO, error->message);
        }
        return document;
    }
    JsonView root() const { return JsonView(json_parser_get_root(parser_.get())); }

private:
    JsonDocument() : parser_(json_parser_new()) {}

    GObjectPtr<JsonParser> parser_;
};

} // namespace sluice::cli
