// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/resolve.hpp"

#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/async/ready.hpp"
#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/base/unique_fd.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

using Addresses = std::vector<SocketAddress>;

bool is_number(const std::string &text)
{
    return parse_number<uint16_t>(text).has_value();
}

Error error_of(int status, int system_code, const TcpAddress &address)
{
    switch (status) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
        return {name_not_found,
                format(_("no address is known for the host '{}'; check its name"), printable(address.host))};
    case EAI_SERVICE:
        return {name_not_found, format(_("no TCP service is known by the name '{}'; write the port as a number"),
                                       printable(address.service))};
    case EAI_AGAIN:
        return {EAGAIN, format(_("no name server could be asked for the host '{}'; try again, or write its address"),
                               printable(address.host))};
    case EAI_MEMORY:
        return Error::from_errno(ENOMEM, format(_("looking up the host '{}'"), printable(address.host)));
    case EAI_SYSTEM:
        return Error::from_errno(system_code, format(_("looking up the host '{}'"), printable(address.host)));
    default:
        return {name_not_found,
                format(_("looking up the host '{}': {}"), printable(address.host), gai_strerror(status))};
    }
}

Result<Addresses> look_up(const TcpAddress &address, int flags)
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;
    hints.ai_flags = flags;
    if (is_number(address.service))
        hints.ai_flags |= AI_NUMERICSERV;
    for (char c : address.host) {
        if (static_cast<unsigned char>(c) >= 0x80)
            hints.ai_flags |= AI_IDN;
    }
    addrinfo *list = nullptr;
    int status = getaddrinfo(address.host.c_str(), address.service.c_str(), &hints, &list);
    if (status != 0)
        return tl::unexpected<Error>(error_of(status, errno, address));
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
    Addresses addresses;
    for (const addrinfo *entry = list; entry != nullptr; entry = entry->ai_next) {
        SocketAddress found;
        found.size = entry->ai_addrlen;
        std::memcpy(&found.storage, entry->ai_addr, entry->ai_addrlen);
        addresses.push_back(found);
    }
    return addresses;
}

// getaddrinfo says of an unknown scope only that the name is not known.
std::optional<Error> scope_fault(const TcpAddress &address)
{
    size_t percent = address.host.find('%');
    if (percent == std::string::npos || address.host.find(':') == std::string::npos)
        return std::nullopt;
    std::string scope = address.host.substr(percent + 1);
    if (parse_number<uint32_t>(scope) || if_nametoindex(scope.c_str()) != 0)
        return std::nullopt;
    return Error{ENODEV, format(_("there is no network interface '{}'; `ip link` lists them"), printable(scope))};
}

// One look-up in a thread. Shared between the thread and the waiting coroutine: the
// coroutine may be destroyed while the thread is still stuck in a name server's
// silence, which nothing can cut short; the last of the two lets go of it.
struct LookUp {
    explicit LookUp(TcpAddress what) : address(std::move(what)) {}

    const TcpAddress address;
    UniqueFd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;
    std::optional<Result<Addresses>> result;

    void work()
    {
        auto found = look_up(address, AI_ADDRCONFIG);
        // a machine without any configured address may still mean itself
        if (!found && found.error().code == name_not_found)
            found = look_up(address, 0);
        std::lock_guard lock(mutex);
        result = std::move(found);
        uint64_t one = 1;
        (void)!write(done.get(), &one, sizeof one);
    }
    Result<Addresses> take()
    {
        std::lock_guard lock(mutex);
        return std::move(*result);
    }
};

// The thread takes no signals: they belong to the program's own threads.
std::optional<Error> start_thread(std::shared_ptr<LookUp> look_up)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::optional<Error> fault;
    try {
        std::thread([look_up = std::move(look_up)] { look_up->work(); }).detach();
    } catch (const std::system_error &error) {
        fault = Error::from_errno(error.code().value(), _("cannot start a thread to look up a name"));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return fault;
}

} // namespace

bool is_numeric(const TcpAddress &address)
{
    in_addr ignored;
    bool host = address.host.find(':') != std::string::npos || inet_aton(address.host.c_str(), &ignored) != 0;
    return host && is_number(address.service);
}

std::optional<SocketAddress> numeric_address(const TcpAddress &address)
{
    if (!is_numeric(address) || address.host.find('%') != std::string::npos)
        return std::nullopt;
    auto found = look_up(address, AI_NUMERICHOST);
    return found ? std::optional(found->front()) : std::nullopt;
}

Task<Result<std::vector<SocketAddress>>> resolve(Loop loop, TcpAddress address, int64_t deadline_usec)
{
    if (auto fault = scope_fault(address))
        co_return tl::unexpected<Error>(*fault);
    if (is_numeric(address))
        co_return look_up(address, AI_NUMERICHOST);

    auto work = std::make_shared<LookUp>(address);
    if (!work->done)
        co_return fail_errno(errno, "eventfd");
    if (auto fault = start_thread(work))
        co_return tl::unexpected<Error>(*fault);
    int events = co_await ReadyBefore(loop, work->done.get(), SLUICE_EVENT_READABLE, deadline_usec);
    if (events == 0)
        co_return fail(ETIMEDOUT, format(_("the name server did not answer in time for the host '{}'; try again, or "
                                           "write its address"),
                                         printable(address.host)));
    co_return work->take();
}

Result<std::vector<SocketAddress>> resolve_to_listen(const TcpAddress &address)
{
    if (auto fault = scope_fault(address))
        return tl::unexpected<Error>(*fault);
    return look_up(address, AI_PASSIVE | (is_numeric(address) ? AI_NUMERICHOST : 0));
}

} // namespace sluice
