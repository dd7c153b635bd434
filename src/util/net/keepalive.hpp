// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finding out that a TCP peer is gone without a word.

#include <chrono>

#include "util/base/result.hpp"

namespace sluice {

// After `idle` without a word from the peer it is asked, then every `interval`, and after
// `count` questions without an answer the connection fails with ETIMEDOUT. Bytes that
// the peer does not acknowledge are given the same time in all (TCP_USER_TIMEOUT), so
// that a peer that vanishes in the middle of a transfer is noticed as soon. The kernel
// takes 1 to 32767 seconds and 1 to 127 questions; else EINVAL. Sockets that are not TCP
// are left alone, successfully.
Result<void> set_keepalive(int fd, std::chrono::seconds idle, std::chrono::seconds interval, int count);

} // namespace sluice
