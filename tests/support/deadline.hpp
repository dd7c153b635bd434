// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Bounded waits for tests. A test waits for what it needs and fails when that does
// not come before a deadline that no healthy machine reaches; it never waits for a
// time to pass. Times are monotonic.

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "util/base/clock.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLUICE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLUICE_TEST_SANITIZED 1
#endif
#endif

namespace sluice::test {

#ifdef SLUICE_TEST_SANITIZED
inline constexpr bool sanitized = true; // memory figures say nothing then
#else
inline constexpr bool sanitized = false;
#endif

// How long a test waits for something that should take milliseconds. A number of
// seconds in SLUICE_TEST_PATIENCE says otherwise: for a slow tool around the program,
// or to see quickly what fails.
inline double patience_s()
{
    static const double seconds = [] {
        const char *text = std::getenv("SLUICE_TEST_PATIENCE");
        return text ? std::atof(text) : 60.0;
    }();
    return seconds;
}

class Deadline {
public:
    explicit Deadline(double seconds = patience_s()) : at_usec_(monotonic_usec() + int64_t(seconds * 1e6)) {}

    int64_t left_usec() const { return std::max<int64_t>(0, at_usec_ - monotonic_usec()); }
    bool passed() const { return left_usec() == 0; }

    // What is left as an argument of poll(), rounded up so that the last wait is not a busy one.
    int left_ms() const { return int(std::min<int64_t>((left_usec() + 999) / 1000, 1'000'000)); }

private:
    int64_t at_usec_;
};

// Wait until the descriptor has one of `events`, or an error or hang-up, to tell.
inline bool wait_for(int fd, short events, const Deadline &deadline = Deadline{})
{
    for (;;) {
        pollfd entry{fd, events, 0};
        const int ready = poll(&entry, 1, deadline.left_ms());
        if (ready > 0)
            return true;
        if (ready == 0 && deadline.passed())
            return false;
        if (ready < 0 && errno != EINTR)
            return false;
    }
}

// Look again every millisecond until the predicate holds. For states that no
// descriptor announces, such as those in /proc.
template <class Predicate>
bool eventually(Predicate predicate, const Deadline &deadline = Deadline{})
{
    while (!predicate()) {
        if (deadline.passed())
            return false;
        poll(nullptr, 0, 1);
    }
    return true;
}

} // namespace sluice::test
