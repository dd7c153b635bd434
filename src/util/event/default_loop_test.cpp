// SPDX-License-Identifier: LGPL-2.1-or-later

// The choice of an implementation is made once in a process: each test is a process.

#include <cerrno>

#include "util/event/loop_fixture.hpp"

namespace sluice::event {
namespace {

int passed_on = 0;
int app_add_handle(int, int, sluice_event_handle_callback, void *, sluice_event_free_callback)
{
    return passed_on += 1;
}
void app_update_handle(int, int)
{
    passed_on += 10;
}
int app_remove_handle(int)
{
    return (passed_on += 100), 0;
}
int app_add_timeout(int, sluice_event_timeout_callback, void *, sluice_event_free_callback)
{
    return passed_on += 1000;
}
void app_update_timeout(int, int)
{
    passed_on += 10'000;
}
int app_remove_timeout(int)
{
    return (passed_on += 100'000), 0;
}

int register_app()
{
    return sluice_event_register_impl(app_add_handle, app_update_handle, app_remove_handle, app_add_timeout,
                                      app_update_timeout, app_remove_timeout);
}

// Runs in a child, whose exit status says whether an expectation failed there.
#define IN_A_PROCESS(body)                                                                                             \
    EXPECT_EXIT(                                                                                                       \
        {                                                                                                              \
            body;                                                                                                      \
            _exit(testing::Test::HasFailure() ? 1 : 0);                                                                \
        },                                                                                                             \
        testing::ExitedWithCode(0), "")

void use_the_default_loop()
{
    EXPECT_EQ(sluice_event_register_default_impl(), 0);
    EXPECT_EQ(sluice_event_register_default_impl(), 0);
    EXPECT_EQ(register_app(), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(sluice_loop_get_context(sluice_loop_default()), g_main_context_default());
    Pair pair;
    Recorder handle, timeout;
    int watch = sluice_event_add_handle(pair.near.get(), SLUICE_EVENT_WRITABLE, Recorder::on_event, &handle,
                                        Recorder::on_freed);
    int timer = sluice_event_add_timeout(0, Recorder::on_timeout, &timeout, Recorder::on_freed);
    EXPECT_GT(watch, 0);
    EXPECT_GT(timer, 0);
    EXPECT_EQ(sluice_event_run_default_impl(), 0);
    EXPECT_EQ(handle.calls, 1);
    EXPECT_EQ(timeout.calls, 1);
    sluice_event_update_handle(watch, 0);
    sluice_event_update_timeout(timer, 1);
    EXPECT_EQ(sluice_event_run_default_impl(), 0);
    EXPECT_EQ(handle.calls, 1);
    EXPECT_EQ(sluice_event_remove_handle(watch), 0);
    EXPECT_EQ(sluice_event_remove_timeout(timer), 0);
    EXPECT_EQ(sluice_event_remove_handle(watch), -1);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(sluice_event_add_handle(-1, 1, Recorder::on_event, &handle, nullptr), -1);
    EXPECT_EQ(errno, EBADF);
    errno = 0;
    sluice_event_update_timeout(timer, 5);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(sluice_loop_drain(sluice_loop_default()), 0);
    EXPECT_EQ(handle.freed, 1);
    EXPECT_EQ(timeout.freed, 1);
}

void hand_over_to_an_application()
{
    EXPECT_EQ(sluice_event_register_impl(app_add_handle, nullptr, app_remove_handle, app_add_timeout,
                                         app_update_timeout, app_remove_timeout),
              -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(register_app(), 0);
    EXPECT_EQ(register_app(), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(sluice_event_register_default_impl(), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(sluice_event_run_default_impl(), -1);
    EXPECT_EQ(errno, ENOSYS);
    EXPECT_EQ(sluice_event_add_handle(0, 1, Recorder::on_event, nullptr, nullptr), 1);
    sluice_event_update_handle(1, 1);
    EXPECT_EQ(sluice_event_remove_handle(1), 0);
    EXPECT_EQ(sluice_event_add_timeout(1, Recorder::on_timeout, nullptr, nullptr), 1111);
    sluice_event_update_timeout(1, 1);
    EXPECT_EQ(sluice_event_remove_timeout(1), 0);
    EXPECT_EQ(passed_on, 111'111);
}

TEST(DefaultLoopDeathTest, ServesTheLibvirtShapes)
{
    IN_A_PROCESS(use_the_default_loop());
}

TEST(DefaultLoopDeathTest, AnApplicationMayServeThemInstead)
{
    IN_A_PROCESS(hand_over_to_an_application());
}

TEST(DefaultLoop, VersionIsThatOfTheHeaders)
{
    EXPECT_STREQ(sluice_version(), SLUICE_VERSION);
}

} // namespace
} // namespace sluice::event
