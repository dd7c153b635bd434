// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/reading.hpp"

#include <cmath>

#include <grp.h>
#include <pwd.h>

#include "remote/proxyd/config/time_span.hpp"
#include "util/base/nearest.hpp"
#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/base/units.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr uint64_t size_max = INT64_MAX;
constexpr uint32_t id_max = UINT32_MAX - 1; // the last one means "none"
constexpr size_t entry_bytes_max = 1 << 20; // of a group with very many members

std::optional<microseconds> duration_of(const TomlValue &value)
{
    if (const int64_t *number = value.integer()) {
        if (*number < 0 || *number > std::chrono::duration_cast<seconds>(config_time_max).count())
            return std::nullopt;
        return seconds{*number};
    }
    if (const auto *number = std::get_if<double>(&value.data)) {
        if (!(*number >= 0 && *number * 1e6 <= static_cast<double>(config_time_max.count())))
            return std::nullopt;
        return microseconds{std::llround(*number * 1e6)};
    }
    auto span = value.text() ? parse_time_span(*value.text()) : std::nullopt;
    return span && *span <= config_time_max ? span : std::nullopt;
}

// getpwnam_r() and getgrnam_r() are alike but for their types.
template <class Entry, class Find>
Result<Entry> look_up(const std::string &name, std::vector<char> &storage, const char *unknown, Find find)
{
    Entry entry;
    Entry *found = nullptr;
    if (name.find('\0') != std::string::npos)
        return fail(ENOENT, format(unknown, printable(name)));
    int code = 0;
    for (storage.resize(4096);; storage.resize(storage.size() * 2)) {
        code = find(name.c_str(), &entry, storage.data(), storage.size(), &found);
        if (code != ERANGE || storage.size() >= entry_bytes_max)
            break;
    }
    if (found)
        return entry;
    // what there is none of is reported in various ways
    if (code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM)
        return fail(ENOENT, format(unknown, printable(name)));
    return fail_errno(code, printable(name));
}

template <class Id, class Find>
std::optional<Id> read_id(const Field &field, const char *expected, Find find)
{
    if (const int64_t *number = field.value.integer(); number && *number >= 0 && *number <= id_max)
        return static_cast<Id>(*number);
    if (const std::string *text = field.value.text()) {
        auto id = find(*text);
        if (id)
            return *id;
        field.problem(id.error().message);
        return std::nullopt;
    }
    field.expected(expected);
    return std::nullopt;
}

} // namespace

void Field::problem(const std::string &message) const
{
    problems.push_back({value.place, name + ": " + message});
}

void Field::expected(const std::string &what) const
{
    problem(format(_("found {}, expected {}"), describe(value), what));
}

std::vector<Field> Field::elements() const
{
    const TomlValue::Array *array = value.array();
    if (!array)
        return {*this};
    std::vector<Field> list;
    for (const TomlValue &element : *array)
        list.push_back({name, element, problems});
    return list;
}

std::optional<uint64_t> read_number(const Field &field, uint64_t min, uint64_t max)
{
    const int64_t *number = field.value.integer();
    if (number && *number >= 0 && static_cast<uint64_t>(*number) >= min && static_cast<uint64_t>(*number) <= max)
        return static_cast<uint64_t>(*number);
    field.expected(format(_("a whole number from {} to {}"), min, max));
    return std::nullopt;
}

bool read_flag(const Field &field, bool &into)
{
    const bool *truth = std::get_if<bool>(&field.value.data);
    if (truth)
        into = *truth;
    else
        field.expected(_("true or false"));
    return truth != nullptr;
}

std::optional<std::string> read_text(const Field &field, const std::string &expected)
{
    if (const std::string *text = field.value.text())
        return *text;
    field.expected(expected);
    return std::nullopt;
}

std::optional<microseconds> read_duration(const Field &field)
{
    auto duration = duration_of(field.value);
    if (!duration)
        field.expected(_("a time up to 1000h, in seconds or as in \"250ms\", \"30s\", \"1h 30min\""));
    return duration;
}

std::optional<seconds> read_seconds(const Field &field, seconds min, seconds max)
{
    auto duration = duration_of(field.value);
    auto whole = duration ? std::chrono::duration_cast<seconds>(*duration) : seconds{-1};
    if (duration && whole == *duration && whole >= min && whole <= max)
        return whole;
    field.expected(format(_("a time in whole seconds from {} to {}, as in 30 or \"5min\""), min.count(), max.count()));
    return std::nullopt;
}

std::optional<uint64_t> read_size(const Field &field)
{
    std::optional<uint64_t> size;
    if (const int64_t *number = field.value.integer(); number && *number >= 0)
        size = static_cast<uint64_t>(*number);
    else if (const std::string *text = field.value.text())
        size = parse_size(*text);
    if (size && *size <= size_max)
        return size;
    field.expected(_("a number of bytes, or one with K, M or G, as in \"64K\""));
    return std::nullopt;
}

std::optional<size_t> read_choice(const Field &field, const std::vector<std::string> &words)
{
    const std::string *text = field.value.text();
    for (size_t index = 0; text && index < words.size(); ++index) {
        if (words[index] == *text)
            return index;
    }
    std::string meant = text ? nearest(*text, words) : "";
    std::string expected = list_words(words);
    if (!meant.empty())
        expected += format(_("; did you mean \"{}\"?"), meant);
    field.expected(expected);
    return std::nullopt;
}

std::optional<mode_t> read_mode(const Field &field)
{
    constexpr mode_t mode_max = 0777;
    std::optional<mode_t> mode;
    if (const int64_t *number = field.value.integer(); number && field.value.octal && *number <= mode_max)
        mode = static_cast<mode_t>(*number);
    const std::string *text = field.value.text();
    if (text && text->size() >= 3 && text->size() <= 4 && text->find_first_not_of("01234567") == std::string::npos) {
        mode_t bits = 0;
        for (char digit : *text)
            bits = bits * 8 + static_cast<mode_t>(digit - '0');
        if (bits <= mode_max)
            mode = bits;
    }
    if (!mode)
        field.expected(_("permissions in octal digits, as in \"0660\" or 0o660"));
    return mode;
}

Result<uid_t> find_user(const std::string &text)
{
    if (auto number = parse_number<uint32_t>(text, 0, id_max))
        return *number;
    std::vector<char> storage;
    return look_up<passwd>(text, storage, _("there is no user \"{}\" here; write the name of one, or a number"),
                           getpwnam_r)
        .map([](const passwd &entry) { return entry.pw_uid; });
}

Result<gid_t> find_group(const std::string &text)
{
    if (auto number = parse_number<uint32_t>(text, 0, id_max))
        return *number;
    std::vector<char> storage;
    return look_up<group>(text, storage, _("there is no group \"{}\" here; write the name of one, or a number"),
                          getgrnam_r)
        .map([](const group &entry) { return entry.gr_gid; });
}

std::optional<uid_t> read_user(const Field &field)
{
    return read_id<uid_t>(field, _("a user, by name or number"), find_user);
}

std::optional<gid_t> read_group(const Field &field)
{
    return read_id<gid_t>(field, _("a group, by name or number"), find_group);
}

std::string list_words(const std::vector<std::string> &words)
{
    std::string list;
    for (size_t index = 0; index < words.size(); ++index) {
        if (index > 0)
            list += index + 1 == words.size() ? _(" or ") : ", ";
        list += "\"" + words[index] + "\"";
    }
    return list;
}

} // namespace sluice::proxyd
