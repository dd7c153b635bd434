// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/options.hpp"

#include <algorithm>

#include "util/base/nearest.hpp"
#include "util/base/units.hpp"
#include "util/glib/i18n.hpp"
#include "util/net/format.hpp"

namespace sluice::disk {
namespace {

// The next piece of `text` up to a comma that is not written twice.
std::string take_piece(std::string_view &text)
{
    std::string piece;
    while (!text.empty()) {
        char c = text.front();
        text.remove_prefix(1);
        if (c == ',') {
            if (!text.starts_with(','))
                return piece;
            text.remove_prefix(1);
        }
        piece += c;
    }
    return piece;
}

std::string with_commas_twice(const std::string &text)
{
    std::string out;
    for (char c : text)
        out.append(c == ',' ? 2 : 1, c);
    return out;
}

std::optional<uint64_t> parse_disk_size(std::string_view text)
{
    if (!text.ends_with('T'))
        return parse_size(text);
    text.remove_suffix(1);
    auto number = parse_number<uint64_t>(text, 0, UINT64_MAX >> 40);
    return number ? std::optional(*number << 40) : std::nullopt;
}

std::string list_of(const std::vector<std::string> &words)
{
    std::string list;
    for (const std::string &word : words)
        list += (list.empty() ? "" : ", ") + word;
    return list;
}

} // namespace

Result<Spec> parse_spec(std::string_view text)
{
    std::string_view rest = text;
    Spec spec{take_piece(rest), {}};
    if (spec.name.empty())
        return fail(EINVAL, format(_("\"{}\" has no name: write NAME,KEY=VALUE,..."), std::string(text)));
    while (!rest.empty()) {
        std::string piece = take_piece(rest);
        size_t equals = piece.find('=');
        std::string key = piece.substr(0, equals);
        if (key.empty())
            return fail(EINVAL,
                        format(_("\"{}\": expected KEY=VALUE after a comma (a comma in a value is written twice)"),
                               std::string(text)));
        spec.options.emplace_back(key, equals == std::string::npos ? "yes" : piece.substr(equals + 1));
    }
    return spec;
}

std::string to_string(const Spec &spec)
{
    std::string text = with_commas_twice(spec.name);
    for (const auto &[key, value] : spec.options)
        text += "," + key + "=" + with_commas_twice(value);
    return text;
}

const std::string *OptionReader::find(const char *key)
{
    known_.emplace_back(key);
    const std::string *found = nullptr;
    for (const auto &[name, value] : options_)
        if (name == key)
            found = &value; // the last one has the last word
    return found;
}

void OptionReader::problem(const char *key, const std::string &message)
{
    problems_.push_back(format(_("{}: {}: {}"), what_, key, message));
}

std::string OptionReader::text(const char *key, std::string fallback)
{
    const std::string *found = find(key);
    return found ? *found : std::move(fallback);
}

std::vector<std::string> OptionReader::texts(const char *key)
{
    known_.emplace_back(key);
    std::vector<std::string> all;
    for (const auto &[name, value] : options_)
        if (name == key)
            all.push_back(value);
    return all;
}

uint64_t OptionReader::number(const char *key, uint64_t fallback, uint64_t min, uint64_t max)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    if (auto value = parse_number<uint64_t>(*found, min, max))
        return *value;
    problem(key, format(_("found \"{}\", expected a number from {} to {}"), *found, min, max));
    return fallback;
}

uint64_t OptionReader::size(const char *key, uint64_t fallback, uint64_t min, uint64_t max)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    auto value = parse_disk_size(*found);
    if (value && *value >= min && *value <= max)
        return *value;
    if (!value)
        problem(key, format(_("found \"{}\", expected bytes, or a number with K, M, G or T"), *found));
    else if (*value < min)
        problem(key, format(_("{} is too little: {} bytes or more"), *found, min));
    else
        problem(key, format(_("{} is too much: {} bytes at most"), *found, max));
    return fallback;
}

bool OptionReader::flag(const char *key, bool fallback)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    for (const char *word : {"yes", "true", "on", "1"})
        if (*found == word)
            return true;
    for (const char *word : {"no", "false", "off", "0"})
        if (*found == word)
            return false;
    problem(key, format(_("found \"{}\", expected yes or no"), *found));
    return fallback;
}

double OptionReader::fraction(const char *key, double fallback)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    std::string_view digits = *found;
    double unit = digits.ends_with('%') ? 0.01 : 1;
    if (unit < 1)
        digits.remove_suffix(1);
    double value = -1;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
    if (error == std::errc{} && stop == digits.data() + digits.size() && value >= 0 && value * unit <= 1)
        return value * unit;
    problem(key, format(_("found \"{}\", expected a fraction from 0 to 1, or a percentage"), *found));
    return fallback;
}

std::chrono::microseconds OptionReader::duration(const char *key, std::chrono::microseconds fallback)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    if (auto value = parse_duration(*found))
        return *value;
    problem(key, format(_("found \"{}\", expected a time: 50ms, 1.5s, 2min"), *found));
    return fallback;
}

size_t OptionReader::choice(const char *key, size_t fallback, const std::vector<std::string> &words)
{
    const std::string *found = find(key);
    if (!found)
        return fallback;
    auto at = std::find(words.begin(), words.end(), *found);
    if (at != words.end())
        return static_cast<size_t>(at - words.begin());
    problem(key, format(_("found \"{}\", expected one of: {}"), *found, list_of(words)));
    return fallback;
}

Result<void> OptionReader::finish()
{
    for (const auto &[key, value] : options_) {
        if (std::find(known_.begin(), known_.end(), key) != known_.end())
            continue;
        std::string meant = nearest(key, known_);
        if (!meant.empty())
            problem(key.c_str(), format(_("no such key; did you mean \"{}\"?"), meant));
        else
            problem(key.c_str(), format(_("no such key; there are: {}"), list_of(known_)));
    }
    if (problems_.empty())
        return {};
    std::string all;
    for (const std::string &one : problems_)
        all += (all.empty() ? "" : "; ") + one;
    return fail(EINVAL, all);
}

} // namespace sluice::disk
