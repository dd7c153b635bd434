// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The upstreams of a service and what is known of them: whom to try next, in order or
// in turn, and who is passed over for a while since it failed. Shared by all workers;
// everything is safe from any thread.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "remote/proxyd/admin/status.hpp"
#include "remote/proxyd/config/config.hpp"
#include "util/net/socket_address.hpp"

namespace sluice::proxyd {

class Upstreams {
public:
    Upstreams(const std::vector<Address> &addresses, Balance balance, Health health);

    // Whom one client has tried already.
    struct Turn {
        uint64_t tried = 0;
        size_t first = SIZE_MAX;
    };
    // The next one to try: those that are up before those that are down, each once.
    // nullopt when all were tried.
    std::optional<size_t> next(Turn &turn, int64_t now_usec);

    const Address &address(size_t index) const noexcept { return list_[index].address; }
    const char *name(size_t index) const noexcept { return list_[index].name.c_str(); }
    // Where it is, if that is known without a name server.
    const SocketAddress *direct(size_t index) const noexcept
    {
        return list_[index].direct ? &*list_[index].direct : nullptr;
    }

    // What came of connecting; true if its state has changed by that.
    bool succeeded(size_t index);
    bool failed(size_t index, const std::string &why, int64_t now_usec);
    // A connection to it has begun or ended.
    void opened(size_t index);
    void closed(size_t index);

    std::vector<UpstreamStatus> status() const;

private:
    struct Upstream {
        Address address;
        std::string name;
        std::optional<SocketAddress> direct;
        unsigned failures_in_row = 0;
        int64_t down_until = 0; // passed over until then; 0: up
        std::string last_error;
        uint64_t active = 0, connects = 0, failures = 0;
    };

    std::optional<size_t> next_of(Turn &turn, int64_t now_usec, bool down);

    std::vector<Upstream> list_;
    const Balance balance_;
    const Health health_;
    mutable std::mutex mutex_; // over the states, not the addresses
    size_t round_ = 0;
};

} // namespace sluice::proxyd
