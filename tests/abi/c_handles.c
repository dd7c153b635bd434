/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Watches through the C ABI: what each call promises, one function a promise. */

#include "c_semantics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READABLE SLUICE_EVENT_READABLE
#define WRITABLE SLUICE_EVENT_WRITABLE

static int add(struct record *record, int fd, int events)
{
    return sluice_loop_add_handle(record->loop, fd, events, record_handle, record, record_free);
}

static void life_of_a_watch(sluice_loop *loop)
{
    struct record record = {.loop = loop, .take = true};
    int ends[2], watch;

    make_pipe(ends);
    watch = add(&record, ends[0], READABLE);
    CHECK(watch > 0);
    run_turns(loop, 3);
    CHECK_INT(0, record.calls);

    put_byte(ends[1]);
    CHECK(run_until(loop, &record.calls, 1));
    CHECK_INT(watch, record.id);
    CHECK_INT(ends[0], record.fd);
    CHECK_INT(READABLE, record.last);
    run_turns(loop, 3);
    CHECK_INT(1, record.calls);

    CHECK_INT(0, sluice_loop_update_handle(loop, watch, 0));
    put_byte(ends[1]);
    run_turns(loop, 5);
    CHECK_INT(1, record.calls);
    CHECK_INT(0, sluice_loop_update_handle(loop, watch, READABLE));
    CHECK(run_until(loop, &record.calls, 2));

    put_byte(ends[1]);
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(0, record.frees); /* on a clean stack, never inside the call */
    CHECK_INT(-ENOENT, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(-ENOENT, sluice_loop_update_handle(loop, watch, READABLE));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(2, record.calls);
    CHECK_INT(1, record.frees);
    close(ends[0]);
    close(ends[1]);
}

static void refused_calls(sluice_loop *loop)
{
    struct record record = {.loop = loop};
    int ends[2];

    make_pipe(ends);
    CHECK_INT(-EBADF, add(&record, -1, READABLE));
    CHECK_INT(-EINVAL, add(&record, ends[0], 1 << 20));
    CHECK_INT(-EINVAL, sluice_loop_add_handle(loop, ends[0], READABLE, NULL, &record, record_free));
    CHECK_INT(-ENOENT, sluice_loop_remove_handle(loop, 0));
    CHECK_INT(-ENOENT, sluice_loop_remove_handle(loop, -1));
    close(ends[0]);
    close(ends[1]);
    CHECK_INT(-EBADF, add(&record, ends[0], READABLE));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(0, record.frees); /* what was refused stays the caller's */
}

/* E9: 30 of 31 are removed in the first callback that runs. */
static void many_removed_at_once(sluice_loop *loop)
{
    struct record records[31];
    int ends[31][2], ids[31], i, round;

    for (round = 0; round < 4; round++) {
        int gone = 0, survivor_calls;

        memset(records, 0, sizeof records);
        for (i = 0; i < 31; i++) {
            make_pipe(ends[i]);
            put_byte(ends[i][1]);
            records[i].loop = loop;
            ids[i] = add(&records[i], ends[i][0], READABLE);
            CHECK(ids[i] > 0);
        }
        /* all are ready; whichever is called first removes all but the last */
        memcpy(records[0].remove, ids, 30 * sizeof ids[0]);
        for (i = 1; i < 30; i++)
            CHECK_INT(0, sluice_loop_update_handle(loop, ids[i], 0));
        CHECK(run_until(loop, &records[0].calls, 1));
        survivor_calls = records[30].calls;
        CHECK(run_until(loop, &records[30].calls, survivor_calls + 1));
        CHECK_INT(0, sluice_loop_remove_handle(loop, ids[30]));
        CHECK_INT(0, sluice_loop_drain(loop));
        for (i = 0; i < 31; i++) {
            gone += records[i].frees;
            close(ends[i][0]);
            close(ends[i][1]);
        }
        CHECK_INT(1, records[0].calls);
        CHECK_INT(31, gone);
    }
}

/* Of two that are ready together, the first to run removes the other. */
static void removed_although_collected(sluice_loop *loop)
{
    struct record first = {.loop = loop}, second = {.loop = loop};
    int a[2], b[2];

    make_pipe(a);
    make_pipe(b);
    put_byte(a[1]);
    put_byte(b[1]);
    second.remove[0] = add(&first, a[0], READABLE);
    first.remove[0] = add(&second, b[0], READABLE);
    /* whoever is called removes the other and goes on alone */
    run_turns(loop, 5);
    CHECK((first.calls > 0) != (second.calls > 0));
    CHECK_INT(1, first.frees + second.frees);
    CHECK_INT(1, (first.calls > 0 ? second : first).frees);
    CHECK_INT(0, sluice_loop_remove_handle(loop, first.calls > 0 ? first.id : second.id));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, first.frees);
    CHECK_INT(1, second.frees);
    close(a[0]);
    close(a[1]);
    close(b[0]);
    close(b[1]);
}

