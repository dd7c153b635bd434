// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What can only be seen on the whole of a configuration: parts that do not go together.

#include <vector>

#include "remote/proxyd/config/config_file.hpp"

namespace sluice::proxyd {

std::vector<Problem> check_config(const Config &config);

} // namespace sluice::proxyd
