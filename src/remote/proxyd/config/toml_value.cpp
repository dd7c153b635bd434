// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/toml_value.hpp"

#include <algorithm>
#include <optional>

#include <toml++/toml.h>

#include "remote/proxyd/config/toml_repair.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr size_t faults_max = 20;
constexpr size_t shown_bytes_max = 60;

Place place_of(const toml::source_region &at, const Place &otherwise)
{
    // what exists only because a dotted key goes through it has no place of its own
    if (at.begin.line == 0)
        return otherwise;
    return {otherwise.file, at.begin.line, at.begin.column};
}

TomlValue convert(const toml::node &node, const Place &otherwise);

TomlValue::Table convert_table(const toml::table &table, const Place &place)
{
    TomlValue::Table entries;
    for (const auto &[key, value] : table) {
        Place at = place_of(key.source(), place);
        entries.push_back({std::string(key.str()), at, convert(value, at)});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry &a, const TomlEntry &b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    return entries;
}

TomlValue convert(const toml::node &node, const Place &otherwise)
{
    TomlValue value;
    value.place = place_of(node.source(), otherwise);
    if (const auto *table = node.as_table()) {
        value.data = convert_table(*table, value.place);
    } else if (const auto *array = node.as_array()) {
        TomlValue::Array elements;
        for (const toml::node &element : *array)
            elements.push_back(convert(element, value.place));
        value.data = std::move(elements);
    } else if (const auto *text = node.as_string()) {
        value.data = text->get();
    } else if (const auto *integer = node.as_integer()) {
        value.data = integer->get();
        value.octal = (integer->flags() & toml::value_flags::format_as_octal) != toml::value_flags::none;
    } else if (const auto *number = node.as_floating_point()) {
        value.data = number->get();
    } else if (const auto *truth = node.as_boolean()) {
        value.data = truth->get();
    } else {
        value.data = TomlDate{};
    }
    return value;
}

std::string message_of(const toml::parse_error &error)
{
    std::string_view text = error.description();
    constexpr std::string_view head = "Error while ";
    if (text.starts_with(head))
        text.remove_prefix(head.size());
    return format(_("this is not TOML: {}"), printable(text));
}

} // namespace

std::string describe(const TomlValue &value)
{
    struct Writer {
        std::string operator()(const TomlValue::Table &) const { return _("a table"); }
        std::string operator()(const TomlValue::Array &array) const
        {
            return array.empty() ? _("an empty array") : _("an array");
        }
        std::string operator()(const std::string &text) const
        {
            std::string shown = printable(text);
            if (shown.size() > shown_bytes_max) {
                size_t end = shown_bytes_max;
                while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80)
                    --end; // not in the middle of a character
                shown = shown.substr(0, end) + "...";
            }
            return "\"" + shown + "\"";
        }
        std::string operator()(int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
        std::string operator()(bool truth) const { return truth ? "true" : "false"; }
        std::string operator()(TomlDate) const { return _("a date or time"); }
    };
    return std::visit(Writer{}, value.data);
}

TomlText parse_toml(std::string_view text, const std::string &file)
{
    TomlText result;
    result.root.place = {file, 1, 1};
    TomlRepair repair(text);
    for (;;) {
        try {
            toml::table table = toml::parse(repair.text(), std::string_view(file));
            result.root.data = convert_table(table, result.root.place);
            return result;
        } catch (const toml::parse_error &error) {
            const toml::source_position &at = error.source().begin;
            result.problems.push_back({{file, at.line, at.column}, message_of(error)});
            if (result.problems.size() >= faults_max || !repair.leave_out(at.line, at.column))
                return result;
        }
    }
}

} // namespace sluice::proxyd
