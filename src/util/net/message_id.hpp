// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kinds of records that can be looked for by number, `journalctl MESSAGE_ID=...`.
// sluice.catalog explains each to the reader of `journalctl -x`. A number never changes
// its meaning; a new meaning gets a new one.

namespace sluice {

struct MessageId {
    const char *id = ""; // 128 bits in 32 hex digits; empty: a record of no kind
    // Can come as often as clients or upstreams please: see Log about repeats.
    bool repeats = false;
};

namespace message_id {

inline constexpr MessageId none{};
inline constexpr MessageId started{"7422579da42c45b7aa19c17bbce92817"};
inline constexpr MessageId ready{"35249aaf50e246a2ab111c8f6a70bccd"};
inline constexpr MessageId reloaded{"d56fdfe2d73d4b5ab2fd122c4a7cb408"};
inline constexpr MessageId reload_failed{"827e27f2ea9845eb9c83cbabd5e10768"};
inline constexpr MessageId stopping{"9d87e44ec4dc4f9599b7549e0fafbb59"};
inline constexpr MessageId connection_closed{"b551450d670e4b229dde453231b8554d"};
inline constexpr MessageId connection_refused{"ff64739fa6494322bd0f5b338303b977", true};
inline constexpr MessageId connect_failed{"672d8a0bae164b41a15811d81c4f9487", true};
inline constexpr MessageId accept_paused{"25e9605250de4ced8d29210df68b0b04", true};
inline constexpr MessageId accept_recovered{"24148b399e5b4ee1bc215d507b3bb05f", true};
inline constexpr MessageId upstream_down{"38d8929a9ce546679985cf8a5055ddcd", true};
inline constexpr MessageId upstream_up{"053c630766f546d8a58c56d395dc46da", true};
inline constexpr MessageId limit{"2e2ad084d34243798f49cc0cf4fd6eec", true};
inline constexpr MessageId drain_cut{"b8cc9fc79bec43b0b5baefe4b42db6b1"};

} // namespace message_id

} // namespace sluice
