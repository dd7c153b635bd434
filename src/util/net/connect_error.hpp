// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is said when a connection could not be made: the address, the cause in the
// system's words, and what to try, on one line and in the user's language.

#include <chrono>
#include <string>
#include <vector>

#include "util/base/result.hpp"
#include "util/net/address.hpp"

namespace sluice {

// One of several addresses, and why it was not that one.
struct AttemptFailure {
    std::string address;
    int code;
};

Error connect_error(const Address &address, int code);

// Around an error that has its own words for cause and remedy.
Error connect_error(const Address &address, const Error &cause);

// Several addresses were tried; the code is the first one's. ETIMEDOUT stands for no answer within `timeout`.
Error connect_error(const Address &address, const std::vector<AttemptFailure> &failures,
                    std::chrono::microseconds timeout);

// Nobody took the connection off a full backlog for the whole of `timeout`.
Error backlog_error(const Address &address, std::chrono::microseconds timeout);

// "0.25" for a message that goes on with the unit.
std::string in_seconds(std::chrono::microseconds time);

} // namespace sluice
