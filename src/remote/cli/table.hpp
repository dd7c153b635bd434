// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Columns of text, aligned by the width that they have on a terminal, and lines with a
// style. A line is plain text until it is painted, so that it can be cut to a width.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

enum class Style { plain, title, heading, warning, bad };

struct Line {
    std::string text;
    Style style = Style::plain;
};

// Columns that the text takes on a terminal; control characters and bad UTF-8 take none.
size_t display_width(std::string_view text);
// As much of the text as fits into so many columns.
std::string cut_to(std::string_view text, size_t columns);

// With the escape sequences for its style, or without any where `colours` are not wanted.
std::string paint(const Line &line, bool colours);
// Where the output goes to a terminal, and NO_COLOR is not set to anything.
bool wants_colours(int fd);

class Table {
public:
    enum class Align { left, right };
    struct Column {
        std::string heading;
        Align align = Align::left;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    // As many cells as there are columns.
    void add(std::vector<std::string> cells, Style style = Style::plain);
    size_t size() const { return rows_.size(); }
    // The headings and then the rows; two blanks between columns, none at the end of a line.
    std::vector<Line> lines() const;

private:
    struct Row {
        std::vector<std::string> cells;
        Style style;
    };
    std::vector<Column> columns_;
    std::vector<Row> rows_;
};

} // namespace sluice::cli
