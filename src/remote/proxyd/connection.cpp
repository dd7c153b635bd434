// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/connection.hpp"

#include <cerrno>
#include <cstring>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "remote/proxyd/worker.hpp"
#include "util/async/ready.hpp"
#include "util/base/clock.hpp"
#include "util/net/connect.hpp"
#include "util/net/format.hpp"
#include "util/net/keepalive.hpp"
#include "util/net/proxy_protocol.hpp"

namespace sluice::proxyd {
namespace {

constexpr char client_end[] = "client";
constexpr char upstream_end[] = "upstream";

// A peer that was cut off by a reset must not look to the other side as one that has
// ended well. Where all that was sent has been acknowledged, hand the reset on: else the
// reset would take back what is still under way.
void pass_on_reset(int fd)
{
    int domain = 0, unsent = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || (domain != AF_INET && domain != AF_INET6))
        return;
    if (ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent > 0)
        return;
    linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

Closing closing_of(const relay::Outcome &outcome)
{
    switch (outcome.kind) {
    case relay::Outcome::Kind::complete:
        return Closing::complete;
    case relay::Outcome::Kind::idle_timeout:
        return Closing::idle_timeout;
    case relay::Outcome::Kind::fin_timeout:
        return Closing::fin_timeout;
    case relay::Outcome::Kind::failed:
        break;
    }
    if (outcome.met_descriptors)
        return Closing::descriptors;
    return outcome.at == std::string_view(client_end) ? Closing::client_error : Closing::upstream_error;
}

std::string explain(const relay::Outcome &outcome)
{
    std::string text;
    if (outcome.met_descriptors)
        text = _("file descriptors came along, and pass-fds does not let them through");
    else if (outcome.kind == relay::Outcome::Kind::failed)
        text = std::strerror(outcome.error);
    if (outcome.undelivered > 0)
        text += format(_("{}{} bytes were not delivered"), text.empty() ? "" : "; ", outcome.undelivered);
    return text;
}

relay::Descriptors descriptors_of(PassFds pass)
{
    switch (pass) {
    case PassFds::refuse:
        return relay::Descriptors::refuse;
    case PassFds::pass:
        return relay::Descriptors::pass;
    case PassFds::detect:
        break;
    }
    return relay::Descriptors::detect;
}

std::unique_ptr<TokenBucket> own_rate(uint64_t rate)
{
    return rate == 0 ? nullptr : std::make_unique<TokenBucket>(rate);
}

// For want of something of our own, which says nothing about the upstream.
bool is_local_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

} // namespace

Connection::Connection(Worker &worker, std::shared_ptr<Service> service, std::shared_ptr<const Settings> settings,
                       UniqueFd client, const SocketAddress &address)
    : worker_(worker), id_(worker.shared().next_connection_id++), service_(std::move(service)),
      settings_(std::move(settings)), peer_(peer_of(client.get(), address)), client_is_unix_(peer_.is_unix()),
      client_(std::move(client)), client_fd_(client_.get()), accepted_usec_(monotonic_usec())
{}

Connection::~Connection() = default;

void Connection::start()
{
    if (expects_header()) {
        state_ = State::header;
        task_.emplace(begin_with_header());
        task_->start();
    } else {
        admit_and_connect();
    }
}

bool Connection::expects_header() const
{
    const auto &from = settings_->config.accept_proxy;
    return from && from->names(peer_);
}

void Connection::admit_and_connect()
{
    if (settings_->config.access.needs_groups() && !claimed_destination_ && !load_groups(client_fd_, peer_))
        return refuse(Rejection::access, _("its groups cannot be found out"));
    if (auto rejection = service_->enter(peer_, *settings_))
        return refuse(*rejection);
    entered_ = true;
    service_->count_accepted();
    state_ = State::connecting;
    if (try_at_once())
        return;
    watch_client();
    // the task that has read the header is this function's caller and goes on with it
    if (task_)
        return;
    task_.emplace(find_upstream());
    task_->start();
}

// --- the PROXY header -------------------------------------------------------------------

Task<void> Connection::begin_with_header()
{
    auto read = co_await read_header();
    if (!read) {
        refuse(Rejection::proxy_header, read.error().message);
        co_return;
    }
    admit_and_connect();
    if (state_ == State::connecting)
        co_await find_upstream();
}

Task<Result<void>> Connection::read_header()
{
    ProxyHeaderReader reader;
    char bytes[ProxyHeaderReader::peek_bytes];
    int64_t deadline = deadline_after(settings_->config.timeouts.header.count(), accepted_usec_);
    while (!reader.done()) {
        ssize_t n = recv(client_fd_, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
        if (n == 0)
            co_return fail(EPROTO, _("it ended before its PROXY header was complete"));
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            co_return fail_errno(errno, "recv");
        if (n < 0) {
            int events = co_await ReadyBefore(worker_.loop(), client_fd_, SLUICE_EVENT_READABLE, deadline);
            if (events == 0)
                co_return fail(ETIMEDOUT, _("its PROXY header did not come in time"));
            continue;
        }
        auto ours = reader.feed({bytes, static_cast<size_t>(n)});
        if (!ours)
            co_return tl::unexpected(ours.error());
        recv(client_fd_, bytes, *ours, MSG_DONTWAIT);
    }
    const ProxyHeader &header = reader.header();
    if (header.kind != ProxyHeader::Kind::proxied)
        co_return Result<void>{};
    peer_.address = header.source;
    peer_.credentials = header.credentials;
    claimed_destination_ = std::make_unique<SocketAddress>(header.destination);
    co_return Result<void>{};
}

std::string Connection::preface() const
{
    ProxyProtocol version = settings_->config.send_proxy;
    if (version == ProxyProtocol::none)
        return {};
    SocketAddress to = claimed_destination_ ? *claimed_destination_ : local_address(client_fd_);
    return version == ProxyProtocol::v1 ? encode_proxy_v1(peer_.address, to)
                                        : encode_proxy_v2(peer_.address, to, peer_.credentials);
}

// --- finding an upstream ------------------------------------------------------------------

// The first one that is to be tried, if it answers on the spot; most do.
bool Connection::try_at_once()
{
    auto index = upstreams().next(turn_, accepted_usec_);
    const SocketAddress *direct = index ? upstreams().direct(*index) : nullptr;
    UniqueFd fd;
    int code = direct ? connect_now(*direct, fd) : EAGAIN;
    if (code == 0) {
        relay(std::move(fd), *index);
        return true;
    }
    // to go on with, or to be tried again with all that may be waited for
    begun_ = std::move(fd);
    begun_index_ = index;
    return false;
}

Task<Result<UniqueFd>> Connection::connect_to_upstream(size_t index, UniqueFd begun)
{
    ConnectOptions options;
    options.timeout = settings_->config.timeouts.connect;
    if (begun) {
        auto result = co_await finish_connect(worker_.loop(), upstreams().address(index), *upstreams().direct(index),
                                              std::move(begun), options);
        co_return result;
    }
    auto result = co_await connect_to(worker_.loop(), upstreams().address(index), options);
    co_return result;
}

Task<void> Connection::find_upstream()
{
    const Timeouts &timeouts = settings_->config.timeouts;
    constexpr int64_t first_pause_usec = 20'000, pause_usec_max = 1'000'000;
    int64_t give_up_at = accepted_usec_ + timeouts.wait_for_upstream.count();
    int64_t pause = first_pause_usec;
    std::string why;
    for (;;) {
        for (;;) {
            // what try_at_once() has begun comes first
            auto index = begun_index_ ? std::exchange(begun_index_, {}) : upstreams().next(turn_, monotonic_usec());
            if (!index)
                break;
            auto fd = co_await connect_to_upstream(*index, std::move(begun_));
            if (fd) {
                relay(std::move(*fd), *index);
                co_return;
            }
            why = fd.error().message;
            if (is_local_shortage(fd.error().code))
                give_up_at = std::max(give_up_at, accepted_usec_ + timeouts.connect.count());
            else
                upstream_failed(*index, why);
        }
        int64_t left = give_up_at - monotonic_usec();
        if (left <= 0)
            break;
        state_ = State::waiting;
        co_await worker_.loop().sleep_for(std::chrono::microseconds{std::min(pause, left)});
        state_ = State::connecting;
        pause = std::min(2 * pause, pause_usec_max);
        turn_ = {};
    }
    end(Closing::no_upstream, why);
}

// While there is nobody to hand its bytes to, the client is only watched for going away.
void Connection::watch_client()
{
    client_watch_ = worker_.loop().watch(client_fd_, SLUICE_EVENT_ERROR, [this](int) { end(Closing::client_gone); });
}

void Connection::upstream_failed(size_t index, const std::string &why)
{
    if (!upstreams().failed(index, why, monotonic_usec()))
        return;
    worker_.shared().log.record(Priority::warning, message_id::upstream_down,
                                format(_("service {}: {}"), service_->name(), why),
                                {{"SLUICE_SERVICE", service_->name()}, {"SLUICE_UPSTREAM", upstreams().name(index)}});
}

// --- relaying -------------------------------------------------------------------------------

void Connection::relay(UniqueFd upstream, size_t index)
{
    const ServiceConfig &config = settings_->config;
    state_ = State::relaying;
    client_watch_.remove();
    connected_usec_ = monotonic_usec();
    service_->count_connect(static_cast<double>(connected_usec_ - accepted_usec_) / 1e6);
    if (upstreams().succeeded(index))
        worker_.shared().log.record(
            Priority::info, message_id::upstream_up,
            format(_("service {}: upstream {} answers again"), service_->name(), upstreams().name(index)),
            {{"SLUICE_SERVICE", service_->name()}, {"SLUICE_UPSTREAM", upstreams().name(index)}});
    upstreams().opened(index);
    upstream_ = index;
    upstream_fd_ = upstream.get();

    bool upstream_is_unix = std::holds_alternative<UnixPath>(upstreams().address(index)) ||
                            std::holds_alternative<UnixAbstract>(upstreams().address(index));
    buffers_ = worker_.buffers(service_->name(), config.limits);
    relay::PumpConfig pump;
    for (relay::LaneConfig *lane : {&pump.up, &pump.down}) {
        lane->buffers = buffers_.get();
        lane->pipes = &worker_.pipes();
        lane->may_splice = config.splice;
    }
    if (client_is_unix_)
        pump.up.descriptors = descriptors_of(config.pass_fds);
    if (upstream_is_unix)
        pump.down.descriptors = descriptors_of(config.pass_fds);
    pump.client_first = true;
    own_rate_up_ = own_rate(config.limits.connection_rate_up);
    own_rate_down_ = own_rate(config.limits.connection_rate_down);
    pump.up.rates[0] = settings_->rate_up.get();
    pump.up.rates[1] = own_rate_up_.get();
    pump.down.rates[0] = settings_->rate_down.get();
    pump.down.rates[1] = own_rate_down_.get();
    pump.up.preface = preface();
    pump.idle_timeout = config.timeouts.idle;
    pump.fin_timeout = config.timeouts.half_closed;
    pump.stuck_timeout = config.timeouts.fin;
    pump_.emplace(worker_.loop(), std::move(pump), relay::Endpoint::socket(std::move(client_), client_end),
                  std::nullopt, relay::Endpoint::socket(std::move(upstream), upstream_end));
    pump_->start(*this);
}

void Connection::pump_ended(const relay::Outcome &outcome)
{
    Closing reason = closing_of(outcome);
    if (reason == Closing::upstream_error)
        pass_on_reset(client_fd_);
    else if (reason == Closing::client_error || reason == Closing::descriptors)
        pass_on_reset(upstream_fd_);
    end(reason, explain(outcome));
}

void Connection::settle()
{
    settled_ = true;
    const Keepalive &keepalive = settings_->config.keepalive;
    if (!keepalive.on)
        return;
    for (int fd : {client_fd_, upstream_fd_}) {
        if (fd >= 0)
            set_keepalive(fd, keepalive.idle, keepalive.interval, keepalive.count);
    }
}

// --- the end ----------------------------------------------------------------------------------

void Connection::refuse(Rejection reason, const std::string &why)
{
    service_->count_rejected(reason);
    std::string who = describe(peer_);
    std::string text = format(_("service {}: {} is refused ({})"), service_->name(), who, word(reason));
    if (!why.empty())
        text += ": " + why;
    worker_.shared().log.record(
        Priority::warning, reason == Rejection::limit ? message_id::limit : message_id::connection_refused, text,
        {{"SLUICE_SERVICE", service_->name()}, {"SLUICE_PEER", who}, {"SLUICE_REASON", word(reason)}});
    state_ = State::ended;
    client_.reset();
    service_->unreserve();
    worker_.bury(*this);
}

void Connection::end(Closing reason, const std::string &why)
{
    if (state_ == State::ended)
        return;
    record_end(reason, why);
    state_ = State::ended;
    client_watch_.remove();
    service_->count_closed(reason, moved());
    if (upstream_ != SIZE_MAX)
        upstreams().closed(upstream_);
    pump_.reset();
    client_.reset();
    begun_.reset();
    buffers_.reset();
    if (entered_)
        service_->leave(peer_, *settings_);
    worker_.shared().last_end_usec = monotonic_usec();
    service_->unreserve();
    worker_.bury(*this);
}

} // namespace sluice::proxyd
