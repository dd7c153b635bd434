// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client of the admin socket that is not let in: told so with 403, whatever it asks.
// Nothing of what it sends is looked into but for the end of its headers, so that the
// HTTP of strangers meets no parser. Bounded in time and bytes. On the loop's thread.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <sluice/event.hpp>

#include "util/base/unique_fd.hpp"

namespace sluice::proxyd {

class Refusal {
public:
    // `fd` is O_NONBLOCK. `done` is called once, at the end, and may destroy the refusal.
    Refusal(Loop &loop, UniqueFd fd, std::chrono::milliseconds timeout, std::function<void()> done);
    Refusal(const Refusal &) = delete;
    Refusal &operator=(const Refusal &) = delete;

private:
    void readable();
    void answer();
    void end();

    UniqueFd fd_;
    std::function<void()> done_;
    std::string head_;
    size_t received_ = 0;
    bool answered_ = false;
    Handle watch_;
    Timeout timer_;
};

} // namespace sluice::proxyd
