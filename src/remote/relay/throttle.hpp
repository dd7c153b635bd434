// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a lane may take under its rates. It reserves a little at a time in each bucket,
// no more than waits in the source where that could keep others waiting, and gives back
// what the source did not have.

#include <cstddef>
#include <cstdint>

#include "remote/relay/endpoint.hpp"
#include "util/base/token_bucket.hpp"

namespace sluice::relay {

class Throttle {
public:
    // Either bucket may be nullptr.
    Throttle(TokenBucket *one, TokenBucket *other, int64_t (*clock)()) noexcept;
    Throttle(const Throttle &) = delete;
    Throttle &operator=(const Throttle &) = delete;
    ~Throttle() { give_back(); }

    // How much of `wanted` may be taken from the source now; 0: none before until().
    size_t allowed(size_t wanted, const Endpoint &source) noexcept;
    // So much of it was taken.
    void used(size_t bytes) noexcept;
    // INT64_MAX: what is allowed has not been asked for, or was more than nothing.
    int64_t until() const noexcept { return blocked_ ? at_ : INT64_MAX; }

private:
    void give_back() noexcept;

    TokenBucket *const one_, *const other_;
    int64_t (*const clock_)();
    size_t reserved_ = 0;
    int64_t at_ = 0; // when it may go
    bool blocked_ = false;
};

} // namespace sluice::relay
