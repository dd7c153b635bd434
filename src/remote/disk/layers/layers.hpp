// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The layers by name. Each opens over `below`, which it owns from then on, whether it
// succeeds or not; sluice-disk(1) explains their keys.

#include <memory>
#include <string>
#include <vector>

#include <sluice/event.hpp>

#include "remote/disk/block.hpp"
#include "remote/disk/options.hpp"
#include "remote/disk/shared.hpp"

namespace sluice::disk {

using OpenLayer = Task<Result<std::unique_ptr<Block>>>(Loop loop, Options options, std::unique_ptr<Block> below,
                                                       Shared *shared);

OpenLayer open_cow;       // cow/
OpenLayer open_cache;     // cache/
OpenLayer open_readahead; // the rest are here, in layers/
OpenLayer open_delay;
OpenLayer open_retry;
OpenLayer open_fault;
OpenLayer open_readonly;

const std::vector<std::string> &cow_keys();
const std::vector<std::string> &cache_keys();
const std::vector<std::string> &readahead_keys();
const std::vector<std::string> &delay_keys();
const std::vector<std::string> &retry_keys();
const std::vector<std::string> &fault_keys();
const std::vector<std::string> &readonly_keys();

} // namespace sluice::disk
