// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/upstreams.hpp"

#include <algorithm>

#include "util/base/printable.hpp"
#include "util/net/resolve.hpp"

namespace sluice::proxyd {
namespace {

std::optional<SocketAddress> direct_address(const Address &address)
{
    if (const auto *path = std::get_if<UnixPath>(&address))
        return to_socket_address(*path);
    if (const auto *abstract = std::get_if<UnixAbstract>(&address))
        return to_socket_address(*abstract);
    if (const auto *vsock = std::get_if<VsockAddress>(&address))
        return to_socket_address(*vsock);
    return numeric_address(std::get<TcpAddress>(address));
}

} // namespace

Upstreams::Upstreams(const std::vector<Address> &addresses, Balance balance, Health health)
    : balance_(balance), health_(health)
{
    for (const Address &address : addresses) {
        Upstream &one = list_.emplace_back();
        one.address = address;
        one.name = printable(to_string(address));
        one.direct = direct_address(address);
    }
}

std::optional<size_t> Upstreams::next(Turn &turn, int64_t now_usec)
{
    std::lock_guard lock(mutex_);
    if (turn.first == SIZE_MAX)
        turn.first = balance_ == Balance::round_robin ? round_++ % list_.size() : 0;
    auto found = next_of(turn, now_usec, false);
    return found ? found : next_of(turn, now_usec, true);
}

std::optional<size_t> Upstreams::next_of(Turn &turn, int64_t now_usec, bool down)
{
    for (size_t step = 0; step < list_.size(); ++step) {
        size_t index = (turn.first + step) % list_.size();
        uint64_t bit = uint64_t{1} << index;
        if ((turn.tried & bit) != 0 || (list_[index].down_until > now_usec) != down)
            continue;
        turn.tried |= bit;
        return index;
    }
    return std::nullopt;
}

bool Upstreams::succeeded(size_t index)
{
    std::lock_guard lock(mutex_);
    Upstream &one = list_[index];
    ++one.connects;
    one.failures_in_row = 0;
    bool was_down = one.down_until != 0;
    one.down_until = 0;
    return was_down;
}

bool Upstreams::failed(size_t index, const std::string &why, int64_t now_usec)
{
    std::lock_guard lock(mutex_);
    Upstream &one = list_[index];
    ++one.failures;
    ++one.failures_in_row;
    one.last_error = why;
    if (one.failures_in_row < std::max(health_.failures, 1u))
        return false;
    bool was_up = one.down_until == 0;
    one.down_until = now_usec + std::max<int64_t>(health_.retry_after.count(), 1);
    return was_up;
}

void Upstreams::opened(size_t index)
{
    std::lock_guard lock(mutex_);
    ++list_[index].active;
}

void Upstreams::closed(size_t index)
{
    std::lock_guard lock(mutex_);
    --list_[index].active;
}

std::vector<UpstreamStatus> Upstreams::status() const
{
    std::lock_guard lock(mutex_);
    std::vector<UpstreamStatus> result;
    for (const Upstream &one : list_) {
        UpstreamStatus &status = result.emplace_back();
        status.address = one.name;
        status.state = one.down_until == 0 ? "up" : "down";
        status.last_error = one.last_error;
        status.active = one.active;
        status.connects = one.connects;
        status.failures = one.failures;
    }
    return result;
}

} // namespace sluice::proxyd
