// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the commands say: results on stdout, one line for what went wrong on stderr, and
// which exit status a failure has.

#include <cerrno>
#include <string_view>

#include <sysexits.h>

#include "util/base/result.hpp"

namespace sluice::cli {

// "sluice: MESSAGE" on stderr; control characters in it are made visible.
void complain(std::string_view message);

// Complains, and gives the exit status for the Error's code: EINVAL a wrong argument,
// ENOENT no such socket, service or connection, EACCES and EPERM not permitted, EPROTO an
// answer that is not understood, EIO and ENOSPC output that could not be written.
int fail_with(const Error &error);

// Writes all of it to stdout: EX_OK, or EX_IOERR and a complaint.
int print(std::string_view text);

} // namespace sluice::cli
