// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The numbers that a lane goes by, found by measuring.

#include <cstddef>
#include <cstdint>

namespace sluice::relay {

// One read while copying: enough for a 64 KiB pipe, and few pages for small traffic;
// and once reads have been large for a while.
inline constexpr size_t copy_max = 64 << 10;
inline constexpr size_t copy_max_bulk = 256 << 10;
// From a unix socket to TCP, where bulk is copied too: more of it would have left the
// nearest cache again before it is written.
inline constexpr size_t copy_max_dear = 32 << 10;
// From this size on a read counts as large.
inline constexpr size_t large_read = 16 << 10;
// What comes in pieces up to this size is taken for messages with pauses in between.
inline constexpr size_t message_max = 128 << 10;
// This many more large reads than small ones change the mode, and back.
inline constexpr int weight_max = 4;
// After pauses that were too long, at most this many stalls of the sink without one.
inline constexpr int pauses_left_out_max = 255;
// Straight splices in vain, each after a poll, before the lane goes back to copying.
inline constexpr int refusals_max = 8;
// Bytes, and steps, before others get their turn.
inline constexpr uint32_t turn_max_alone = 16 << 20;
inline constexpr uint32_t turn_max_shared = 1 << 20;
inline constexpr int steps_max = 16;

} // namespace sluice::relay
