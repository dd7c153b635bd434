// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sluice/event.hpp>

#include <exception>

#include "util/base/clock.hpp"
#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

using namespace std::chrono_literals;

// The least coroutine type that there can be: starts at once, destroys itself.
struct Detached {
    struct promise_type {
        Detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

class HeaderTest : public testing::TestWithParam<int> {
protected:
    HeaderTest() : context(g_main_context_new()), loop(context, GetParam()) {}
    ~HeaderTest() override { g_main_context_unref(context); }
    GMainContext *context;
    Loop loop;
};
SLUICE_ON_EACH_BACKEND(HeaderTest);

TEST_P(HeaderTest, OwnersRemoveWhatTheyOwn)
{
    Pair pair;
    int calls = 0;
    auto token = std::make_shared<int>(0);
    {
        Handle handle = loop.watch(pair.near.get(), SLUICE_EVENT_WRITABLE, [&, token](int events) {
            EXPECT_EQ(events, SLUICE_EVENT_WRITABLE);
            ++calls;
        });
        Timeout timeout = loop.every(-1us, [token] {});
        EXPECT_EQ(token.use_count(), 3);
        loop.iterate();
        EXPECT_EQ(calls, 1);
        Handle moved = std::move(handle);
        EXPECT_FALSE(handle);
        EXPECT_TRUE(moved);
        EXPECT_EQ(loop.stats().handles, 1u);
        moved.update(0);
        loop.iterate(false);
        EXPECT_EQ(calls, 1);
    }
    loop.drain();
    EXPECT_EQ(token.use_count(), 1) << "the lambdas were destroyed";
    EXPECT_EQ(loop.stats().handles + loop.stats().timeouts, 0u);
}

TEST_P(HeaderTest, AnOwnerMayBeDestroyedInItsOwnCallback)
{
    Pair pair;
    int calls = 0;
    auto canary = std::make_shared<std::string>("still here");
    Handle handle;
    handle = loop.watch(pair.near.get(), SLUICE_EVENT_WRITABLE, [&handle, &calls, canary](int) {
        handle.remove();
        EXPECT_EQ(*canary, "still here");
        ++calls;
    });
    Timeout timeout;
    timeout = loop.every(0us, [&] {
        timeout = Timeout();
        ++calls;
    });
    for (int i = 0; i < 4; ++i)
        loop.iterate(false);
    EXPECT_EQ(calls, 2);
}

TEST_P(HeaderTest, RunAndQuit)
{
    int ticks = 0;
    Timeout tick = loop.every(1ms, [&] {
        if (++ticks == 3)
            loop.quit();
    });
    loop.run();
    EXPECT_EQ(ticks, 3);
    tick.park();
    EXPECT_FALSE(loop.iterate(false));
}

Detached echo_once(Loop loop, int fd, std::vector<std::string> &log)
{
    int64_t start = monotonic_usec();
    co_await loop.sleep_for(2ms);
    log.push_back(monotonic_usec() - start >= 2000 ? "slept" : "early");
    int events = co_await loop.readable(fd);
    log.push_back(events == SLUICE_EVENT_READABLE ? "readable" : "?");
    events = co_await loop.writable(fd);
    log.push_back(events == SLUICE_EVENT_WRITABLE ? "writable" : "?");
    loop.quit();
}

TEST_P(HeaderTest, AwaitablesInTurn)
{
    Pair pair;
    pair.feed();
    std::vector<std::string> log;
    echo_once(loop, pair.near.get(), log);
    EXPECT_TRUE(log.empty());
    loop.run();
    EXPECT_EQ(log, (std::vector<std::string>{"slept", "readable", "writable"}));
    loop.drain();
    EXPECT_EQ(loop.stats().handles + loop.stats().timeouts, 0u);
}

TEST_P(HeaderTest, ErrorsAreThrownWithTheirCode)
{
    try {
        (void)loop.watch(-1, 1, [](int) {});
        FAIL();
    } catch (const std::system_error &error) {
        EXPECT_EQ(error.code().value(), EBADF);
    }
    EXPECT_THROW(Loop(context, 77), std::system_error);
    Handle none;
    none.remove();
}

TEST(HeaderThread, LambdasRunOnIt)
{
    std::atomic<bool> ran{false}; // outlives the thread, which may be in the callback until it ends
    sluice::EventThread thread("hpp");
    Loop loop = thread.loop();
    Timeout timeout = loop.every(0us, [&] { ran = true; });
    while (!ran)
        loop.wake();
    EXPECT_NE(thread.context(), nullptr);
}

} // namespace
} // namespace sluice::event
