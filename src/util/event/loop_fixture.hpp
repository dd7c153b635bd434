// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// For the tests of the event library: a loop on a private context, once for each
// backend, recorders for callbacks and free functions, and descriptors to watch. The
// release strategy is the process's: the test programs run once for each.

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <glib.h>
#include <gtest/gtest.h>

#include <sluice/event.h>

#include "util/base/unique_fd.hpp"

namespace sluice::event {

// A socket pair; what is written to `far` can be read from `near`.
struct Pair {
    Pair()
    {
        int fds[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        near.reset(fds[0]);
        far.reset(fds[1]);
    }
    void feed() const { EXPECT_EQ(write(far.get(), "x", 1), 1); }
    void drain() const
    {
        char bytes[64];
        EXPECT_GT(read(near.get(), bytes, sizeof bytes), 0);
    }
    UniqueFd near, far;
};

// Counts what a watch or a timer reports; `then` is run after counting. The locals of
// a test end before its loop does: what comes after that is not counted.
struct Recorder {
    Recorder() { living.insert(this); }
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;
    ~Recorder() { living.erase(this); }
    inline static std::set<void *> living;

    int calls = 0;
    int freed = 0;
    int last_id = 0;
    int last_fd = -1;
    int events = 0;
    std::function<void()> then = [] {};
    std::function<void()> on_free = [] {};

    static void on_event(int watch, int fd, int events, void *opaque)
    {
        auto *self = static_cast<Recorder *>(opaque);
        ++self->calls;
        self->last_id = watch;
        self->last_fd = fd;
        self->events = events;
        self->then();
    }
    static void on_timeout(int timer, void *opaque)
    {
        auto *self = static_cast<Recorder *>(opaque);
        ++self->calls;
        self->last_id = timer;
        self->then();
    }
    static void on_freed(void *opaque)
    {
        if (!living.contains(opaque))
            return;
        auto *self = static_cast<Recorder *>(opaque);
        ++self->freed;
        self->on_free();
    }
};

inline double cpu_seconds()
{
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    auto seconds = [](const timeval &time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class LoopTest : public testing::TestWithParam<int> {
protected:
    LoopTest() : context(g_main_context_new()), loop(sluice_loop_new_with_backend(context, GetParam())) {}
    ~LoopTest() override
    {
        sluice_loop_unref(loop);
        g_main_context_unref(context);
    }

    int watch(int fd, int events, Recorder &recorder)
    {
        return sluice_loop_add_handle(loop, fd, events, Recorder::on_event, &recorder, Recorder::on_freed);
    }
    int timer_usec(int64_t usec, Recorder &recorder)
    {
        return sluice_loop_add_timeout_usec(loop, usec, Recorder::on_timeout, &recorder, Recorder::on_freed);
    }
    int timer(int ms, Recorder &recorder)
    {
        return sluice_loop_add_timeout(loop, ms, Recorder::on_timeout, &recorder, Recorder::on_freed);
    }
    // Turns without waiting, enough for anything that is ready to be dispatched.
    void turns(int count = 4)
    {
        for (int i = 0; i < count; ++i)
            sluice_loop_iterate(loop, 0);
    }
    // Turns until `done`; a hang is the test runner's to end.
    void run_until(const std::function<bool()> &done)
    {
        while (!done())
            sluice_loop_iterate(loop, 1);
    }
    // Turns, waiting in between, for that long.
    void run_for(int ms)
    {
        Recorder end;
        int id = timer(ms, end);
        run_until([&] { return end.calls > 0; });
        sluice_loop_remove_timeout(loop, id);
        run_until([&] { return end.freed > 0; });
    }
    sluice_loop_stats stats() const
    {
        sluice_loop_stats result;
        sluice_loop_get_stats(loop, &result, sizeof result);
        return result;
    }

    GMainContext *context;
    sluice_loop *loop;
};

inline std::string backend_name(const testing::TestParamInfo<int> &info)
{
    return info.param == SLUICE_BACKEND_EPOLL ? "epoll" : "gsource";
}

#define SLUICE_ON_EACH_BACKEND(Fixture)                                                                                \
    INSTANTIATE_TEST_SUITE_P(Backends, Fixture, testing::Values(SLUICE_BACKEND_EPOLL, SLUICE_BACKEND_GSOURCE),         \
                             backend_name)

} // namespace sluice::event
