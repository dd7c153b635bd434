// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/table.hpp"

#include <algorithm>
#include <cstdlib>

#include <glib.h>
#include <unistd.h>

namespace sluice::cli {
namespace {

// The next character and the columns it takes; what is not valid is one byte that takes none.
struct Character {
    size_t bytes;
    size_t columns;
};

Character next(std::string_view text)
{
    const gunichar code = g_utf8_get_char_validated(text.data(), static_cast<gssize>(text.size()));
    if (code == static_cast<gunichar>(-1) || code == static_cast<gunichar>(-2))
        return {1, 0};
    const auto bytes = static_cast<size_t>(g_unichar_to_utf8(code, nullptr));
    if (g_unichar_iscntrl(code) || g_unichar_iszerowidth(code))
        return {bytes, 0};
    return {bytes, g_unichar_iswide(code) ? 2u : 1u};
}

} // namespace

size_t display_width(std::string_view text)
{
    size_t columns = 0;
    while (!text.empty()) {
        const Character character = next(text);
        columns += character.columns;
        text.remove_prefix(character.bytes);
    }
    return columns;
}

std::string cut_to(std::string_view text, size_t columns)
{
    size_t bytes = 0;
    while (bytes < text.size()) {
        const Character character = next(text.substr(bytes));
        if (character.columns > columns)
            break;
        columns -= character.columns;
        bytes += character.bytes;
    }
    return std::string(text.substr(0, bytes));
}

std::string paint(const Line &line, bool colours)
{
    const char *code = "";
    switch (line.style) {
    case Style::plain:
        return line.text;
    case Style::title:
        code = "7";
        break;
    case Style::heading:
        code = "1";
        break;
    case Style::warning:
        code = "33";
        break;
    case Style::bad:
        code = "31";
        break;
    }
    return colours ? std::string("\x1b[") + code + "m" + line.text + "\x1b[0m" : line.text;
}

bool wants_colours(int fd)
{
    const char *none = std::getenv("NO_COLOR");
    const char *term = std::getenv("TERM");
    return isatty(fd) && !(none && *none) && term && std::string_view(term) != "dumb";
}

void Table::add(std::vector<std::string> cells, Style style)
{
    cells.resize(columns_.size());
    rows_.push_back({std::move(cells), style});
}

std::vector<Line> Table::lines() const
{
    std::vector<size_t> widths;
    for (size_t i = 0; i < columns_.size(); ++i) {
        size_t width = display_width(columns_[i].heading);
        for (const Row &row : rows_)
            width = std::max(width, display_width(row.cells[i]));
        widths.push_back(width);
    }
    auto line = [&](auto &&cell) {
        std::string text;
        for (size_t i = 0; i < columns_.size(); ++i) {
            const std::string &content = cell(i);
            const std::string padding(widths[i] - display_width(content), ' ');
            text += i > 0 ? "  " : "";
            text += columns_[i].align == Align::right ? padding + content : content + padding;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        return text;
    };
    std::vector<Line> all;
    all.push_back({line([&](size_t i) -> const std::string & { return columns_[i].heading; }), Style::heading});
    for (const Row &row : rows_)
        all.push_back({line([&](size_t i) -> const std::string & { return row.cells[i]; }), row.style});
    return all;
}

} // namespace sluice::cli
