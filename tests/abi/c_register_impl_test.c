/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An application's own loop behind the default calls. A program of its own, since the
 * choice is made once in a process: six functions that write down what they were
 * given and answer with known values.
 */

#include "c_semantics.h"

#include <errno.h>
#include <stdio.h>

static int last_call;
static int last_number;
static int last_events;
static void *last_opaque;

static int my_add_handle(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                         sluice_event_free_callback free_opaque)
{
    last_call = callback == record_handle && free_opaque == record_free ? 1 : -1;
    last_number = fd;
    last_events = events;
    last_opaque = opaque;
    return 41;
}

static void my_update_handle(int watch, int events)
{
    last_call = 2;
    last_number = watch;
    last_events = events;
}

static int my_remove_handle(int watch)
{
    last_call = 3;
    last_number = watch;
    errno = ENOLCK;
    return -1;
}

static int my_add_timeout(int timeout_ms, sluice_event_timeout_callback callback, void *opaque,
                          sluice_event_free_callback free_opaque)
{
    last_call = callback == record_timeout && free_opaque == record_free ? 4 : -1;
    last_number = timeout_ms;
    last_opaque = opaque;
    return 42;
}

static void my_update_timeout(int timer, int timeout_ms)
{
    last_call = 5;
    last_number = timer;
    last_events = timeout_ms;
}

static int my_remove_timeout(int timer)
{
    last_call = 6;
    last_number = timer;
    return 0;
}

int main(void)
{
    struct record record = {0};

    errno = 0;
    CHECK_INT(-1, sluice_event_register_impl(my_add_handle, NULL, my_remove_handle, my_add_timeout, my_update_timeout,
                                             my_remove_timeout));
    CHECK_INT(EINVAL, errno);
    CHECK_INT(0, sluice_event_register_impl(my_add_handle, my_update_handle, my_remove_handle, my_add_timeout,
                                            my_update_timeout, my_remove_timeout));

    CHECK_INT(41, sluice_event_add_handle(-5, 3, record_handle, &record, record_free));
    CHECK_INT(1, last_call);
    CHECK_INT(-5, last_number);
    CHECK_INT(3, last_events);
    CHECK(last_opaque == &record);
    sluice_event_update_handle(41, 2);
    CHECK_INT(2, last_call);
    CHECK_INT(41, last_number);
    CHECK_INT(2, last_events);
    errno = 0;
    CHECK_INT(-1, sluice_event_remove_handle(41));
    CHECK_INT(3, last_call);
    CHECK_INT(ENOLCK, errno);
    last_opaque = NULL;
    CHECK_INT(42, sluice_event_add_timeout(700, record_timeout, &record, record_free));
    CHECK_INT(4, last_call);
    CHECK_INT(700, last_number);
    CHECK(last_opaque == &record);
    sluice_event_update_timeout(42, 9);
    CHECK_INT(5, last_call);
    CHECK_INT(42, last_number);
    CHECK_INT(9, last_events);
    CHECK_INT(0, sluice_event_remove_timeout(42));
    CHECK_INT(6, last_call);

    errno = 0;
    CHECK_INT(-1, sluice_event_run_default_impl());
    CHECK_INT(ENOSYS, errno);
    errno = 0;
    CHECK_INT(-1, sluice_event_register_default_impl());
    CHECK_INT(EBUSY, errno);
    errno = 0;
    CHECK_INT(-1, sluice_event_register_impl(my_add_handle, my_update_handle, my_remove_handle, my_add_timeout,
                                             my_update_timeout, my_remove_timeout));
    CHECK_INT(EBUSY, errno);
    printf("%d checks, %d failed\n", checks(), failures());
    return failures() != 0;
}
