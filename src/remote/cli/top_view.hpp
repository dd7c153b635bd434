// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What `sluice top` shows: the status of now beside that of a while ago, cut to the size
// of the terminal. Rates go by the daemon's own clock; what has no earlier figure, because
// it is new or the daemon is, has none.

#include <cstddef>
#include <vector>

#include "remote/cli/status_model.hpp"
#include "remote/cli/table.hpp"

namespace sluice::cli {

struct Size {
    size_t columns = 80;
    size_t rows = 24;
};

// `before` may be nullptr; `notice` stands in the second line, if there is any.
std::vector<Line> top_view(const Status &now, const Status *before, const std::string &notice, Size size);

} // namespace sluice::cli
