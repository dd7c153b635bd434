/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a stranger to the tree writes in C99 against the installed library: a timer
 * that writes to a pipe, a watch that reads it, and a clean end. Prints the version
 * of the library it runs on.
 */

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sluice/event.h>

struct conversation {
    sluice_loop *loop;
    int ends[2];
    char heard[16];
    int timer;
    int watch;
    int freed;
};

static void on_timer(int timer, void *opaque)
{
    struct conversation *talk = opaque;

    if (write(talk->ends[1], "sluice", 6) != 6)
        perror("write");
    sluice_loop_remove_timeout(talk->loop, timer);
}

static void on_readable(int watch, int fd, int events, void *opaque)
{
    struct conversation *talk = opaque;

    if (!(events & SLUICE_EVENT_READABLE) || read(fd, talk->heard, sizeof talk->heard - 1) != 6)
        perror("read");
    sluice_loop_remove_handle(talk->loop, watch);
    sluice_loop_quit(talk->loop);
}

static void on_free(void *opaque)
{
    ((struct conversation *)opaque)->freed++;
}

int main(void)
{
    struct conversation talk = {0};
    int ok;

    talk.loop = sluice_loop_new(NULL);
    if (!talk.loop || pipe(talk.ends) < 0) {
        perror("set-up");
        return 1;
    }
    talk.watch = sluice_loop_add_handle(talk.loop, talk.ends[0], SLUICE_EVENT_READABLE, on_readable, &talk, on_free);
    talk.timer = sluice_loop_add_timeout(talk.loop, 1, on_timer, &talk, on_free);
    ok = talk.watch > 0 && talk.timer > 0 && sluice_loop_run(talk.loop) == 0 && sluice_loop_drain(talk.loop) == 0;
    sluice_loop_unref(talk.loop);
    if (!ok || strcmp(talk.heard, "sluice") != 0 || talk.freed != 2) {
        fprintf(stderr, "heard '%s', %d freed\n", talk.heard, talk.freed);
        return 1;
    }
    printf("%s\n", sluice_version());
    return strcmp(sluice_version(), SLUICE_VERSION) != 0;
}
