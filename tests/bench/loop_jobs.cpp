// SPDX-License-Identifier: LGPL-2.1-or-later
#include "loop_jobs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

#include <sys/eventfd.h>

namespace loop_bench {
namespace {

constexpr double enough_ns = 30e6; // one sample lasts about this long

double now_ns(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Stopwatch {
public:
    Cost per(double pieces) const
    {
        Cost cost;
        cost.wall_ns = (now_ns(CLOCK_MONOTONIC) - wall_) / pieces;
        cost.cpu_ns = (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_) / pieces;
        return cost;
    }

private:
    double wall_ = now_ns(CLOCK_MONOTONIC);
    double cpu_ = now_ns(CLOCK_THREAD_CPUTIME_ID);
};

std::vector<int> intervals_ms(size_t count, int least, int most)
{
    std::minstd_rand random(count); // the same for every contestant
    std::uniform_int_distribution<int> spread(least, most);
    std::vector<int> intervals(count);
    std::generate(intervals.begin(), intervals.end(), [&] { return spread(random); });
    return intervals;
}

Cost run_events(Contestant &contestant, TokenRing &ring, uint64_t count)
{
    ring.left = count;
    Stopwatch watch;
    contestant.run();
    return watch.per(static_cast<double>(count));
}

} // namespace

TokenRing::TokenRing(size_t handles) : slots(handles)
{
    for (Slot &slot : slots) {
        slot.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
        if (slot.fd < 0)
            die("eventfd", errno);
        slot.ring = this;
    }
    // A stride without a common divisor with any of our sizes visits every handle,
    // and neighbours in time are not neighbours in memory.
    for (size_t i = 0; i < handles; i++)
        slots[i].next = &slots[(i + 3371) % handles];
}

TokenRing::~TokenRing()
{
    for (Slot &slot : slots)
        close(slot.fd);
}

void TokenRing::put_tokens(size_t active)
{
    const uint64_t one = 1;
    for (size_t i = 0; i < active; i++)
        if (write(slots[i * slots.size() / active].fd, &one, sizeof one) != sizeof one)
            die("write to an eventfd", errno);
}

void TokenRing::take_tokens()
{
    uint64_t one;
    for (Slot &slot : slots)
        while (read(slot.fd, &one, sizeof one) == sizeof one) {
        }
}

bool TokenRing::finish()
{
    if (at_last)
        at_last();
    return true;
}

void Contestant::add_timers(std::span<const int>) {}
void Contestant::rearm_timers(std::span<const int>) {}
void Contestant::expire_timers(uint64_t) {}
void Contestant::remove_timers() {}

void die(const char *what, int err)
{
    std::fprintf(stderr, "loop-bench: %s: %s\n", what, std::strerror(err));
    std::exit(70);
}

Cost pass_tokens(const Entry &entry, size_t handles, size_t active)
{
    TokenRing ring(handles);
    auto contestant = entry.make();
    contestant->watch(ring.slots);
    ring.put_tokens(std::min(active, handles));
    ring.left = UINT64_MAX;

    contestant->turn(); // every handle known to the kernel
    uint64_t count = 16;
    run_events(*contestant, ring, count);
    // grows by CPU time, which a busy neighbour cannot stretch
    Cost cost = run_events(*contestant, ring, count);
    while (cost.cpu_ns * static_cast<double>(count) < enough_ns / 2) {
        const double factor = enough_ns / (cost.cpu_ns * static_cast<double>(count));
        count = static_cast<uint64_t>(static_cast<double>(count) * std::clamp(factor, 2.0, 8.0));
        cost = run_events(*contestant, ring, count);
    }
    contestant->unwatch();
    return cost;
}

Cost toggle_in_dispatch(const Entry &entry, size_t handles)
{
    TokenRing ring(handles);
    auto contestant = entry.make();
    contestant->watch(ring.slots);
    ring.put_tokens(1);
    ring.left = UINT64_MAX;
    contestant->turn(); // every handle known to the kernel
    run_events(*contestant, ring, 16);

    const int64_t before = contestant->kernel_changes();
    constexpr int rounds = 20;
    Cost sum;
    for (int i = 0; i < rounds; i++) {
        Stopwatch watch;
        ring.at_last = [&] {
            ring.take_tokens(); // so that the turn has nothing to do but the toggles
            watch = Stopwatch();
            contestant->toggle();
        };
        ring.left = 1;
        contestant->run();
        contestant->turn();
        Cost cost = watch.per(static_cast<double>(handles) * rounds);
        ring.put_tokens(1);
        sum.cpu_ns += cost.cpu_ns;
        sum.wall_ns += cost.wall_ns;
    }
    if (before >= 0)
        sum.kernel_changes = contestant->kernel_changes() - before;
    ring.at_last = nullptr;
    contestant->unwatch();
    return sum;
}

Cost add_and_remove(const Entry &entry, size_t handles)
{
    TokenRing ring(handles);
    auto contestant = entry.make();
    const auto once = [&] {
        contestant->watch(ring.slots);
        contestant->turn();
        contestant->unwatch();
    };
    once();
    Stopwatch watch;
    int rounds = 0;
    do {
        once();
        rounds++;
    } while (watch.per(1).cpu_ns < enough_ns);
    return watch.per(static_cast<double>(handles) * rounds);
}

TimerCost many_timers(const Entry &entry, size_t timers)
{
    const auto pieces = static_cast<double>(timers);
    const auto distant = intervals_ms(timers, 3'600'000, 7'200'000);
    // Long enough that the first to expire is not due again before the last has run.
    const auto near = intervals_ms(timers, 200, 300);
    auto contestant = entry.make();
    TimerCost cost;

    Stopwatch add;
    contestant->add_timers(distant);
    cost.add = add.per(pieces);

    Stopwatch rearm;
    contestant->rearm_timers(near);
    cost.rearm = rearm.per(pieces);

    const timespec until_due = {0, 301'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &until_due, nullptr);
    Stopwatch expire;
    contestant->expire_timers(timers);
    cost.expire = expire.per(pieces);

    Stopwatch remove;
    contestant->remove_timers();
    cost.remove = remove.per(pieces);
    return cost;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

} // namespace loop_bench
