// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Every key of the configuration, and where its value goes. sluiced.toml(5) explains
// them; a test sees to it that it explains all, and no others.

#include <string>
#include <vector>

#include "remote/proxyd/config/config.hpp"
#include "remote/proxyd/config/reading.hpp"

namespace sluice::proxyd {

// The field is the table. What it does not mention stays as it is, so that a drop-in can
// be read over what was there before.
void read_daemon(const Field &field, Config &into);
void read_admin(const Field &field, AdminConfig &into);
void read_service(const Field &field, ServiceConfig &into);

// 1 to 64 letters, digits, dots, dashes and underscores, and no dot at the beginning.
bool is_service_name(const std::string &name);

// "daemon.workers", "service.limits.connections", ...
std::vector<std::string> known_keys();

} // namespace sluice::proxyd
