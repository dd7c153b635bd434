/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loop objects, event threads and the default loop through the C ABI. */

#include "c_semantics.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void drain_inside(int timer, void *opaque)
{
    struct record *record = opaque;

    (void)timer;
    CHECK_INT(-EDEADLK, sluice_loop_drain(record->loop));
    record->calls++;
}

static void run_and_quit(sluice_loop *loop)
{
    struct record record = {.loop = loop};
    int timer = sluice_loop_add_timeout(loop, 1, drain_inside, &record, record_free);

    sluice_loop_quit(loop); /* before: the next run returns at once */
    CHECK_INT(0, sluice_loop_run(loop));
    CHECK(run_until(loop, &record.calls, 1));
    CHECK_INT(0, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(0, sluice_loop_drain(loop));
    sluice_loop_wake(loop); /* a wake-up that came before the wait ends it */
    CHECK(sluice_loop_iterate(loop, 1) >= 0);
    CHECK_INT(1, record.frees);
}

/* With the last reference everything is let go, before unref returns. */
static void last_reference(void)
{
    struct record handle = {0}, timeout = {0};
    sluice_loop *loop = make_loop();
    int ends[2];

    make_pipe(ends);
    CHECK(sluice_loop_add_handle(loop, ends[0], SLUICE_EVENT_READABLE, record_handle, &handle, record_free) > 0);
    CHECK(sluice_loop_add_timeout(loop, 1000, record_timeout, &timeout, record_free) > 0);
    CHECK(sluice_loop_ref(loop) == loop);
    sluice_loop_unref(loop);
    CHECK_INT(0, handle.frees + timeout.frees);
    sluice_loop_unref(loop);
    CHECK_INT(1, handle.frees);
    CHECK_INT(1, timeout.frees);
    CHECK_INT(0, handle.calls + timeout.calls);
    sluice_loop_unref(NULL);
    close(ends[0]);
    close(ends[1]);
}

/* Older and newer callers than the library. */
static void stats_of_any_size(sluice_loop *loop)
{
    struct {
        struct sluice_loop_stats known;
        uint64_t future;
    } larger;
    uint64_t handles_only[2] = {77, 77};

    memset(&larger, 0xff, sizeof larger);
    CHECK_INT(0, sluice_loop_get_stats(loop, &larger.known, sizeof larger));
    CHECK_INT(0, (long long)larger.future);
    CHECK_INT(0, (long long)larger.known.handles);
    CHECK_INT(0, sluice_loop_get_stats(loop, (struct sluice_loop_stats *)handles_only, sizeof handles_only[0]));
    CHECK_INT(0, (long long)handles_only[0]);
    CHECK_INT(77, (long long)handles_only[1]);
}

static void choice_of_backend(void)
{
    const int backends[] = {SLUICE_BACKEND_EPOLL, SLUICE_BACKEND_GSOURCE};
    const char *forced = getenv("SLUICE_BACKEND");
    sluice_loop *loop;
    int i;

    for (i = 0; i < 2; i++) {
        loop = sluice_loop_new_with_backend(NULL, backends[i]);
        CHECK(loop);
        CHECK_INT(backends[i], sluice_loop_get_backend(loop));
        CHECK(sluice_loop_get_context(loop));
        sluice_loop_unref(loop);
    }
    errno = 0;
    CHECK(!sluice_loop_new_with_backend(NULL, 99));
    CHECK_INT(EINVAL, errno);
    loop = make_loop();
    CHECK_INT(forced && strcmp(forced, "gsource") == 0 ? SLUICE_BACKEND_GSOURCE : SLUICE_BACKEND_EPOLL,
              sluice_loop_get_backend(loop));
    sluice_loop_unref(loop);
}

void test_loops(void)
{
    sluice_loop *loop = make_loop();

    run_and_quit(loop);
    stats_of_any_size(loop);
    sluice_loop_unref(loop);
    last_reference();
    choice_of_backend();
    CHECK(strcmp(sluice_version(), SLUICE_VERSION) == 0);
}

/* --- event threads ------------------------------------------------------------ */

/* Lets the test wait for what another thread's loop does. */
struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    sluice_thread *thread; /* released by the callback, if set */
    pthread_t runner;
    int calls;
    int frees;
};

static void tell(struct shared *shared, int *counter)
{
    pthread_mutex_lock(&shared->mutex);
    ++*counter;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
}

static bool wait_for(struct shared *shared, const int *counter, int wanted)
{
    struct timespec until;
    int status = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&shared->mutex);
    while (*counter < wanted && status == 0)
        status = pthread_cond_timedwait(&shared->changed, &shared->mutex, &until);
    pthread_mutex_unlock(&shared->mutex);
    return status == 0;
}

static void on_ready(int watch, int fd, int events, void *opaque)
{
    struct shared *shared = opaque;
    sluice_thread *thread;
    char byte;

    (void)watch;
    (void)events;
    if (read(fd, &byte, 1) != 1)
        return;
    shared->runner = pthread_self();
    thread = shared->thread;
    shared->thread = NULL;
    sluice_thread_unref(thread);
    tell(shared, &shared->calls);
}

