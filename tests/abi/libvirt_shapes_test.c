/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The six default-loop calls are libvirt's in shape and value: assigned here without
 * a cast, so that any difference is a compile error, in C as in C++ (this file is
 * compiled as both). At run time the flags are compared with those of libvirt's header.
 */

#include <stdio.h>

#include <libvirt/libvirt.h>
#include <sluice/event.h>

struct pair {
    const char *name;
    int ours;
    int theirs;
};

/* The callbacks, too, are the same types: a libvirt one is good for us. */
static void on_handle(int watch, int fd, int events, void *opaque)
{
    (void)watch;
    (void)fd;
    (void)events;
    (void)opaque;
}

static void on_timeout(int timer, void *opaque)
{
    (void)timer;
    (void)opaque;
}

static void on_free(void *opaque)
{
    (void)opaque;
}

int main(void)
{
    const virEventAddHandleFunc add_handle = sluice_event_add_handle;
    const virEventUpdateHandleFunc update_handle = sluice_event_update_handle;
    const virEventRemoveHandleFunc remove_handle = sluice_event_remove_handle;
    const virEventAddTimeoutFunc add_timeout = sluice_event_add_timeout;
    const virEventUpdateTimeoutFunc update_timeout = sluice_event_update_timeout;
    const virEventRemoveTimeoutFunc remove_timeout = sluice_event_remove_timeout;

    const sluice_event_add_handle_func their_add_handle = virEventAddHandle;
    const sluice_event_update_handle_func their_update_handle = virEventUpdateHandle;
    const sluice_event_remove_handle_func their_remove_handle = virEventRemoveHandle;
    const sluice_event_add_timeout_func their_add_timeout = virEventAddTimeout;
    const sluice_event_update_timeout_func their_update_timeout = virEventUpdateTimeout;
    const sluice_event_remove_timeout_func their_remove_timeout = virEventRemoveTimeout;

    const virEventHandleCallback handle_callback = on_handle;
    const virEventTimeoutCallback timeout_callback = on_timeout;
    const virFreeCallback free_callback = on_free;
    const sluice_event_handle_callback our_handle_callback = handle_callback;
    const sluice_event_timeout_callback our_timeout_callback = timeout_callback;
    const sluice_event_free_callback our_free_callback = free_callback;

    const struct pair pairs[] = {
        {"READABLE", SLUICE_EVENT_READABLE, VIR_EVENT_HANDLE_READABLE},
        {"WRITABLE", SLUICE_EVENT_WRITABLE, VIR_EVENT_HANDLE_WRITABLE},
        {"ERROR", SLUICE_EVENT_ERROR, VIR_EVENT_HANDLE_ERROR},
        {"HANGUP", SLUICE_EVENT_HANGUP, VIR_EVENT_HANDLE_HANGUP},
    };
    int failures = 0;
    size_t i;

    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].ours != pairs[i].theirs) {
            fprintf(stderr, "%s is %d, libvirt has %d\n", pairs[i].name, pairs[i].ours, pairs[i].theirs);
            failures++;
        }
    }
    (void)add_handle;
    (void)update_handle;
    (void)remove_handle;
    (void)add_timeout;
    (void)update_timeout;
    (void)remove_timeout;
    (void)their_add_handle;
    (void)their_update_handle;
    (void)their_remove_handle;
    (void)their_add_timeout;
    (void)their_update_timeout;
    (void)their_remove_timeout;
    (void)our_handle_callback;
    (void)our_timeout_callback;
    (void)our_free_callback;
    return failures != 0;
}
