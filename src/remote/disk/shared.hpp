// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the disks of one loop have in common. Made before them, gone after them, used on
// the loop's thread alone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <sluice/event.hpp>

#include "remote/disk/io/io_pool.hpp"

namespace sluice::disk {

// Space for cached bytes that several disks share by the name that their configuration
// gives it. A cache that must make room asks the others, oldest bytes first.
class Budget;

struct Shared {
    explicit Shared(Loop of_loop, unsigned io_threads = 16) : loop(std::move(of_loop)), io(loop, io_threads) {}

    Loop loop;
    IoPool io;
    std::map<std::string, std::shared_ptr<Budget>> budgets; // shared by the caches that name it
    // For what the operator should know and no request can be told; may be empty.
    std::function<void(const std::string &message)> warn;
};

} // namespace sluice::disk
