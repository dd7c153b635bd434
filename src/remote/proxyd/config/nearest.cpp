// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/nearest.hpp"

#include <algorithm>

namespace sluice::proxyd {
namespace {

constexpr size_t beginning_bytes_min = 3;
constexpr size_t word_bytes_max = 64; // nothing longer is a slip of the pen

} // namespace

size_t edit_distance(std::string_view a, std::string_view b)
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

std::string nearest(std::string_view word, const std::vector<std::string> &known)
{
    if (word.empty() || word.size() > word_bytes_max)
        return {};
    std::string best;
    size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string &candidate : known) {
        // what was cut short is near, however much is missing
        bool beginning = word.size() >= beginning_bytes_min && candidate.starts_with(word);
        size_t distance = beginning ? 1 : edit_distance(word, candidate);
        if (distance < best_distance && distance < candidate.size()) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

} // namespace sluice::proxyd
