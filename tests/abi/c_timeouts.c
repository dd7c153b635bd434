/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Timers through the C ABI. No check here depends on how late a timer is. */

#include "c_semantics.h"

#include <errno.h>

static int add(struct record *record, int timeout_ms)
{
    return sluice_loop_add_timeout(record->loop, timeout_ms, record_timeout, record, record_free);
}

static void periodic_and_never_early(sluice_loop *loop)
{
    struct record record = {.loop = loop};
    int64_t start = now_usec();
    int timer = add(&record, 5), round;

    CHECK(timer > 0);
    for (round = 1; round <= 4; round++) {
        CHECK(run_until(loop, &record.calls, round));
        CHECK_INT(round, record.calls);
        CHECK_INT(timer, record.id);
        CHECK(record.usec - start >= 5000 * round);
    }
    CHECK_INT(0, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(0, record.frees);
    CHECK_INT(-ENOENT, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(-ENOENT, sluice_loop_update_timeout(loop, timer, 1));
    CHECK_INT(-ENOENT, sluice_loop_update_timeout_usec(loop, timer, 1));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, record.frees);
}

static void parked_and_started(sluice_loop *loop)
{
    struct record record = {.loop = loop}, other = {.loop = loop};
    int timer = add(&record, -1), pace = add(&other, 1);
    int64_t start;

    CHECK(run_until(loop, &other.calls, 5));
    CHECK_INT(0, record.calls);
    start = now_usec();
    CHECK_INT(0, sluice_loop_update_timeout_usec(loop, timer, 2500));
    CHECK(run_until(loop, &record.calls, 1));
    CHECK(record.usec - start >= 2500);
    CHECK_INT(0, sluice_loop_update_timeout(loop, timer, -1));
    record.calls = other.calls = 0;
    CHECK(run_until(loop, &other.calls, 5));
    CHECK_INT(0, record.calls);
    CHECK_INT(0, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(0, sluice_loop_remove_timeout(loop, pace));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(2, record.frees + other.frees);
}

/* Free functions are not starved by a timer that is always due. */
static void every_turn(sluice_loop *loop)
{
    struct record always = {.loop = loop}, gone = {.loop = loop};
    int timer = add(&always, 0), brief = add(&gone, 1000), turn;

    for (turn = 1; turn <= 3; turn++) {
        CHECK_INT(1, sluice_loop_iterate(loop, 1));
        CHECK_INT(turn, always.calls);
    }
    CHECK_INT(0, sluice_loop_remove_timeout(loop, brief));
    CHECK(run_until(loop, &gone.frees, 1));
    CHECK(always.calls < 100);
    CHECK_INT(0, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, always.frees);
    CHECK_INT(1, gone.frees);
}

struct self_removing {
    sluice_loop *loop;
    int calls;
    int frees;
    int added;
    struct record next;
};

static void remove_myself(int timer, void *opaque)
{
    struct self_removing *self = opaque;

    self->calls++;
    CHECK_INT(0, sluice_loop_remove_timeout(self->loop, timer));
    CHECK_INT(0, self->frees);
}

static void add_another(void *opaque)
{
    struct self_removing *self = opaque;

    self->frees++;
    self->added = sluice_loop_add_timeout(self->loop, 1, record_timeout, &self->next, record_free);
}

/* E5: a free function may call the API. Ids are not used twice. */
static void free_function_adds(sluice_loop *loop)
{
    struct self_removing self = {.loop = loop};
    int timer = sluice_loop_add_timeout(loop, 1, remove_myself, &self, add_another);

    self.next.loop = loop;
    CHECK(timer > 0);
    CHECK(run_until(loop, &self.next.calls, 2));
    CHECK_INT(1, self.calls);
    CHECK_INT(1, self.frees);
    CHECK(self.added > 0);
    CHECK(self.added != timer);
    CHECK_INT(0, sluice_loop_remove_timeout(loop, self.added));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(1, self.next.frees);
}

static void many(sluice_loop *loop)
{
    struct record record = {.loop = loop};
    struct sluice_loop_stats before, stats;
    int ids[500], i;

    sluice_loop_get_stats(loop, &before, sizeof before);
    for (i = 0; i < 500; i++) {
        ids[i] = add(&record, 1 + i % 7);
        CHECK(ids[i] > 0 && (i == 0 || ids[i] != ids[i - 1]));
    }
    CHECK(run_until(loop, &record.calls, 1000));
    for (i = 0; i < 500; i += 2)
        CHECK_INT(0, sluice_loop_remove_timeout(loop, ids[i]));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(250, record.frees);
    sluice_loop_get_stats(loop, &stats, sizeof stats);
    CHECK_INT(250, (long long)stats.timeouts);
    CHECK(stats.expirations - before.expirations >= 1000);
    CHECK_INT(251, (long long)(stats.frees - before.frees)); /* and the guard of the wait */
    for (i = 1; i < 500; i += 2)
        CHECK_INT(0, sluice_loop_remove_timeout(loop, ids[i]));
    CHECK_INT(0, sluice_loop_drain(loop));
    CHECK_INT(500, record.frees);
}

void test_timeouts(void)
{
    sluice_loop *loop = make_loop();

    CHECK_INT(-EINVAL, sluice_loop_add_timeout(loop, 1, NULL, NULL, NULL));
    periodic_and_never_early(loop);
    parked_and_started(loop);
    every_turn(loop);
    free_function_adds(loop);
    many(loop);
    sluice_loop_unref(loop);
}
