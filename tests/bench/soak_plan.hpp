// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One conversation of the soak, as it is meant to go: how much each end sends, in what
// pieces and pauses, and how it ends. Everything follows from the seed and the number of
// the conversation.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

namespace sluice::bench {

enum class Ending {
    both,          // each end half-closes when it has sent everything
    client_first,  // the server begins to answer when it has seen the client's end
    server_first,  // the client begins when it has seen the server's
    client_closes, // the client sends everything and closes; nothing comes back
    server_closes, // the server closes as soon as it has received and sent everything
    client_resets, // somewhere in the middle
    server_resets,
    client_leaves, // closes somewhere in the middle, whatever is still on its way to it
    says_nothing,  // connects, and closes
    count,
};

inline const char *name_of(Ending ending)
{
    static constexpr const char *names[] = {
        "both half-close",    "client half-closes first", "server half-closes first", "client closes",
        "server closes",      "client resets midway",     "server resets midway",     "client leaves midway",
        "client says nothing"};
    return names[size_t(ending)];
}

// Some bytes are lost by design.
inline bool is_cut(Ending ending)
{
    return ending == Ending::client_resets || ending == Ending::server_resets || ending == Ending::client_leaves;
}

// One direction of one end.
struct Flow {
    size_t chunk_max = 65536;
    bool vary = false;          // between 1 and that
    uint64_t stall_at[2] = {};  // after so many bytes ...
    int64_t stall_usec[2] = {}; // ... it stands still for so long; 0 for not at all
};

struct Plan {
    uint64_t id = 0;
    Ending ending = Ending::both;
    uint64_t up = 0; // bytes from the client, the eight of its number included
    uint64_t down = 0;
    uint64_t cut_at = 0;  // what the end that cuts has sent and received by then
    int buffer_bytes = 0; // of the sockets at both ends; 0 leaves the system's
    Flow client_sends, client_receives, server_sends, server_receives;

    static constexpr uint64_t header_bytes = 8;

    static Plan random(uint64_t seed, uint64_t id, uint64_t bytes_max);
    std::string text() const
    {
        return fmt::format("{}, {} bytes up, {} down, buffers {}, pieces {}/{} and {}/{}", name_of(ending), up, down,
                           buffer_bytes, client_sends.chunk_max, server_receives.chunk_max, server_sends.chunk_max,
                           client_receives.chunk_max);
    }
};

inline Plan Plan::random(uint64_t seed, uint64_t id, uint64_t bytes_max)
{
    std::mt19937_64 random(seed * 0x9e3779b97f4a7c15U + id);
    const auto below = [&](uint64_t limit) { return random() % limit; };
    // every order of magnitude as often as the next
    const auto spread = [&](uint64_t low, uint64_t high) {
        const double part = double(below(1 << 20)) / double(1 << 20);
        return uint64_t(double(low) * std::pow(double(high) / double(low), part));
    };
    const auto size = [&] { return below(8) == 0 ? 0 : spread(1, bytes_max); };

    Plan plan;
    plan.id = id;
    plan.ending = Ending(below(size_t(Ending::count)));
    plan.up = header_bytes + size();
    plan.down = plan.ending == Ending::client_closes ? 0 : size();
    if (is_cut(plan.ending))
        plan.cut_at = header_bytes + below(plan.up - header_bytes + plan.down + 1) / 2;
    // small ones make TCP slow, up to 200 ms for each window; not with many bytes, then
    if (below(4) == 0)
        plan.buffer_bytes = int(spread(4096 + (plan.up + plan.down) / 64, 1 << 20));

    const auto flow = [&](uint64_t bytes) {
        Flow result;
        // not so small that one conversation takes all day
        result.chunk_max = size_t(spread(1 + bytes / 4000, 262144));
        result.vary = below(2) == 0;
        for (int i = 0; i < 2; ++i) {
            if (below(3) != 0)
                continue;
            result.stall_at[i] = below(bytes + 1);
            result.stall_usec[i] = int64_t(spread(100, 1'500'000));
        }
        return result;
    };
    plan.client_sends = flow(plan.up);
    plan.server_receives = flow(plan.up);
    plan.server_sends = flow(plan.down);
    plan.client_receives = flow(plan.down);
    return plan;
}

} // namespace sluice::bench
