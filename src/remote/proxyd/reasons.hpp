// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Why a client was turned away, and why a connection ended: for counters, records and
// status pages. The words are part of the interface, sluiced(8) lists them.

#include <array>
#include <cstddef>

namespace sluice::proxyd {

enum class Rejection {
    limit,        // as many connections as there may be
    per_peer,     // as many of this uid or address
    access,       // not allowed in
    proxy_header, // a PROXY header that is none, or did not come in time
    resources,    // no descriptor or memory for it
    count,
};
inline constexpr std::array<const char *, static_cast<size_t>(Rejection::count)> rejection_words{
    "limit", "per-peer", "access", "proxy-header", "resources"};

enum class Closing {
    complete,       // both directions ended and all was delivered
    client_error,   // the client's connection broke
    upstream_error, // the upstream's connection broke
    no_upstream,    // none could be had in time
    client_gone,    // the client left while none was to be had
    idle_timeout,
    fin_timeout,
    descriptors, // descriptors came along that are not passed on
    admin,       // closed by hand
    cut,         // the daemon ended
    count,
};
inline constexpr std::array<const char *, static_cast<size_t>(Closing::count)> closing_words{
    "complete",     "client-error", "upstream-error", "no-upstream", "client-gone",
    "idle-timeout", "fin-timeout",  "descriptors",    "admin",       "cut"};

inline const char *word(Rejection reason)
{
    return rejection_words[static_cast<size_t>(reason)];
}

inline const char *word(Closing reason)
{
    return closing_words[static_cast<size_t>(reason)];
}

} // namespace sluice::proxyd
