// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/connect.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/async/ready.hpp"
#include "util/base/clock.hpp"
#include "util/base/printable.hpp"
#include "util/net/connect_error.hpp"
#include "util/net/connect_step.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

constexpr int64_t next_address_usec = 250'000; // RFC 8305, section 5: "Connection Attempt Delay"
constexpr int64_t backlog_pause_usec = 1'000;
constexpr int64_t backlog_pause_usec_max = 100'000;

// Everything that the steps of one connect_to() have in common.
struct Request {
    Loop loop;
    Address address;
    ConnectOptions options;
    int64_t deadline_usec;
};

// `detail()` is asked only where somebody listens.
template <class F>
void report(const Request &request, const char *step, F &&detail)
{
    if (request.options.on_step)
        request.options.on_step(step, detail());
}

// --- unix: the answer comes at once, except that a full backlog has none ---

// The kernel refuses a connection to what is no socket just as it does to a dead one.
int refused_code(const Address &address)
{
    const auto *at = std::get_if<UnixPath>(&address);
    struct stat found;
    bool other = at != nullptr && stat(at->path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode);
    return other ? ENOTSOCK : ECONNREFUSED;
}

Task<Result<UniqueFd>> connect_unix(const Request &request, std::optional<SocketAddress> to, size_t name_bytes)
{
    if (!to)
        co_return tl::unexpected<Error>(name_too_long(request.address, name_bytes));
    auto name = [&request] { return printable(to_string(request.address)); };
    report(request, "connect", name);
    int64_t pause = backlog_pause_usec;
    for (;;) {
        UniqueFd fd;
        int code = begin_connect(*to, request.options.timeout, fd);
        if (code == 0) {
            report(request, "connected", name);
            co_return std::move(fd);
        }
        if (code == ECONNREFUSED)
            code = refused_code(request.address);
        if (code != EAGAIN && code != EINTR)
            co_return tl::unexpected<Error>(connect_error(request.address, code));

        int64_t left = request.deadline_usec - monotonic_usec();
        if (left <= 0)
            co_return tl::unexpected<Error>(backlog_error(request.address, request.options.timeout));
        report(request, "retry",
               [&] { return "the backlog is full; again in " + std::to_string(pause / 1000) + " ms"; });
        co_await request.loop.sleep_for(std::chrono::microseconds(std::min(pause, left)));
        pause = std::min(pause * 2, backlog_pause_usec_max);
    }
}

// --- tcp and vsock: several addresses under way at once, if need be ---

struct Attempt {
    UniqueFd fd;
    size_t index;
};

class Race {
public:
    Race(const Request &request, std::vector<SocketAddress> addresses)
        : request_(request), addresses_(std::move(addresses)), failures_(addresses_.size(), 0)
    {}

    // A watched descriptor that is readable when an attempt has come to its end.
    bool open()
    {
        epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
        return static_cast<bool>(epoll_);
    }
    int fd() const noexcept { return epoll_.get(); }

    bool waiting() const noexcept { return !pending_.empty(); }
    // When to start on the next address; never when there is none.
    int64_t next_start_usec() const noexcept
    {
        if (next_ == addresses_.size())
            return no_deadline;
        return waiting() ? next_start_usec_ : 0;
    }

    // Start on the next address; true if it is connected.
    bool start_next()
    {
        size_t index = next_++;
        next_start_usec_ = monotonic_usec() + next_address_usec;
        const SocketAddress &to = addresses_[index];
        report(request_, "connect", [&to] { return to_string(to); });
        UniqueFd fd;
        int code = begin_connect(to, request_.options.timeout, fd);
        if (code == 0)
            return succeeded(std::move(fd), index);
        if (code != EINPROGRESS)
            return failed(index, code);
        epoll_event wanted{};
        wanted.events = EPOLLOUT;
        wanted.data.fd = fd.get();
        if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &wanted) != 0)
            return failed(index, errno);
        pending_.push_back({std::move(fd), index});
        return false;
    }

    // Look at those that have come to their end; true if one is connected.
    bool collect()
    {
        epoll_event ready[16];
        int count = epoll_wait(epoll_.get(), ready, std::size(ready), 0);
        for (int i = 0; i < count; ++i) {
            auto at = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Attempt &attempt) { return attempt.fd.get() == ready[i].data.fd; });
            Attempt attempt = std::move(*at);
            pending_.erase(at);
            epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, attempt.fd.get(), nullptr);
            int code = end_connect(attempt.fd.get(), addresses_[attempt.index]);
            if (code == 0)
                return succeeded(std::move(attempt.fd), attempt.index);
            failed(attempt.index, code);
        }
        return false;
    }

    UniqueFd take() { return std::move(winner_); }

    Error error() const
    {
        std::vector<AttemptFailure> list;
        for (size_t i = 0; i < next_; ++i) {
            bool silent = failures_[i] == 0;
            list.push_back({to_string(addresses_[i]), silent ? ETIMEDOUT : failures_[i]});
        }
        return connect_error(request_.address, list, request_.options.timeout);
    }