static void several_watches_on_one_fd(sluice_loop *loop)
{
    struct record reader = {.loop = loop}, writer = {.loop = loop}, parked = {.loop = loop};
    int ends[2], ids[3];

    make_pair(ends);
    ids[0] = add(&reader, ends[0], READABLE);
    ids[1] = add(&writer, ends[0], WRITABLE);
    ids[2] = add(&parked, ends[0], 0);
    CHECK(run_until(loop, &writer.calls, 2));
    CHECK_INT(0, reader.calls);
    CHECK_INT(WRITABLE, writer.seen);
    put_byte(ends[1]);
    CHECK(run_until(loop, &reader.calls, 1));
    CHECK_INT(READABLE, reader.seen);
    CHECK_INT(WRITABLE, writer.seen);
    CHECK_INT(0, sluice_loop_remove_handle(loop, ids[1]));
    writer.calls = 0;
    CHECK(run_until(loop, &reader.calls, reader.calls + 2));
    CHECK_INT(0, writer.calls);
    CHECK_INT(0, parked.calls);
    CHECK_INT(0, sluice_loop_remove_handle(loop, ids[0]));
    CHECK_INT(0, sluice_loop_remove_handle(loop, ids[2]));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(3, reader.frees + writer.frees + parked.frees);
    close(ends[0]);
    close(ends[1]);
}

/* E3: HANGUP comes unasked, and not to a watch that is parked. */
static void hang_up(sluice_loop *loop)
{
    struct record record = {.loop = loop}, parked = {.loop = loop};
    int ends[2], watch, resting;

    make_pair(ends);
    watch = add(&record, ends[0], READABLE);
    resting = add(&parked, ends[0], 0);
    close(ends[1]);
    CHECK(run_until(loop, &record.calls, 1));
    CHECK(record.seen & SLUICE_EVENT_HANGUP);
    CHECK_INT(0, sluice_loop_update_handle(loop, watch, 0));
    record.calls = 0;
    run_turns(loop, 20);
    CHECK_INT(0, record.calls);
    CHECK_INT(0, parked.calls);
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(0, sluice_loop_remove_handle(loop, resting));
    CHECK_INT(0, sluice_loop_drain(loop));
    close(ends[0]);
}

/* E2: closed while watched; then the number is used again and the watch updated. */
static void closed_behind_our_back(sluice_loop *loop)
{
    struct record record = {.loop = loop, .take = true};
    int ends[2], again[2], watch, number;

    make_pipe(ends);
    watch = add(&record, ends[0], READABLE);
    run_turns(loop, 2);
    number = ends[0];
    close(ends[0]);
    close(ends[1]);
    run_turns(loop, 200);
    CHECK(record.calls <= 1);
    CHECK((record.seen & ~SLUICE_EVENT_ERROR) == 0);

    make_pipe(again);
    if (again[0] != number && again[1] != number) {
        CHECK_INT(number, dup2(again[0], number));
        close(again[0]);
        again[0] = number;
    }
    CHECK_INT(number, again[0]);
    record.calls = record.seen = 0;
    CHECK_INT(0, sluice_loop_update_handle(loop, watch, READABLE));
    put_byte(again[1]);
    CHECK(run_until(loop, &record.calls, 1));
    CHECK_INT(READABLE, record.seen);
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, record.frees);
    close(again[0]);
    close(again[1]);
}

/* A regular file cannot be polled: it is always ready. */
static void regular_file(sluice_loop *loop, int fd)
{
    struct record record = {.loop = loop};
    int watch = add(&record, fd, READABLE);

    CHECK(watch > 0);
    CHECK(run_until(loop, &record.calls, 3));
    CHECK_INT(READABLE, record.seen);
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, record.frees);
}

struct toggled {
    sluice_loop *loop;
    int other;
    int calls;
};

static void off_and_on(int watch, int fd, int events, void *opaque)
{
    struct toggled *toggled = opaque;
    char byte;

    (void)watch;
    (void)events;
    if (read(fd, &byte, 1) != 1)
        return;
    CHECK_INT(0, sluice_loop_update_handle(toggled->loop, toggled->other, 0));
    CHECK_INT(0, sluice_loop_update_handle(toggled->loop, toggled->other, READABLE));
    toggled->calls++;
}

/* A change that is undone before the loop polls again costs no system call. */
static void undone_change(sluice_loop *loop)
{
    struct sluice_loop_stats before, after;
    struct record idle = {.loop = loop};
    struct toggled toggled = {.loop = loop};
    int a[2], b[2], watch;

    make_pipe(a);
    make_pipe(b);
    toggled.other = add(&idle, a[0], READABLE);
    watch = sluice_loop_add_handle(loop, b[0], READABLE, off_and_on, &toggled, NULL);
    run_turns(loop, 2);
    sluice_loop_get_stats(loop, &before, sizeof before);
    put_byte(b[1]);
    CHECK(run_until(loop, &toggled.calls, 1));
    run_turns(loop, 2);
    sluice_loop_get_stats(loop, &after, sizeof after);
    CHECK_INT((long long)before.kernel_changes, (long long)after.kernel_changes);
    put_byte(a[1]); /* and it is on */
    CHECK(run_until(loop, &idle.calls, 1));
    CHECK_INT(0, sluice_loop_remove_handle(loop, toggled.other));
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK_INT(0, sluice_loop_drain(loop));
    close(a[0]);
    close(a[1]);
    close(b[0]);
    close(b[1]);
}

void test_handles(void)
{
    sluice_loop *loop = make_loop();
    char path[] = "/tmp/sluice-c-XXXXXX";
    int file = mkstemp(path);

    life_of_a_watch(loop);
    refused_calls(loop);
    many_removed_at_once(loop);
    removed_although_collected(loop);
    several_watches_on_one_fd(loop);
    hang_up(loop);
    closed_behind_our_back(loop);
    CHECK(file >= 0);
    regular_file(loop, file);
    undone_change(loop);
    close(file);
    unlink(path);
    sluice_loop_unref(loop);
}
