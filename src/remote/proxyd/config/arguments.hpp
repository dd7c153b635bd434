// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Arguments in the ways that getopt_long(3) allows and GOption does not, which existing
// units may use: "-c5" for "-c 5", and "--conn=5" where only one option begins so.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::proxyd {

struct OptionName {
    std::string_view name; // without dashes
    char letter = 0;       // 0: none
    bool has_value = false;
};

// The same arguments (those after the program's name), as GOption takes them. What is not
// known stays, for GOption to complain about.
std::vector<std::string> spell_out(const std::vector<std::string> &arguments, const std::vector<OptionName> &known);

} // namespace sluice::proxyd