static void on_free(void *opaque)
{
    struct shared *shared = opaque;

    tell(shared, &shared->frees);
}

static void released_from_outside(void)
{
    struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    sluice_thread *thread = sluice_thread_new("sluice-c-test");
    sluice_loop *loop;
    int ends[2], watch;

    CHECK(thread);
    loop = sluice_thread_get_loop(thread);
    CHECK(sluice_thread_get_context(thread) == sluice_loop_get_context(loop));
    make_pipe(ends);
    watch = sluice_loop_add_handle(loop, ends[0], SLUICE_EVENT_READABLE, on_ready, &shared, on_free);
    CHECK(watch > 0);
    put_byte(ends[1]);
    CHECK(wait_for(&shared, &shared.calls, 1));
    CHECK(!pthread_equal(pthread_self(), shared.runner));
    CHECK_INT(0, sluice_loop_remove_handle(loop, watch));
    CHECK(wait_for(&shared, &shared.frees, 1));

    watch = sluice_loop_add_handle(loop, ends[0], SLUICE_EVENT_READABLE, on_ready, &shared, on_free);
    CHECK_INT(-EBUSY, sluice_loop_iterate(loop, 0));
    sluice_thread_ref(thread);
    sluice_thread_unref(thread);
    sluice_thread_unref(thread);
    CHECK_INT(2, shared.frees); /* the thread is gone, and has let go of the rest */
    close(ends[0]);
    close(ends[1]);
}

/* E13: the last reference is dropped in a callback on the thread itself. */
static void released_from_inside(void)
{
    struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int ends[2];

    make_pipe(ends);
    shared.thread = sluice_thread_new("sluice-c-self");
    CHECK(shared.thread);
    CHECK(sluice_loop_add_handle(sluice_thread_get_loop(shared.thread), ends[0], SLUICE_EVENT_READABLE, on_ready,
                                 &shared, on_free) > 0);
    put_byte(ends[1]);
    CHECK(wait_for(&shared, &shared.frees, 1));
    CHECK_INT(1, shared.calls);
    close(ends[0]);
    close(ends[1]);
}

void test_threads(void)
{
    released_from_outside();
    released_from_inside();
    sluice_thread_unref(NULL);
}

/* --- the default loop --------------------------------------------------------- */

void test_default_loop(void)
{
    struct record handle = {.take = true}, timeout = {0};
    int ends[2], watch, timer, turns;

    handle.loop = timeout.loop = sluice_loop_default();
    CHECK_INT(0, sluice_event_register_default_impl());
    CHECK_INT(0, sluice_event_register_default_impl());
    errno = 0;
    CHECK_INT(-1, sluice_event_add_handle(-1, SLUICE_EVENT_READABLE, record_handle, &handle, record_free));
    CHECK_INT(EBADF, errno);
    errno = 0;
    CHECK_INT(-1, sluice_event_add_timeout(1, NULL, NULL, NULL));
    CHECK_INT(EINVAL, errno);

    make_pipe(ends);
    watch = sluice_event_add_handle(ends[0], 0, record_handle, &handle, record_free);
    timer = sluice_event_add_timeout(-1, record_timeout, &timeout, record_free);
    CHECK(watch > 0 && timer > 0);
    put_byte(ends[1]);
    sluice_event_update_handle(watch, SLUICE_EVENT_READABLE);
    sluice_event_update_timeout(timer, 2);
    for (turns = 0; (handle.calls < 1 || timeout.calls < 2) && turns < 100000; turns++)
        CHECK_INT(0, sluice_event_run_default_impl());
    CHECK_INT(1, handle.calls);
    CHECK_INT(watch, handle.id);
    CHECK_INT(timer, timeout.id);
    CHECK_INT(0, sluice_event_remove_handle(watch));
    CHECK_INT(0, sluice_event_remove_timeout(timer));
    errno = 0;
    CHECK_INT(-1, sluice_event_remove_handle(watch));
    CHECK_INT(ENOENT, errno);
    errno = 0;
    CHECK_INT(-1, sluice_event_remove_timeout(timer));
    CHECK_INT(ENOENT, errno);
    errno = 0;
    sluice_event_update_handle(watch, 0);
    CHECK_INT(ENOENT, errno);
    errno = 0;
    sluice_event_update_timeout(timer, 0);
    CHECK_INT(ENOENT, errno);
    CHECK_INT(0, sluice_loop_drain(sluice_loop_default()));
    CHECK_INT(1, handle.frees);
    CHECK_INT(1, timeout.frees);
    errno = 0;
    CHECK_INT(-1, sluice_event_register_impl(sluice_event_add_handle, sluice_event_update_handle,
                                             sluice_event_remove_handle, sluice_event_add_timeout,
                                             sluice_event_update_timeout, sluice_event_remove_timeout));
    CHECK_INT(EBUSY, errno);
    close(ends[0]);
    close(ends[1]);
}
