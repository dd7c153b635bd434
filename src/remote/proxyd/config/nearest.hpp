// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// For "did you mean": the known word that a misspelt one is nearest to.

#include <string>
#include <string_view>
#include <vector>

namespace sluice::proxyd {

// How many characters are to be put in, taken out, changed, or swapped with the next one,
// to make one of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// Empty where none is near enough to be what was meant.
std::string nearest(std::string_view word, const std::vector<std::string> &known);

} // namespace sluice::proxyd
