// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a request to the admin server asks for, from its method and path alone: the one
// place that knows which paths there are. Nothing is looked up.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxyd {

struct Route {
    enum class Kind { index, metrics, status, drain, resume, close, not_found, wrong_method };
    Kind kind = Kind::not_found;
    std::string service;         // of drain and resume
    uint64_t connection = 0;     // of close
    const char *allow = nullptr; // of wrong_method: the methods that there are
};

// `path` as it was sent, with its percent escapes; the query is not part of it.
Route find_route(std::string_view method, std::string_view path);

// For GET /: what there is.
std::string index_text();

} // namespace sluice::proxyd
