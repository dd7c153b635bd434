// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The jobs of the loop benchmark. Each runs one contestant once and answers with
// what it cost per piece of work. CPU time of the thread is the figure to compare:
// no job ever waits, and other programs on the machine do not show in it. Wall time
// goes beside it.

#include "loop_bench.hpp"

namespace loop_bench {

struct Cost {
    double cpu_ns = 0;
    double wall_ns = 0;
    int64_t kernel_changes = -1; // of the whole job, where the library counts them
};

// One event: a token read from one handle and written to another.
Cost pass_tokens(const Entry &entry, size_t handles, size_t active);
// One handle parked and re-armed from inside a callback, the next poll included.
Cost toggle_in_dispatch(const Entry &entry, size_t handles);
// One handle added, known to the kernel, and removed.
Cost add_and_remove(const Entry &entry, size_t handles);

// One timer of many, each step on its own.
struct TimerCost {
    Cost add, rearm, expire, remove;
};
TimerCost many_timers(const Entry &entry, size_t timers);

double median(std::vector<double> values);

} // namespace loop_bench
