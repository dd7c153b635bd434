// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a source or a layer is told: `KEY=VALUE` in any order, from the command line
// ("cache,file=/var/x,size=10G") or from a table of the configuration, read the same way.
// A comma in a value is written twice. Whoever reads takes what it knows; finish() then
// reports everything that was wrong, unknown keys with the one that may have been meant.
//
//     OptionReader reader(options, "cache");
//     config.file = reader.text("file", "");
//     config.size = reader.size("size", 1 << 30);
//     if (auto ok = reader.finish(); !ok)
//         return tl::unexpected(ok.error());

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/base/result.hpp"

namespace sluice::disk {

// In the order in which they were written; a key may come more than once where it says so.
using Options = std::vector<std::pair<std::string, std::string>>;

struct Spec {
    std::string name; // of the layer, or the URI of the source
    Options options;
    bool operator==(const Spec &) const = default;
};

// "NAME,KEY=VALUE,..."; `KEY` alone is `KEY=yes`. EINVAL says what is wrong.
Result<Spec> parse_spec(std::string_view text);
// The form that parse_spec() takes.
std::string to_string(const Spec &spec);

struct PipelineSpec {
    Spec source;              // "nbd://host/export", "https://...", "file:/path", or a path
    std::vector<Spec> layers; // outermost (nearest to the client) first
    bool operator==(const PipelineSpec &) const = default;
};

class OptionReader {
public:
    OptionReader(const Options &options, std::string what) : options_(options), what_(std::move(what)) {}

    std::string text(const char *key, std::string fallback);
    std::vector<std::string> texts(const char *key); // every time it was written
    uint64_t number(const char *key, uint64_t fallback, uint64_t min, uint64_t max);
    uint64_t size(const char *key, uint64_t fallback, uint64_t min = 0, uint64_t max = UINT64_MAX); // bytes, K, M, G, T
    bool flag(const char *key, bool fallback);         // yes, no, true, false, on, off, 1, 0
    double fraction(const char *key, double fallback); // "0.25", or "25%"
    std::chrono::microseconds duration(const char *key, std::chrono::microseconds fallback); // "50ms", "1.5s"
    size_t choice(const char *key, size_t fallback, const std::vector<std::string> &words);  // an index

    void problem(const char *key, const std::string &message);
    // EINVAL with all that is wrong, "; " between. Keys that nobody asked for are wrong.
    Result<void> finish();

private:
    const std::string *find(const char *key);

    const Options &options_;
    std::string what_;
    std::vector<std::string> known_;
    std::vector<std::string> problems_;
};

} // namespace sluice::disk
