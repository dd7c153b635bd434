// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a service tells its manager (sd_notify(3)). Every call goes to the socket that
// NOTIFY_SOCKET names, and does nothing, successfully, where that is not set. A failure
// is no reason to stop; the result is there to be logged. For one thread.

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "util/base/result.hpp"

namespace sluice {

class Notifier {
public:
    // Is there somebody who listens?
    bool active() const;

    // After a start and after each reload. In a status, control characters become \xHH.
    Result<void> ready(const std::string &status) const;
    // With the time, as Type=notify-reload wants it; ready() ends it.
    Result<void> reloading() const;
    Result<void> stopping() const;
    Result<void> status(const std::string &text) const;

    // To be called this often: half of WatchdogSec=; nullopt where no watchdog is on for us.
    std::optional<std::chrono::microseconds> watchdog_interval() const;
    Result<void> watchdog() const;

    // From now on, for what is going on (starting, reloading, stopping).
    Result<void> extend_timeout(std::chrono::microseconds by) const;

    // Leave descriptors with the manager, which hands them to the next start as passed
    // sockets of that name (FileDescriptorStoreMax= must allow it). A name has 1 to 255
    // printable ASCII characters and no colon; else EINVAL.
    Result<void> store_fds(const std::string &name, std::span<const int> fds) const;
    // Have all of that name dropped.
    Result<void> remove_stored(const std::string &name) const;
};

} // namespace sluice
