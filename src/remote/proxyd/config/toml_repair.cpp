// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/toml_repair.hpp"

#include <algorithm>
#include <cctype>

namespace sluice::proxyd {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::string_view without_blanks(std::string_view line)
{
    size_t first = line.find_first_not_of(blanks);
    if (first == std::string_view::npos)
        return {};
    return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

bool is_header(std::string_view line)
{
    line = without_blanks(line);
    // an element of an array over several lines begins in the same way, but goes on after the bracket
    return line.starts_with('[') && line.find_first_of("=,\"'") == std::string_view::npos;
}

// `key = ...`, with a key that is bare or dotted.
bool is_assignment(std::string_view line)
{
    line = without_blanks(line);
    auto in_key = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    };
    size_t end = static_cast<size_t>(std::find_if_not(line.begin(), line.end(), in_key) - line.begin());
    return end > 0 && without_blanks(line.substr(end)).starts_with('=');
}

// Follows brackets and strings line by line, as far as it takes to see whether a value
// goes on in the next line.
class Follower {
public:
    bool is_open() const { return depth_ > 0 || !quote_.empty(); }

    void take(std::string_view line)
    {
        for (size_t at = 0; at < line.size(); ++at) {
            char c = line[at];
            if (!quote_.empty()) {
                if (c == '\\' && quote_[0] == '"')
                    ++at;
                else if (line.substr(at, quote_.size()) == quote_)
                    at += close();
            } else if (c == '#') {
                break;
            } else if (c == '"' || c == '\'') {
                std::string long_quote(3, c);
                quote_ = line.substr(at, 3) == long_quote ? long_quote : std::string(1, c);
                at += quote_.size() - 1;
            } else {
                depth_ = std::max(0, depth_ + (c == '[' || c == '{') - (c == ']' || c == '}'));
            }
        }
        if (quote_.size() == 1)
            quote_.clear(); // the others alone go over several lines
    }

private:
    size_t close()
    {
        size_t size = quote_.size();
        quote_.clear();
        return size - 1;
    }

    int depth_ = 0;
    std::string quote_; // the one that ends the string we are in
};

// A header of the outermost level, from which on all is new.
bool opens_section(std::string_view line)
{
    line = without_blanks(line);
    return is_header(line) && line.find('.') == std::string_view::npos;
}

} // namespace

TomlRepair::TomlRepair(std::string_view text) : text_(text)
{
    starts_.push_back(0);
    for (size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1))
        starts_.push_back(at + 1);
}

std::string_view TomlRepair::line(size_t index) const
{
    size_t end = index + 1 < starts_.size() ? starts_[index + 1] : text_.size();
    return std::string_view(text_).substr(starts_[index], end - starts_[index]);
}

bool TomlRepair::blank_out(size_t first, size_t last)
{
    bool any = false;
    for (size_t index = first; index <= last && index < starts_.size(); ++index) {
        any |= !without_blanks(line(index)).empty();
        size_t size = line(index).size();
        for (size_t at = starts_[index]; at < starts_[index] + size; ++at) {
            if (text_[at] != '\n')
                text_[at] = ' ';
        }
    }
    return any;
}

bool TomlRepair::leave_out(size_t line_number, size_t column)
{
    size_t at = std::min(line_number > 0 ? line_number - 1 : 0, starts_.size() - 1);
    // where the value begins that the line is a part of
    size_t first = at;
    Follower follower;
    for (size_t index = 0; index < at; ++index) {
        if (!follower.is_open())
            first = index;
        follower.take(line(index));
    }
    if (!follower.is_open())
        first = at;
    size_t indent = line(at).find_first_not_of(blanks);
    bool at_begin = indent == std::string_view::npos || column <= indent + 1;
    // this line is good, and the value before it has not come to its end
    if (first < at && at_begin && (is_assignment(line(at)) || is_header(line(at))))
        return blank_out(first, at - 1);
    size_t last = at;
    if (first == at && is_header(line(at))) {
        // what follows would be taken for a part of the section before
        while (last + 1 < starts_.size() && !opens_section(line(last + 1)))
            ++last;
    }
    return blank_out(first, last);
}

} // namespace sluice::proxyd
