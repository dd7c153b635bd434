// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/admin_client.hpp"

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>

#include <gio/gunixsocketaddress.h>
#include <libsoup/soup.h>
#include <unistd.h>

#include <sluice/version.h>

#include "config.h"
#include "remote/cli/json.hpp"
#include "util/base/parse.hpp"
#include "util/glib/owners.hpp"
#include "util/net/address.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

Result<GObjectPtr<GSocketConnectable>> connectable(const Address &address)
{
    GSocketConnectable *made = nullptr;
    if (const auto *path = std::get_if<UnixPath>(&address)) {
        made = G_SOCKET_CONNECTABLE(g_unix_socket_address_new(path->path.c_str()));
    } else if (const auto *name = std::get_if<UnixAbstract>(&address)) {
        made = G_SOCKET_CONNECTABLE(g_unix_socket_address_new_with_type(
            name->name.data(), static_cast<int>(name->name.size()), G_UNIX_SOCKET_ADDRESS_ABSTRACT));
    } else if (const auto *tcp = std::get_if<TcpAddress>(&address)) {
        auto port = parse_number<uint16_t>(tcp->service);
        if (!port)
            return fail(EINVAL, format(_("{}: the port of an admin socket is a number"), to_string(address)));
        made = G_SOCKET_CONNECTABLE(g_network_address_new(tcp->host.c_str(), *port));
    } else {
        return fail(EINVAL, format(_("{}: an admin socket is unix or tcp"), to_string(address)));
    }
    return GObjectPtr<GSocketConnectable>(made);
}

Error explain(const GError &error, const std::string &address, bool timed_out)
{
    if (timed_out)
        return {ETIMEDOUT, format(_("{}: no answer within {} s"), address, AdminClient::timeout.count())};
    if (error.domain == G_IO_ERROR) {
        switch (error.code) {
        case G_IO_ERROR_NOT_FOUND:
            return {ENOENT, format(_("{}: there is no such socket; does sluiced run, with an [admin] section in its "
                                     "configuration? --admin says where else to look"),
                                   address)};
        case G_IO_ERROR_CONNECTION_REFUSED:
            return {ECONNREFUSED, format(_("{}: nobody listens there; does sluiced still run?"), address)};
        case G_IO_ERROR_PERMISSION_DENIED:
            return {EACCES,
                    format(_("{}: permission denied; the socket's mode and folder say who may connect"), address)};
        case G_IO_ERROR_CONNECTION_CLOSED:
        case G_IO_ERROR_PARTIAL_INPUT:
            return {ECONNRESET, format(_("{}: the connection was closed before there was an answer"), address)};
        case G_IO_ERROR_TIMED_OUT:
            return {ETIMEDOUT, format(_("{}: no answer within {} s"), address, AdminClient::timeout.count())};
        case G_IO_ERROR_INVALID_DATA:
            return {EPROTO, format(_("{}: the answer is no HTTP; is this the admin socket?"), address)};
        default:
            break;
        }
    }
    if (error.domain == SOUP_SESSION_ERROR)
        return {EPROTO, format(_("{}: the answer is no HTTP; is this the admin socket?"), address)};
    return {ECONNABORTED, format("{}: {}", address, error.message)};
}

// What an answer that is not 200 says is wrong.
Error refused(unsigned status, const std::string &body, const std::string &address)
{
    std::string why;
    if (auto document = JsonDocument::parse(body))
        why = document->root().text("error");
    if (why.empty())
        return {EPROTO, format(_("{}: HTTP {}; is this the admin socket of sluiced?"), address, status)};
    switch (status) {
    case SOUP_STATUS_FORBIDDEN:
        return {EACCES,
                format(_("{}: not permitted: {}; [admin] in the configuration of sluiced says who may"), address, why)};
    case SOUP_STATUS_NOT_FOUND:
        return {ENOENT, why};
    case SOUP_STATUS_CONFLICT:
        return {EBUSY, why};
    default:
        return {ECONNABORTED, format("{}: {}", address, why)};
    }
}

} // namespace

class AdminClient::Impl {
public:
    Impl(Loop loop, std::string address, GObjectPtr<GSocketConnectable> at)
        : loop_(std::move(loop)), address_(std::move(address)),
          // no proxy: looking for one loads what we do without
          session_(soup_session_new_with_options("remote-connectable", at.get(), "proxy-resolver", nullptr,
                                                 "user-agent", "sluice/" SLUICE_VERSION, "timeout", 0u, nullptr))
    {}
    Impl(const Impl &) = delete;
    Impl &operator=(const Impl &) = delete;
    ~Impl()
    {
        for (Request *request : requests_) {
            request->client = nullptr;
            request->timer.remove();
            g_cancellable_cancel(request->cancel.get());
        }
    }

