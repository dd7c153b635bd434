// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/admin_server.hpp"

#include <iterator>
#include <list>
#include <map>
#include <string>
#include <utility>

#include <libsoup/soup.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "remote/proxyd/admin/metrics.hpp"
#include "remote/proxyd/admin/refusal.hpp"
#include "remote/proxyd/admin/respond.hpp"
#include "remote/proxyd/admin/routes.hpp"
#include "remote/proxyd/admin/status_json.hpp"
#include "util/glib/owners.hpp"

namespace sluice::proxyd {
namespace {

bool always_permitted(const Peer &peer)
{
    return peer.is_unix() && peer.credentials && (peer.credentials->uid == 0 || peer.credentials->uid == geteuid());
}

GObjectPtr<GSocketAddress> some_address()
{
    return GObjectPtr<GSocketAddress>(g_inet_socket_address_new_from_string("127.0.0.1", 80));
}

Route route_of(SoupServerMessage *message)
{
    return find_route(soup_server_message_get_method(message), g_uri_get_path(soup_server_message_get_uri(message)));
}

} // namespace

class AdminServer::Impl {
public:
    Impl(Loop loop, std::vector<Listener> listeners, Permit permit, Control &control, AdminLimits limits);
    Impl(const Impl &) = delete;
    Impl &operator=(const Impl &) = delete;
    ~Impl();

    void set_permit(Permit permit) { permit_ = std::move(permit); }
    void resource_freed();
    unsigned clients() const noexcept { return static_cast<unsigned>(clients_.size() + refusals_.size()); }
    std::vector<SocketAddress> addresses() const;

private:
    // A connection. libsoup owns it, and when it lets go of it the client ends.
    struct Client {
        enum class Phase { reading, waiting, writing };

        Impl *server = nullptr;
        Phase phase = Phase::reading;
        bool paused = false;
        size_t body_bytes = 0;
        GObject *connection = nullptr; // libsoup's
        GObjectPtr<GSocket> socket;
        GObjectPtr<GSocketAddress> tag;      // the address that libsoup takes for its peer's
        GObjectPtr<SoupServerMessage> asked; // while Control has not answered
        Timeout deadline;

        void cut() { g_socket_shutdown(socket.get(), TRUE, TRUE, nullptr); }
    };
    // Shared with those who wait for an answer of Control, weakly: it may come when the client has gone.
    using ClientPtr = std::shared_ptr<Client>;

    bool reserve();
    void free_place();
    void accept(UniqueFd fd, const SocketAddress &address);
    void serve(UniqueFd fd, const SocketAddress &address);
    bool lets_in(int fd, const SocketAddress &address) const;
    static void on_gone(gpointer client, GObject *);
    ClientPtr client_of(SoupServerMessage *message) const;

    void got_headers(SoupServerMessage *message);
    void got_chunk(SoupServerMessage *message, size_t bytes);
    void got_request(SoupServerMessage *message, bool with_connections);
    void ask(const ClientPtr &client, const Route &route, bool with_connections);
    template <class Respond>
    static void answer(const std::weak_ptr<Client> &asking, Respond &&respond_to);
    void deadline_passed(Client &client);

