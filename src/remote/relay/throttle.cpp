// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/relay/throttle.hpp"

#include <algorithm>
#include <utility>

namespace sluice::relay {

Throttle::Throttle(TokenBucket *one, TokenBucket *other, int64_t (*clock)()) noexcept
    : one_(one ? one : other), other_(one ? other : nullptr), clock_(clock)
{}

size_t Throttle::allowed(size_t wanted, const Endpoint &source) noexcept
{
    int64_t now = clock_();
    if (reserved_ == 0) {
        size_t some = std::min(one_->quantum(), other_ ? other_->quantum() : SIZE_MAX);
        size_t at_once = std::min(one_->available(now), other_ ? other_->available(now) : SIZE_MAX);
        reserved_ = std::min(wanted, some);
        bool empty = false; // as far as one can see: then a look at it is free
        if (at_once < reserved_ && source.can_splice_from()) {
            size_t there = source.waiting();
            empty = there == 0;
            reserved_ = std::min(reserved_, std::max<size_t>(there, 1));
        }
        at_ = one_->reserve(reserved_, now);
        if (other_)
            at_ = std::max(at_, other_->reserve(reserved_, now));
        if (empty)
            at_ = now;
    }
    blocked_ = at_ > now;
    return blocked_ ? 0 : std::min(reserved_, wanted);
}

void Throttle::used(size_t bytes) noexcept
{
    reserved_ -= bytes;
    give_back();
}

void Throttle::give_back() noexcept
{
    size_t rest = std::exchange(reserved_, 0);
    if (rest == 0)
        return;
    one_->give_back(rest);
    if (other_)
        other_->give_back(rest);
}

} // namespace sluice::relay
