// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A table of the configuration as a list of keys, each of which knows how to read its
// value into a T. Where in T is said by what std::invoke() takes: a pointer to a member,
// or a function from T& to a part of it.
//
//     const std::vector<Key<Health>> keys{{"failures", number(&Health::failures, 1, 1000)},
//                                         {"retry-after", duration(&Health::retry_after)}};
//     read_table(field, keys, health);

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "remote/proxyd/config/reading.hpp"
#include "util/glib/i18n.hpp"

namespace sluice::proxyd {

template <class T>
struct Key {
    std::string name;
    std::function<void(const Field &, T &)> read;
    std::vector<std::string> inner = {}; // the keys of the table that it is
};

// Of a table that is named in a field: "service" is an array of tables, the others are not.
std::string table_title(const std::string &name);

// Says that there is no such key, and which one may have been meant.
void unknown_key(const Field &table, const TomlEntry &entry, const std::vector<std::string> &known);

template <class T>
std::vector<std::string> names_of(const std::vector<Key<T>> &keys)
{
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const Key<T> &key : keys)
        names.push_back(key.name);
    return names;
}

template <class T>
void read_table(const Field &field, const std::vector<Key<T>> &keys, T &into)
{
    const TomlValue::Table *table = field.value.table();
    if (!table)
        return field.expected(_("a table"));
    for (const TomlEntry &entry : *table) {
        bool known = false;
        for (const Key<T> &key : keys) {
            if (key.name != entry.key)
                continue;
            known = true;
            key.read({field.name + "." + entry.key, entry.value, field.problems}, into);
        }
        if (!known)
            unknown_key(field, entry, names_of(keys));
    }
}

template <class Where>
auto number(Where where, uint64_t min, uint64_t max)
{
    return [=](const Field &field, auto &into) {
        auto &part = std::invoke(where, into);
        if (auto value = read_number(field, min, max))
            part = static_cast<std::remove_reference_t<decltype(part)>>(*value);
    };
}

template <class Where>
auto flag(Where where)
{
    return [=](const Field &field, auto &into) { read_flag(field, std::invoke(where, into)); };
}

template <class Where>
auto duration(Where where)
{
    return [=](const Field &field, auto &into) {
        if (auto value = read_duration(field))
            std::invoke(where, into) = *value;
    };
}

// For what must have an end.
template <class Where>
auto bounded_duration(Where where)
{
    return [=](const Field &field, auto &into) {
        auto value = read_duration(field);
        if (value && value->count() == 0)
            field.expected(_("a time above 0"));
        else if (value)
            std::invoke(where, into) = *value;
    };
}

template <class Where>
auto whole_seconds(Where where, std::chrono::seconds min, std::chrono::seconds max)
{
    return [=](const Field &field, auto &into) {
        if (auto value = read_seconds(field, min, max))
            std::invoke(where, into) = *value;
    };
}

template <class Where>
auto size(Where where)
{
    return [=](const Field &field, auto &into) {
        if (auto value = read_size(field))
            std::invoke(where, into) = *value;
    };
}

template <class Where, class Choice>
auto choice(Where where, std::vector<std::pair<std::string, Choice>> choices)
{
    return [where, choices = std::move(choices)](const Field &field, auto &into) {
        std::vector<std::string> words;
        for (const auto &[word, value] : choices)
            words.push_back(word);
        if (auto index = read_choice(field, words))
            std::invoke(where, into) = choices[*index].second;
    };
}

// A list, by a function from a Field.
template <class Where, class Read>
auto list(Where where, Read read)
{
    return [=](const Field &field, auto &into) { std::invoke(where, into) = read(field); };
}

template <class T, class Where, class Inner>
Key<T> table(std::string name, Where where, const std::vector<Key<Inner>> &keys)
{
    auto read = [&keys, where](const Field &field, T &into) { read_table(field, keys, std::invoke(where, into)); };
    return {std::move(name), read, names_of(keys)};
}

} // namespace sluice::proxyd
