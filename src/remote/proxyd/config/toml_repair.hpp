// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Leaves out of a TOML text what a parser stumbled over, so that it can go on and find
// the next fault; lines keep their numbers. It errs on the side of leaving out too much:
// a fault that is not found yet is better than one that is none.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::proxyd {

class TomlRepair {
public:
    explicit TomlRepair(std::string_view text);

    // What is left of it.
    std::string_view text() const noexcept { return text_; }
    // Leave out what belongs to the fault there; false where nothing is left to be left out.
    bool leave_out(size_t line, size_t column);

private:
    std::string_view line(size_t index) const;
    bool blank_out(size_t first, size_t last);

    std::string text_;
    std::vector<size_t> starts_; // of the lines
};

} // namespace sluice::proxyd
