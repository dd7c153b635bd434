/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The C ABI end to end, from C99. Which backend and which release strategy are used,
 * the environment says (SLUICE_BACKEND, SLUICE_SOURCE_RELEASE); it is run with each,
 * and again under valgrind.
 */

#include "c_semantics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The strategy that was asked for is the one at work, where sources are released at all. */
static void check_strategy(void)
{
    const char *forced = getenv("SLUICE_SOURCE_RELEASE");
    struct sluice_loop_stats stats;
    struct record record = {0};
    sluice_loop *loop = make_loop();
    int timer = sluice_loop_add_timeout(loop, 1, record_timeout, &record, record_free);

    sluice_loop_iterate(loop, 0); /* the backend has made what it needs for the timer */
    CHECK_INT(0, sluice_loop_remove_timeout(loop, timer));
    CHECK_INT(0, sluice_loop_drain(loop));
    sluice_loop_get_stats(loop, &stats, sizeof stats);
    if (sluice_loop_get_backend(loop) == SLUICE_BACKEND_GSOURCE) {
        CHECK(stats.releases_immediate + stats.releases_deferred > 0);
        if (forced && strcmp(forced, "deferred") == 0)
            CHECK_INT(0, (long long)stats.releases_immediate);
        if (forced && strcmp(forced, "immediate") == 0)
            CHECK_INT(0, (long long)stats.releases_deferred);
    }
    sluice_loop_unref(loop);
}

int main(void)
{
    test_handles();
    test_timeouts();
    test_loops();
    test_threads();
    test_default_loop();
    check_strategy();
    printf("%d checks, %d failed\n", checks(), failures());
    return failures() != 0;
}
