// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Connecting one socket, in the two steps that lie before and after the waiting. Neither
// waits. For connect.cpp; others call connect_now() and connect_to().

#include <chrono>

#include "util/base/unique_fd.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

// 0, and `fd` is connected and set up; EINPROGRESS, and it is to be waited for until it
// is writable; or an errno, with `fd` as it was. `timeout` is for vsock, where the kernel
// gives up after 2 s if it is not told otherwise.
int begin_connect(const SocketAddress &to, std::chrono::microseconds timeout, UniqueFd &fd) noexcept;

// What has become of it, once it is writable or broken: 0 or an errno.
int end_connect(int fd, const SocketAddress &to) noexcept;

} // namespace sluice
