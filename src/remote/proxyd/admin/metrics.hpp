// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The status as metrics in Prometheus' text format, version 0.0.4, for GET /metrics.
// docs/admin.md lists them. Each has its HELP and TYPE line and its samples in one piece;
// no two samples have the same name and labels.

#include <string>

#include "remote/proxyd/admin/status.hpp"

namespace sluice::proxyd {

inline constexpr const char *metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Does not look at the connections.
std::string to_metrics(const DaemonStatus &status);

} // namespace sluice::proxyd
