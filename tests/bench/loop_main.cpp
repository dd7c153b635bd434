// SPDX-License-Identifier: LGPL-2.1-or-later

// loop-bench [ROUNDS] [JOB...]: the event loops side by side. The contestants take
// turns within each round, and what is printed are medians over the rounds and their
// ratios, each target with its verdict. Jobs: tokens toggle churn timers release.
//
// `loop-bench probe toggle|churn` runs one job of libsluice alone, once: for counting
// system calls from outside, and for strategies that the environment decides.

#include "loop_jobs.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace loop_bench {
namespace {

constexpr size_t churn_handles = 1000;
constexpr size_t timer_count = 100'000;

std::vector<Entry> contestants()
{
    return {
        {"bare", make_bare},
        {"sluice", make_sluice_epoll},
        {"sluice-gsource", make_sluice_gsource},
#ifdef HAVE_LIBUV
        {"libuv", make_uv},
#endif
#ifdef HAVE_LIBEVENT
        {"libevent", make_libevent},
#endif
#ifdef HAVE_SD_EVENT
        {"sd-event", make_sd_event},
#endif
        {"gsource-per-fd", make_gsource_per_fd},
    };
}

// Samples by contestant, and what is made of them.
class Table {
public:
    void add(const std::string &name, const Cost &cost)
    {
        cpu_[name].push_back(cost.cpu_ns);
        wall_[name].push_back(cost.wall_ns);
    }
    bool has(const std::string &name) const { return cpu_.count(name) > 0; }
    double cpu(const std::string &name) const { return median(cpu_.at(name)); }
    double wall(const std::string &name) const { return median(wall_.at(name)); }
    double ratio(const std::string &name, const std::string &to) const { return cpu(name) / cpu(to); }

private:
    std::map<std::string, std::vector<double>> cpu_, wall_;
};

int missed = 0;

void print_table(const char *title, const Table &table, const char *reference)
{
    std::printf("\n%s\n  %-16s %12s %12s %10s\n", title, "", "CPU ns", "wall ns", "ratio");
    for (const Entry &entry : contestants())
        if (table.has(entry.name))
            std::printf("  %-16s %12.1f %12.1f %10.3f\n", entry.name.c_str(), table.cpu(entry.name),
                        table.wall(entry.name), table.ratio(entry.name, reference));
}

void verdict(const std::string &what, double value, double limit, bool at_most = true)
{
    const bool met = at_most ? value <= limit : value >= limit;
    missed += !met;
    std::printf("  target %-44s %9.3f %s %-7.4g %s\n", what.c_str(), value, at_most ? "<=" : ">=", limit,
                met ? "met" : "MISSED");
}

void no_worse_than_peers(const Table &table)
{
    for (const char *peer : {"libuv", "libevent", "sd-event"})
        if (table.has(peer))
            verdict(std::string("sluice / ") + peer, table.ratio("sluice", peer), 1.0);
}

void bench_tokens(int rounds)
{
    for (size_t handles : {10u, 1000u, 8000u}) {
        for (size_t active : {1u, 100u}) {
            Table table;
            for (int round = 0; round < rounds; round++)
                for (const Entry &entry : contestants())
                    table.add(entry.name, pass_tokens(entry, handles, active));
            char title[80];
            std::snprintf(title, sizeof title, "tokens: %zu handles, %zu active, per event", handles,
                          std::min(handles, active));
            print_table(title, table, "bare");
            verdict("sluice / bare", table.ratio("sluice", "bare"), 1.15);
            no_worse_than_peers(table);
            // One event in one turn is where a source for each handle pays for all of them.
            if (handles == 8000 && active == 1)
                verdict("gsource-per-fd / sluice", table.ratio("gsource-per-fd", "sluice"), 100, false);
            std::fflush(stdout);
        }
    }
}

void bench_toggle(int rounds)
{
    Table table;
    int64_t kernel_changes = 0;
    for (int round = 0; round < rounds; round++) {
        for (const Entry &entry : contestants()) {
            Cost cost = toggle_in_dispatch(entry, churn_handles);
            table.add(entry.name, cost);
            if (entry.name == "sluice")
                kernel_changes += cost.kernel_changes;
        }
    }
    print_table("toggle: a handle off and on inside a callback, 1,000 handles, per handle", table, "bare");
    verdict("system calls for all of it (kernel_changes)", static_cast<double>(kernel_changes), 0);
    no_worse_than_peers(table);
}

void bench_churn(int rounds)
{
    Table table;
    for (int round = 0; round < rounds; round++)
        for (const Entry &entry : contestants())
            table.add(entry.name, add_and_remove(entry, churn_handles));
    print_table("churn: a handle added and removed, 1,000 at a time, per handle", table, "bare");
    if (table.has("libuv"))
        verdict("sluice / libuv", table.ratio("sluice", "libuv"), 1.0);
}

void bench_timers(int rounds)
{
    Table add, rearm, expire, remove, total;
    for (int round = 0; round < rounds; round++) {
        for (const Entry &entry : contestants()) {
            if (!entry.make()->has_timers())
                continue;
            TimerCost cost = many_timers(entry, timer_count);
            add.add(entry.name, cost.add);
            rearm.add(entry.name, cost.rearm);
            expire.add(entry.name, cost.expire);
            remove.add(entry.name, cost.remove);
            total.add(entry.name, {cost.add.cpu_ns + cost.rearm.cpu_ns + cost.expire.cpu_ns + cost.remove.cpu_ns,
                                   cost.add.wall_ns + cost.rearm.wall_ns + cost.expire.wall_ns + cost.remove.wall_ns});
        }
    }
    const std::pair<const char *, Table *> steps[] = {{"timers: add, 100,000 of them, per timer", &add},
                                                      {"timers: re-arm all", &rearm},
                                                      {"timers: expire all, each re-armed by its period", &expire},
                                                      {"timers: remove all", &remove},
                                                      {"timers: all four", &total}};
    for (auto [title, table] : steps) {
        print_table(title, *table, "sluice");
        if (table->has("libuv"))
            verdict("sluice / libuv", table->ratio("sluice", "libuv"), 1.0);
    }
}

// The strategy is fixed when the library is loaded, so each sample is a process.
Cost probe_in_child(const char *self, const char *strategy)
{
    setenv("SLUICE_SOURCE_RELEASE", strategy, 1);
    const std::string command = std::string("'") + self + "' probe churn";
    FILE *child = popen(command.c_str(), "re");
    if (!child)
        die("popen", errno);
    Cost cost;
    if (std::fscanf(child, "%lf %lf", &cost.cpu_ns, &cost.wall_ns) != 2)
        die("the probe's answer", EPROTO);
    if (pclose(child) != 0)
        die("the probe", ECHILD);
    unsetenv("SLUICE_SOURCE_RELEASE");
    return cost;
}

void bench_release(const char *self, int rounds)
{
    std::map<std::string, std::vector<double>> cpu;
    for (int round = 0; round < rounds; round++)
        for (const char *strategy : {"immediate", "deferred"})
            cpu[strategy].push_back(probe_in_child(self, strategy).cpu_ns);
    const double at_once = median(cpu["immediate"]), later = median(cpu["deferred"]);
    std::printf("\nrelease: a handle added and removed, sluice-gsource, per handle\n"
                "  %-16s %12.1f\n  %-16s %12.1f\n  deferred / immediate %.3f\n",
                "immediate", at_once, "deferred", later, later / at_once);
}

// Half of one core is not what the other half of the figures is measured on.
void stay_on_one_cpu()
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            std::printf("pinned to CPU %d\n", cpu);
            return;
        }
    }
}

