// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/respond.hpp"

#include <cerrno>

#include "util/glib/owners.hpp"

namespace sluice::proxyd {

void respond(SoupServerMessage *message, unsigned code, const char *type, std::string body)
{
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);
    soup_message_headers_replace(headers, "Connection", "close");
    soup_message_headers_replace(headers, "Cache-Control", "no-store");
    soup_message_headers_replace(headers, "X-Content-Type-Options", "nosniff");
    soup_message_headers_replace(headers, "Content-Type", type);
    soup_server_message_set_status(message, code, nullptr);
    // the text moves into the message: it can be megabytes
    auto *text = new std::string(std::move(body));
    GBytesPtr bytes(g_bytes_new_with_free_func(
        text->data(), text->size(), [](gpointer data) { delete static_cast<std::string *>(data); }, text));
    soup_message_body_append_bytes(soup_server_message_get_response_body(message), bytes.get());
}

void respond_error(SoupServerMessage *message, unsigned code, std::string_view why)
{
    JsonWriter json;
    json.open('{');
    json.field("error", why);
    json.close('}');
    respond(message, code, json_type, json.take() + '\n');
}

void respond_failure(SoupServerMessage *message, const Error &error)
{
    switch (error.code) {
    case ENOENT:
        return respond_error(message, SOUP_STATUS_NOT_FOUND, error.message);
    case EBUSY:
    case EALREADY:
        return respond_error(message, SOUP_STATUS_CONFLICT, error.message);
    default:
        return respond_error(message, SOUP_STATUS_INTERNAL_SERVER_ERROR, error.message);
    }
}

} // namespace sluice::proxyd
