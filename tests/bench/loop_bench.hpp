// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the contestants of the loop benchmark have in common. A contestant wraps
// one event library; a job (tokens, updates, churn, timers) is the same work for
// all of them, written the way a user of that library would write it. Everything
// runs on one thread; a contestant is made afresh for each measurement.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

namespace loop_bench {

struct TokenRing;

// One handle of the token job: a semaphore eventfd, and where its token goes next.
struct Slot {
    int fd = -1;
    Slot *next = nullptr;
    TokenRing *ring = nullptr;
};

// N eventfds with some tokens travelling among them. Each callback takes one token
// and hands it on; the last of `left` asks the loop to stop, after `at_last` has run
// inside that callback.
struct TokenRing {
    explicit TokenRing(size_t handles);
    ~TokenRing();
    TokenRing(const TokenRing &) = delete;
    TokenRing &operator=(const TokenRing &) = delete;

    void put_tokens(size_t active);
    void take_tokens();

    bool finish();

    std::vector<Slot> slots;
    uint64_t left = 0;
    std::function<void()> at_last;
};

// The work of one event. True when it was the last one.
inline bool pass_token(Slot *slot)
{
    uint64_t one;
    if (::read(slot->fd, &one, sizeof one) != sizeof one)
        return false; // a wake-up without a token
    if (::write(slot->next->fd, &one, sizeof one) != sizeof one)
        ::_exit(70); // cannot happen: the counter never gets near its end
    return --slot->ring->left == 0 && slot->ring->finish();
}

class Contestant {
public:
    virtual ~Contestant() = default;

    // Watch every slot for reading; each event calls pass_token().
    virtual void watch(std::span<Slot> slots) = 0;
    // Let go of every slot, the library's own clean-up included.
    virtual void unwatch() = 0;
    // Run until pass_token() has answered true.
    virtual void run() = 0;
    // One turn that does not wait, so that changes reach the kernel.
    virtual void turn() = 0;
    // Park and re-arm the watch of each slot.
    virtual void toggle() = 0;

    // Timers: periodic, with the intervals given in milliseconds.
    virtual bool has_timers() const { return false; }
    virtual void add_timers(std::span<const int> intervals_ms);
    virtual void rearm_timers(std::span<const int> intervals_ms);
    // Run until `count` expiries have been seen.
    virtual void expire_timers(uint64_t count);
    virtual void remove_timers();

    // System calls that changed the kernel's interest list, where the library counts them.
    virtual int64_t kernel_changes() const { return -1; }
};

struct Entry {
    std::string name;
    std::unique_ptr<Contestant> (*make)();
};

std::unique_ptr<Contestant> make_bare();
std::unique_ptr<Contestant> make_gsource_per_fd();
std::unique_ptr<Contestant> make_sluice_epoll();
std::unique_ptr<Contestant> make_sluice_gsource();
#ifdef HAVE_LIBUV
std::unique_ptr<Contestant> make_uv();
#endif
#ifdef HAVE_LIBEVENT
std::unique_ptr<Contestant> make_libevent();
#endif
#ifdef HAVE_SD_EVENT
std::unique_ptr<Contestant> make_sd_event();
#endif

// Print a message and leave: a contestant that fails makes every figure worthless.
[[noreturn]] void die(const char *what, int err);

} // namespace loop_bench
