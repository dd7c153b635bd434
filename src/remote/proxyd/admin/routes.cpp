// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/routes.hpp"

#include <optional>
#include <vector>

#include <glib.h>

#include "util/base/parse.hpp"

namespace sluice::proxyd {
namespace {

using Kind = Route::Kind;

// "/services/a%2Fb/drain": services, a/b, drain. Each part is unescaped by itself, so
// that an escaped slash stays within its part.
std::optional<std::vector<std::string>> split(std::string_view path)
{
    std::vector<std::string> parts;
    if (path.empty() || path.front() != '/')
        return std::nullopt;
    path.remove_prefix(1);
    while (!path.empty()) {
        std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(part.size());
        if (part.empty() || path == "/")
            return std::nullopt;
        if (!path.empty())
            path.remove_prefix(1);
        char *plain = g_uri_unescape_segment(part.data(), part.data() + part.size(), nullptr);
        if (!plain)
            return std::nullopt; // a bad escape, or one for a NUL
        parts.emplace_back(plain);
        g_free(plain);
    }
    return parts;
}

Route find_path(const std::vector<std::string> &parts)
{
    if (parts.empty())
        return {.kind = Kind::index};
    if (parts.size() == 1 && parts[0] == "metrics")
        return {.kind = Kind::metrics};
    if (parts.size() == 1 && parts[0] == "status")
        return {.kind = Kind::status};
    if (parts.size() == 3 && parts[0] == "services" && parts[2] == "drain")
        return {.kind = Kind::drain, .service = parts[1]};
    if (parts.size() == 3 && parts[0] == "services" && parts[2] == "resume")
        return {.kind = Kind::resume, .service = parts[1]};
    if (parts.size() == 3 && parts[0] == "connections" && parts[2] == "close") {
        if (auto id = parse_number<uint64_t>(parts[1]))
            return {.kind = Kind::close, .connection = *id};
    }
    return {};
}

} // namespace

Route find_route(std::string_view method, std::string_view path)
{
    auto parts = split(path);
    if (!parts)
        return {};
    Route route = find_path(*parts);
    if (route.kind == Kind::not_found)
        return route;
    bool reads = route.kind == Kind::index || route.kind == Kind::metrics || route.kind == Kind::status;
    bool fits = reads ? method == "GET" || method == "HEAD" : method == "POST";
    if (!fits)
        return {.kind = Kind::wrong_method, .allow = reads ? "GET, HEAD" : "POST"};
    return route;
}

std::string index_text()
{
    return "sluiced\n\n"
           "GET  /metrics                   metrics for Prometheus\n"
           "GET  /status                    all there is to tell, as JSON\n"
           "GET  /status?connections=no     the same without the connections\n"
           "POST /services/NAME/drain       take no more connections\n"
           "POST /services/NAME/resume      take them again\n"
           "POST /connections/ID/close      end a connection\n";
}

} // namespace sluice::proxyd
