// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers of the admin server, filled into a message of libsoup that is then sent.
// What goes wrong is {"error": "..."}, and what was done {"done": "drain", ...}. Not
// translated: who asks may have another language than the daemon.

#include <string>
#include <string_view>

#include <libsoup/soup.h>

#include "remote/proxyd/admin/json_writer.hpp"
#include "util/base/result.hpp"

namespace sluice::proxyd {

inline constexpr const char *json_type = "application/json";
inline constexpr const char *text_type = "text/plain; charset=utf-8";

void respond(SoupServerMessage *message, unsigned code, const char *type, std::string body);
void respond_error(SoupServerMessage *message, unsigned code, std::string_view why);
// 404 for ENOENT, 409 for EBUSY and EALREADY, else 500.
void respond_failure(SoupServerMessage *message, const Error &error);

// What came of an order: `field` and `value` name what it was for.
template <class Value>
void respond_done(SoupServerMessage *message, const Result<void> &result, const char *order, const char *field,
                  const Value &value)
{
    if (!result)
        return respond_failure(message, result.error());
    JsonWriter json;
    json.open('{');
    json.field("done", order);
    json.field(field, value);
    json.close('}');
    respond(message, SOUP_STATUS_OK, json_type, json.take() + '\n');
}

} // namespace sluice::proxyd
