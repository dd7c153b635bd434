/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "c_semantics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int failed;
static int made;

void check_that(bool holds, const char *text, const char *file, int line)
{
    made++;
    if (!holds) {
        failed++;
        fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    }
}

void check_int(long long wanted, long long got, const char *text, const char *file, int line)
{
    made++;
    if (wanted != got) {
        failed++;
        fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, text, got, wanted);
    }
}

int failures(void)
{
    return failed;
}

int checks(void)
{
    return made;
}

static void remove_listed(struct record *record)
{
    int i;

    for (i = 0; i < 32 && record->remove[i]; i++)
        CHECK_INT(0, sluice_loop_remove_handle(record->loop, record->remove[i]));
    memset(record->remove, 0, sizeof record->remove);
}

void record_handle(int watch, int fd, int events, void *opaque)
{
    struct record *record = opaque;
    char byte;

    record->id = watch;
    record->fd = fd;
    record->calls++;
    record->seen |= events;
    record->last = events;
    record->usec = now_usec();
    if (record->take && (events & SLUICE_EVENT_READABLE) && read(fd, &byte, 1) < 0)
        perror("read");
    remove_listed(record);
}

void record_timeout(int timer, void *opaque)
{
    struct record *record = opaque;

    record->id = timer;
    record->calls++;
    record->usec = now_usec();
}

void record_free(void *opaque)
{
    ((struct record *)opaque)->frees++;
}

int64_t now_usec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void out_of_time(int timer, void *opaque)
{
    (void)timer;
    *(bool *)opaque = true;
}

bool run_until(sluice_loop *loop, const int *counter, int wanted)
{
    bool late = false;
    int guard = sluice_loop_add_timeout(loop, 30000, out_of_time, &late, NULL);

    CHECK(guard > 0);
    while (*counter < wanted && !late)
        CHECK(sluice_loop_iterate(loop, 1) >= 0);
    CHECK_INT(0, sluice_loop_remove_timeout(loop, guard));
    return *counter >= wanted;
}

void run_turns(sluice_loop *loop, int count)
{
    while (count-- > 0)
        CHECK(sluice_loop_iterate(loop, 0) >= 0);
}

static void give_up(const char *what)
{
    perror(what);
    exit(70);
}

void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        give_up("pipe2");
}

void make_pair(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        give_up("socketpair");
}

void put_byte(int fd)
{
    if (write(fd, "x", 1) != 1)
        give_up("write");
}

sluice_loop *make_loop(void)
{
    sluice_loop *loop = sluice_loop_new(NULL);

    if (!loop)
        give_up("sluice_loop_new");
    return loop;
}
