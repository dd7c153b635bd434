// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What `sluice status` prints.

#include <vector>

#include "remote/cli/status_model.hpp"
#include "remote/cli/table.hpp"

namespace sluice::cli {

std::vector<Line> status_view(const Status &status, bool with_connections);

// Parts that top shows too. "12/256", or "12" where there is no limit.
std::string connections_text(const Service &service);
// "flowing spliced, awaits source"
std::string lane_text(const Lane &lane);
// Of a service, connection or upstream in that state.
Style style_of(const std::string &state);

} // namespace sluice::cli