    void request(const char *method, const std::string &path, Done done)
    {
        auto *request = new Request;
        request->client = this;
        request->done = std::move(done);
        request->cancel.reset(g_cancellable_new());
        // the host's name has no meaning, but there must be one
        request->message.reset(soup_message_new(method, ("http://sluiced" + path).c_str()));
        soup_message_add_flags(request->message.get(), SOUP_MESSAGE_NO_REDIRECT);
        request->timer = loop_.every(timeout, [request] {
            request->timed_out = true;
            request->timer.park();
            g_cancellable_cancel(request->cancel.get());
        });
        requests_.insert(request);
        soup_session_send_async(session_.get(), request->message.get(), G_PRIORITY_DEFAULT, request->cancel.get(),
                                on_sent, request);
    }

    Loop loop_;
    std::string address_;

private:
    struct Request {
        Impl *client;
        Done done;
        GObjectPtr<SoupMessage> message;
        GObjectPtr<GCancellable> cancel;
        GObjectPtr<GInputStream> stream;
        std::string body;
        Timeout timer;
        bool timed_out = false;
    };

    static void on_sent(GObject *session, GAsyncResult *result, gpointer data)
    {
        auto *request = static_cast<Request *>(data);
        GError *raw = nullptr;
        request->stream.reset(soup_session_send_finish(SOUP_SESSION(session), result, &raw));
        if (!request->stream)
            return end(request, GErrorPtr(raw));
        read_on(request);
    }
    static void read_on(Request *request)
    {
        g_input_stream_read_bytes_async(request->stream.get(), 64 << 10, G_PRIORITY_DEFAULT, request->cancel.get(),
                                        on_read, request);
    }
    static void on_read(GObject *stream, GAsyncResult *result, gpointer data)
    {
        auto *request = static_cast<Request *>(data);
        GError *raw = nullptr;
        GBytesPtr bytes(g_input_stream_read_bytes_finish(G_INPUT_STREAM(stream), result, &raw));
        if (!bytes)
            return end(request, GErrorPtr(raw));
        gsize size = 0;
        const auto *text = static_cast<const char *>(g_bytes_get_data(bytes.get(), &size));
        if (size == 0)
            return end(request, nullptr);
        request->body.append(text, size);
        if (request->body.size() > answer_bytes_max)
            return end(request, GErrorPtr(g_error_new_literal(G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "")));
        read_on(request);
    }
    static void end(Request *ended, GErrorPtr error)
    {
        std::unique_ptr<Request> request(ended);
        request->timer.remove();
        Impl *client = request->client;
        if (!client)
            return;
        client->requests_.erase(ended);
        if (error)
            return request->done(tl::unexpected(explain(*error, client->address_, request->timed_out)));
        const unsigned status = soup_message_get_status(request->message.get());
        if (status != SOUP_STATUS_OK)
            return request->done(tl::unexpected(refused(status, request->body, client->address_)));
        request->done(std::move(request->body));
    }

    GObjectPtr<SoupSession> session_;
    std::set<Request *> requests_;
};

std::string default_admin_address()
{
    if (const char *named = std::getenv("SLUICE_ADMIN"); named && *named)
        return named;
    const char *own = std::getenv("XDG_RUNTIME_DIR");
    if (geteuid() != 0 && own && *own == '/') {
        const std::string path = std::string(own) + "/sluiced/admin.sock";
        if (access(path.c_str(), F_OK) == 0)
            return "unix:" + path;
    }
    return "unix:" SLUICE_RUNSTATEDIR "/sluiced/admin.sock";
}

Result<AdminClient> AdminClient::make(Loop loop, const std::string &address)
{
    auto parsed = parse_address(address.empty() ? default_admin_address() : address);
    if (!parsed)
        return tl::unexpected(parsed.error());
    auto at = connectable(*parsed);
    if (!at)
        return tl::unexpected(at.error());
    return AdminClient(std::make_unique<Impl>(std::move(loop), to_string(*parsed), std::move(*at)));
}

AdminClient::AdminClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminClient::AdminClient(AdminClient &&) noexcept = default;
AdminClient &AdminClient::operator=(AdminClient &&) noexcept = default;
AdminClient::~AdminClient() = default;

const std::string &AdminClient::address() const noexcept
{
    return impl_->address_;
}

void AdminClient::request(const char *method, const std::string &path, Done done)
{
    impl_->request(method, path, std::move(done));
}

Result<std::string> AdminClient::fetch(const char *method, const std::string &path)
{
    std::optional<Result<std::string>> answer;
    request(method, path, [&](Result<std::string> body) { answer = std::move(body); });
    while (!answer)
        impl_->loop_.iterate();
    return std::move(*answer);
}

std::string escape_segment(const std::string &text)
{
    GText escaped(g_uri_escape_string(text.c_str(), nullptr, FALSE));
    return escaped.get();
}

} // namespace sluice::cli
