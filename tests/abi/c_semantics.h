/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SLUICE_TESTS_ABI_C_SEMANTICS_H
#define SLUICE_TESTS_ABI_C_SEMANTICS_H

/*
 * What the C test programs share: checks that print where they failed, records of the
 * calls that came in, and waiting for a condition by running turns. The wait is
 * bounded by a timer of the loop itself, so that nothing here sleeps.
 */

#include <stdbool.h>
#include <stdint.h>

#include <sluice/event.h>

/* A failed check is counted, and the test goes on. */
#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_INT(wanted, got) check_int((wanted), (got), #got, __FILE__, __LINE__)

void check_that(bool holds, const char *text, const char *file, int line);
void check_int(long long wanted, long long got, const char *text, const char *file, int line);
/* Number of checks that failed so far, and of those made. */
int failures(void);
int checks(void);

/* What happened to one registration. Zeroed by its owner before use. */
struct record {
    sluice_loop *loop;
    int id;         /* id of the last call */
    int fd;         /* fd of the last call */
    int calls;      /* callbacks run */
    int frees;      /* free functions run */
    int seen;       /* all events seen, or'ed */
    int last;       /* events of the last call */
    bool take;      /* read one byte of the fd in each callback */
    int remove[32]; /* ids to remove in the callback; 0 ends the list */
    int64_t usec;   /* time of the last call */
};

/* Callbacks that write down the call in a `struct record`. */
void record_handle(int watch, int fd, int events, void *opaque);
void record_timeout(int timer, void *opaque);
void record_free(void *opaque);

int64_t now_usec(void);

/* Run turns until *counter >= wanted; false if that took unreasonably long. */
bool run_until(sluice_loop *loop, const int *counter, int wanted);
/* Run `count` turns that do not wait. */
void run_turns(sluice_loop *loop, int count);

/* A pipe, or socket pair, with both ends non-blocking; leaves the program if there is none. */
void make_pipe(int ends[2]);
void make_pair(int ends[2]);
void put_byte(int fd);

sluice_loop *make_loop(void);

/* The tests, by file. */
void test_handles(void);
void test_timeouts(void);
void test_loops(void);
void test_threads(void);
void test_default_loop(void);

#endif