    Loop loop_;
    Permit permit_;
    Control &control_;
    AdminLimits limits_;
    unsigned places_ = 0; // reserved or taken
    GObjectPtr<SoupServer> server_;
    std::map<GSocketAddress *, ClientPtr> clients_;
    std::list<std::unique_ptr<Refusal>> refusals_;
    std::vector<std::unique_ptr<Acceptor>> acceptors_;
};

AdminServer::Impl::Impl(Loop loop, std::vector<Listener> listeners, Permit permit, Control &control, AdminLimits limits)
    : loop_(std::move(loop)), permit_(std::move(permit)), control_(control), limits_(limits),
      // a path is taken apart before it is unescaped
      server_(static_cast<SoupServer *>(g_object_new(SOUP_TYPE_SERVER, "raw-paths", TRUE, nullptr)))
{
    soup_server_add_early_handler(
        server_.get(), nullptr,
        [](SoupServer *, SoupServerMessage *message, const char *, GHashTable *, gpointer self) {
            static_cast<Impl *>(self)->got_headers(message);
        },
        this, nullptr);
    soup_server_add_handler(
        server_.get(), nullptr,
        [](SoupServer *, SoupServerMessage *message, const char *, GHashTable *query, gpointer self) {
            const void *connections = query ? g_hash_table_lookup(query, "connections") : nullptr;
            static_cast<Impl *>(self)->got_request(message, g_strcmp0(static_cast<const char *>(connections), "no"));
        },
        this, nullptr);
    for (Listener &listener : listeners) {
        Acceptor::Callbacks callbacks;
        callbacks.reserve = [this] { return reserve(); };
        callbacks.unreserve = [this] { --places_; };
        callbacks.accepted = [this](UniqueFd fd, const SocketAddress &address) { accept(std::move(fd), address); };
        acceptors_.push_back(std::make_unique<Acceptor>(loop_, std::move(listener), std::move(callbacks)));
    }
}

AdminServer::Impl::~Impl()
{
    acceptors_.clear();
    for (auto &[tag, client] : clients_)
        g_object_weak_unref(client->connection, on_gone, client.get());
    clients_.clear();
    soup_server_disconnect(server_.get());
}

void AdminServer::Impl::resource_freed()
{
    for (auto &acceptor : acceptors_)
        acceptor->resource_freed();
}

std::vector<SocketAddress> AdminServer::Impl::addresses() const
{
    std::vector<SocketAddress> all;
    for (const auto &acceptor : acceptors_) {
        for (const SocketAddress &address : acceptor->listener().addresses())
            all.push_back(address);
    }
    return all;
}

bool AdminServer::Impl::reserve()
{
    if (places_ >= limits_.clients)
        return false;
    ++places_;
    return true;
}

void AdminServer::Impl::free_place()
{
    --places_;
    for (auto &acceptor : acceptors_)
        acceptor->release();
}

bool AdminServer::Impl::lets_in(int fd, const SocketAddress &address) const
{
    Peer peer = peer_of(fd, address);
    if (always_permitted(peer))
        return true;
    // without its groups a peer cannot be judged
    return permit_ && load_groups(fd, peer) && permit_(peer);
}

void AdminServer::Impl::accept(UniqueFd fd, const SocketAddress &address)
{
    if (lets_in(fd.get(), address))
        return serve(std::move(fd), address);
    if (refusals_.size() >= limits_.refused_clients)
        return free_place();
    refusals_.emplace_back();
    refusals_.back() =
        std::make_unique<Refusal>(loop_, std::move(fd), limits_.request, [this, at = std::prev(refusals_.end())] {
            refusals_.erase(at);
            free_place();
        });
}

void AdminServer::Impl::serve(UniqueFd fd, const SocketAddress &address)
{
    if (address.family() != AF_UNIX) {
        const int on = 1;
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    GError *raw = nullptr;
    GObjectPtr<GSocket> socket(g_socket_new_from_fd(fd.get(), &raw));
    if (!socket) {
        GErrorPtr error(raw);
        return free_place();
    }
    fd.release(); // the socket has it
    GObjectPtr<GSocketConnection> connection(g_socket_connection_factory_create_connection(socket.get()));
    auto client = std::make_shared<Client>();
    client->server = this;
    client->connection = G_OBJECT(connection.get());
    client->socket = std::move(socket);
    client->tag = some_address();
    client->deadline = loop_.every(limits_.request, [this, of = client.get()] { deadline_passed(*of); });
    clients_.emplace(client->tag.get(), client);
    g_object_weak_ref(client->connection, on_gone, client.get());
    // It asks for an internet address where a request of HTTP/1.0 names no host, whatever
    // the socket is. The connection is closed after one request, since libsoup keeps alive
    // only those that it has accepted itself.
    soup_server_accept_iostream(server_.get(), G_IO_STREAM(connection.get()), some_address().get(), client->tag.get(),
                                nullptr);
}

void AdminServer::Impl::on_gone(gpointer data, GObject *)
{
    auto *client = static_cast<Client *>(data);
    Impl &self = *client->server;
    self.clients_.erase(client->tag.get());
    self.free_place();
}

AdminServer::Impl::ClientPtr AdminServer::Impl::client_of(SoupServerMessage *message) const
{
    auto found = clients_.find(soup_server_message_get_remote_address(message));
    return found == clients_.end() ? nullptr : found->second;
}

// What is refused is refused before there is a body; libsoup sends the answer when it has read the body.
void AdminServer::Impl::got_headers(SoupServerMessage *message)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(message);
    soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
    g_signal_connect(message, "got-chunk", G_CALLBACK(+[](SoupServerMessage *of, GBytes *chunk, gpointer self) {
                         static_cast<Impl *>(self)->got_chunk(of, g_bytes_get_size(chunk));
                     }),
                     this);
    soup_message_headers_remove(headers, "Range"); // libsoup would make parts of our answers

    if (soup_message_headers_get_one(headers, "Origin"))
        return respond_error(message, SOUP_STATUS_FORBIDDEN, "requests of web pages are refused");
    const Route route = route_of(message);
    if (route.kind == Route::Kind::not_found)
        return respond_error(message, SOUP_STATUS_NOT_FOUND, "no such path; GET / lists what there is");
    if (route.kind == Route::Kind::wrong_method) {
        respond_error(message, SOUP_STATUS_METHOD_NOT_ALLOWED, std::string("allowed here: ") + route.allow);
        return soup_message_headers_replace(soup_server_message_get_response_headers(message), "Allow", route.allow);
    }
    // libsoup is lenient with chunks that are none
    if (soup_message_headers_get_one(headers, "Transfer-Encoding"))
        return respond_error(message, SOUP_STATUS_LENGTH_REQUIRED, "no request needs a body that comes in chunks");
    if (soup_message_headers_get_content_length(headers) > static_cast<goffset>(limits_.body_bytes))
        respond_error(message, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, "no request needs so large a body");
}

void AdminServer::Impl::got_chunk(SoupServerMessage *message, size_t bytes)
{
    ClientPtr client = client_of(message);
    if (!client)
        return;
    client->body_bytes += bytes;
    // some more than may be, so that its sender comes to read why it is refused
    if (client->body_bytes > 16 * limits_.body_bytes)
        client->cut();
}

void AdminServer::Impl::got_request(SoupServerMessage *message, bool with_connections)
{
    ClientPtr client = client_of(message);
    if (!client)
        return respond_error(message, SOUP_STATUS_INTERNAL_SERVER_ERROR, "the connection is gone");
    client->phase = Client::Phase::waiting;
    client->deadline.update(limits_.answer);
    client->asked = share_object(message);
    ask(client, route_of(message), with_connections);
    if (client->asked) {
        client->paused = true;
        soup_server_message_pause(message);
    }
}

void AdminServer::Impl::ask(const ClientPtr &client, const Route &route, bool with_connections)
{
    using Kind = Route::Kind;
    std::weak_ptr<Client> asking = client;
    switch (route.kind) {
    case Kind::metrics:
        return control_.snapshot(false, [asking](DaemonStatus status) {
            answer(asking, [&](SoupServerMessage *to) {
                respond(to, SOUP_STATUS_OK, metrics_content_type, to_metrics(status));
            });
        });
    case Kind::status:
        return control_.snapshot(with_connections, [asking, with_connections](DaemonStatus status) {
            answer(asking, [&](SoupServerMessage *to) {
                respond(to, SOUP_STATUS_OK, json_type, to_json(status, with_connections));
            });
        });
    case Kind::drain: {
        auto result = control_.drain(route.service);
        return answer(asking,
                      [&](SoupServerMessage *to) { respond_done(to, result, "drain", "service", route.service); });
    }
    case Kind::resume: {
        auto result = control_.resume(route.service);
        return answer(asking,
                      [&](SoupServerMessage *to) { respond_done(to, result, "resume", "service", route.service); });
    }
    case Kind::close:
        return control_.close_connection(route.connection, [asking, id = route.connection](Result<void> result) {
            answer(asking, [&](SoupServerMessage *to) { respond_done(to, result, "close", "connection", id); });
        });
    case Kind::index:
        return answer(asking, [](SoupServerMessage *to) { respond(to, SOUP_STATUS_OK, text_type, index_text()); });
    case Kind::not_found:
    case Kind::wrong_method:
        break;
    }
    answer(asking, [](SoupServerMessage *to) { respond_error(to, SOUP_STATUS_NOT_FOUND, "no such path"); });
}

template <class Respond>
void AdminServer::Impl::answer(const std::weak_ptr<Client> &asking, Respond &&respond_to)
{
    ClientPtr client = asking.lock();
    if (!client || !client->asked)
        return;
    GObjectPtr<SoupServerMessage> message = std::move(client->asked);
    client->phase = Client::Phase::writing;
    client->deadline.update(client->server->limits_.answer);
    respond_to(message.get());
    if (std::exchange(client->paused, false))
        soup_server_message_unpause(message.get());
}

void AdminServer::Impl::deadline_passed(Client &client)
{
    ClientPtr keep = clients_.at(client.tag.get());
    if (client.phase == Client::Phase::waiting)
        return answer(keep, [](SoupServerMessage *to) {
            respond_error(to, SOUP_STATUS_SERVICE_UNAVAILABLE, "the daemon has not answered in time");
        });
    client.deadline.park();
    client.cut();
}

AdminServer::AdminServer(Loop loop, std::vector<Listener> listeners, Permit permit, Control &control,
                         AdminLimits limits)
    : impl_(std::make_unique<Impl>(std::move(loop), std::move(listeners), std::move(permit), control, limits))
{}
AdminServer::~AdminServer() = default;
void AdminServer::set_permit(Permit permit)
{
    impl_->set_permit(std::move(permit));
}
void AdminServer::resource_freed()
{
    impl_->resource_freed();
}
unsigned AdminServer::clients() const noexcept
{
    return impl_->clients();
}
std::vector<SocketAddress> AdminServer::addresses() const
{
    return impl_->addresses();
}

} // namespace sluice::proxyd