private:
    bool failed(size_t index, int code)
    {
        failures_[index] = code;
        next_start_usec_ = 0;
        report(request_, "failed", [&] { return to_string(addresses_[index]) + ": " + std::strerror(code); });
        return false;
    }
    bool succeeded(UniqueFd fd, size_t index)
    {
        winner_ = std::move(fd);
        report(request_, "connected", [&] { return to_string(addresses_[index]); });
        return true;
    }
    const Request &request_;
    std::vector<SocketAddress> addresses_;
    std::vector<int> failures_; // an errno for each address that has failed
    std::vector<Attempt> pending_;
    size_t next_ = 0;
    int64_t next_start_usec_ = 0;
    UniqueFd epoll_;
    UniqueFd winner_;
};

// --- tcp and vsock, one address: the socket itself is waited for ---

Error one_error(const Request &request, const SocketAddress &to, int code)
{
    report(request, "failed", [&] { return to_string(to) + ": " + std::strerror(code); });
    return connect_error(request.address, {{to_string(to), code}}, request.options.timeout);
}

Task<Result<UniqueFd>> finish_one(const Request &request, const SocketAddress &to, UniqueFd begun)
{
    int code = ETIMEDOUT;
    if (request.deadline_usec > monotonic_usec()) {
        int events = co_await ReadyBefore(request.loop, begun.get(), SLUICE_EVENT_WRITABLE, request.deadline_usec);
        if (events != 0)
            code = end_connect(begun.get(), to);
    }
    if (code != 0)
        co_return tl::unexpected<Error>(one_error(request, to, code));
    report(request, "connected", [&to] { return to_string(to); });
    co_return std::move(begun);
}

Task<Result<UniqueFd>> connect_one(const Request &request, SocketAddress to)
{
    report(request, "connect", [&to] { return to_string(to); });
    UniqueFd fd;
    int code = begin_connect(to, request.options.timeout, fd);
    if (code == EINPROGRESS) {
        auto result = co_await finish_one(request, to, std::move(fd));
        co_return result;
    }
    if (code != 0)
        co_return tl::unexpected<Error>(one_error(request, to, code));
    report(request, "connected", [&to] { return to_string(to); });
    co_return std::move(fd);
}

Task<Result<UniqueFd>> connect_any(const Request &request, std::vector<SocketAddress> addresses)
{
    if (addresses.size() == 1) {
        auto result = co_await connect_one(request, addresses[0]);
        co_return result;
    }
    Race race(request, std::move(addresses));
    if (!race.open())
        co_return tl::unexpected<Error>(connect_error(request.address, errno));
    for (;;) {
        int64_t now = monotonic_usec();
        if (now >= race.next_start_usec()) {
            if (race.start_next())
                co_return race.take();
            continue;
        }
        if (!race.waiting() || now >= request.deadline_usec)
            co_return tl::unexpected<Error>(race.error());
        int64_t until = std::min(race.next_start_usec(), request.deadline_usec);
        co_await ReadyBefore(request.loop, race.fd(), SLUICE_EVENT_READABLE, until);
        if (race.collect())
            co_return race.take();
    }
}

Task<Result<UniqueFd>> connect_tcp(const Request &request, TcpAddress to)
{
    report(request, "resolve", [&request] { return printable(to_string(request.address)); });
    auto addresses = co_await resolve(request.loop, to, request.deadline_usec);
    if (!addresses)
        co_return tl::unexpected<Error>(connect_error(request.address, addresses.error()));
    report(request, "resolved", [&addresses] {
        std::string list;
        for (const SocketAddress &address : *addresses)
            list += (list.empty() ? "" : " ") + to_string(address);
        return list;
    });
    auto result = co_await connect_any(request, std::move(*addresses));
    co_return result;
}

Task<Result<UniqueFd>> dispatch(const Request &request)
{
    if (const auto *tcp = std::get_if<TcpAddress>(&request.address))
        return connect_tcp(request, *tcp);
    if (const auto *path = std::get_if<UnixPath>(&request.address))
        return connect_unix(request, to_socket_address(*path), path->path.size());
    if (const auto *abstract = std::get_if<UnixAbstract>(&request.address))
        return connect_unix(request, to_socket_address(*abstract), abstract->name.size());
    return connect_one(request, to_socket_address(std::get<VsockAddress>(request.address)));
}

} // namespace

Task<Result<UniqueFd>> connect_to(Loop loop, Address address, ConnectOptions options)
{
    int64_t deadline = deadline_after(options.timeout.count(), monotonic_usec());
    const Request request{loop, std::move(address), std::move(options), deadline};
    auto result = co_await dispatch(request);
    co_return result;
}

Task<Result<UniqueFd>> connect_to_any(Loop loop, Address name, std::vector<SocketAddress> addresses,
                                      ConnectOptions options)
{
    int64_t deadline = deadline_after(options.timeout.count(), monotonic_usec());
    const Request request{loop, std::move(name), std::move(options), deadline};
    auto result = co_await connect_any(request, std::move(addresses));
    co_return result;
}

Task<Result<UniqueFd>> finish_connect(Loop loop, Address name, SocketAddress to, UniqueFd begun, ConnectOptions options)
{
    int64_t deadline = deadline_after(options.timeout.count(), monotonic_usec());
    const Request request{loop, std::move(name), std::move(options), deadline};
    auto result = co_await finish_one(request, to, std::move(begun));
    co_return result;
}

} // namespace sluice
