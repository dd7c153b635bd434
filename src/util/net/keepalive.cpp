// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/keepalive.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "util/net/format.hpp"

namespace sluice {

namespace {

bool is_inet(int fd)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && (domain == AF_INET || domain == AF_INET6);
}

} // namespace

Result<void> set_keepalive(int fd, std::chrono::seconds idle, std::chrono::seconds interval, int count)
{
    constexpr int seconds_max = 32767, count_max = 127;
    auto fits = [](std::chrono::seconds time) { return time.count() >= 1 && time.count() <= seconds_max; };
    if (!fits(idle) || !fits(interval) || count < 1 || count > count_max)
        return fail(EINVAL, format(_("keepalive takes 1 to {} seconds and 1 to {} tries"), seconds_max, count_max));
    if (!is_inet(fd))
        return {};

    struct Option {
        int level, name, value;
    };
    int idle_s = static_cast<int>(idle.count()), interval_s = static_cast<int>(interval.count());
    // the kernel goes by this instead of the count where both are set
    std::chrono::milliseconds all = idle + interval * count;
    int all_ms = static_cast<int>(std::min<int64_t>(all.count(), INT_MAX));
    for (const Option &option : {Option{IPPROTO_TCP, TCP_KEEPIDLE, idle_s},
                                 {IPPROTO_TCP, TCP_KEEPINTVL, interval_s},
                                 {IPPROTO_TCP, TCP_KEEPCNT, count},
                                 {IPPROTO_TCP, TCP_USER_TIMEOUT, all_ms},
                                 {SOL_SOCKET, SO_KEEPALIVE, 1}}) {
        if (setsockopt(fd, option.level, option.name, &option.value, sizeof option.value) != 0)
            return fail_errno(errno, _("cannot turn keepalive on"));
    }
    return {};
}

} // namespace sluice
