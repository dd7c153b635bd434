// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// For "did you mean": the known word that a misspelt one is nearest to.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// How many characters are to be put in, taken out, changed, or swapped with the next one,
// to make one of the other.
inline size_t edit_distance(std::string_view a, std::string_view b)
{
    // rows of the table of distances between beginnings: this one and the two before
    std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        before_last.swap(last);
        last.swap(row);
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            bool same = a[i - 1] == b[j - 1];
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
    }
    return row[b.size()];
}

// Empty where none is near enough to be what was meant. What was cut short is near,
// however much is missing; nothing longer than 64 characters is a slip of the pen.
inline std::string nearest(std::string_view word, const std::vector<std::string> &known)
{
    if (word.empty() || word.size() > 64)
        return {};
    std::string best;
    size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string &candidate : known) {
        bool beginning = word.size() >= 3 && candidate.starts_with(word);
        size_t distance = beginning ? 1 : edit_distance(word, candidate);
        if (distance < best_distance && distance < candidate.size()) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

} // namespace sluice
