// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/file_limit.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>

#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr uint64_t own_base = 32;      // standard descriptors, signals, the journal, admin clients
constexpr uint64_t own_per_worker = 8; // its loop, its copies of the listening sockets come on top
constexpr uint64_t pipes_min = 4;      // below that nothing is spliced between two sockets
constexpr uint64_t pipes_max = 1024;

} // namespace

uint64_t raise_file_limit()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        rlimit raised{limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur;
}

Result<FileBudget> plan_files(const Config &config, uint64_t listeners, uint64_t limit)
{
    FileBudget budget;
    budget.limit = limit;
    uint64_t connections = 0;
    for (const ServiceConfig &service : config.services)
        connections += service.limits.connections;
    budget.connections = 2 * connections;
    budget.own = own_base + config.workers * (own_per_worker + listeners);
    uint64_t fixed = budget.own + 2 * pipes_min * config.workers;
    uint64_t needed = budget.connections + fixed;
    if (needed > limit) {
        uint64_t room = limit > fixed ? (limit - fixed) / 2 : 0;
        return fail(EMFILE, format(_("{} connections need {} open files, and the limit is {}: allow at most {} "
                                     "connections in all, or raise LimitNOFILE= (ulimit -Hn)"),
                                   connections, needed, limit, room));
    }
    budget.pipes = std::min(pipes_max, (limit - budget.connections - budget.own) / 2);
    return budget;
}

} // namespace sluice::proxyd