void allow_many_files(size_t needed)
{
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed)
        die("the limit of open files is too low for 8,000 handles", EMFILE);
}

int probe(std::string_view job)
{
    Cost cost;
    if (job == "toggle")
        cost = toggle_in_dispatch({"sluice", make_sluice_epoll}, churn_handles);
    else if (job == "churn")
        cost = add_and_remove({"sluice-gsource", make_sluice_gsource}, churn_handles);
    else
        return 64;
    std::printf("%.1f %.1f\n", cost.cpu_ns, cost.wall_ns);
    return 0;
}

int bench(int argc, char **argv)
{
    allow_many_files(8200);
    if (argc == 3 && std::strcmp(argv[1], "probe") == 0)
        return probe(argv[2]);

    int rounds = 9;
    std::set<std::string_view> jobs;
    for (int i = 1; i < argc; i++) {
        if (const int number = std::atoi(argv[i]); number > 0)
            rounds = number;
        else
            jobs.insert(argv[i]);
    }
    const auto wanted = [&](const char *job) { return jobs.empty() || jobs.count(job) > 0; };
    stay_on_one_cpu();
    std::printf("medians of %d rounds; a ratio above 1 costs more than the first row of its kind\n", rounds);
    if (wanted("tokens"))
        bench_tokens(rounds);
    if (wanted("toggle"))
        bench_toggle(rounds);
    if (wanted("churn"))
        bench_churn(rounds);
    if (wanted("timers"))
        bench_timers(rounds);
    if (wanted("release"))
        bench_release(argv[0], rounds);
    std::printf("\n%d target(s) missed\n", missed);
    return missed ? 1 : 0;
}

} // namespace
} // namespace loop_bench

int main(int argc, char **argv)
{
    return loop_bench::bench(argc, argv);
}
