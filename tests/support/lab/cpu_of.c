/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cpu_of RECORD COMMAND [ARGUMENT...]: run COMMAND and append what it cost to RECORD, as one line
 *
 *     WALL_S USER_S SYSTEM_S MAXRSS_KIB STATUS
 *
 * with microseconds, where a shell's own `time` stops at milliseconds and GNU time at 10 ms. Exits as COMMAND did;
 * COMMAND does not outlive it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t child;

static void pass_on(int signal_number)
{
    if (child > 0)
        kill((pid_t)child, signal_number);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_child(char **command, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    fprintf(stderr, "cpu_of: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: cpu_of RECORD COMMAND [ARGUMENT...]\n", stderr);
        return 64;
    }
    int record = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (record < 0) {
        fprintf(stderr, "cpu_of: %s: %s\n", argv[1], strerror(errno));
        return 74;
    }

    /* Held back until there is a child to pass them on to. */
    const int passed_on[] = {SIGHUP, SIGINT, SIGTERM};
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&held, passed_on[i]);
    sigprocmask(SIG_BLOCK, &held, &before);

    double start = now();
    pid_t pid = fork();
    if (pid < 0) {
        perror("cpu_of: fork");
        return 71;
    }
    if (pid == 0)
        run_child(argv + 2, &before);
    child = pid;
    /* The relay's own ends must be the last ones: an end of file would not come through past ours. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = pass_on;
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaction(passed_on[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);

    int status;
    struct rusage used;
    while (wait4(pid, &status, 0, &used) < 0) {
        if (errno != EINTR) {
            perror("cpu_of: wait4");
            return 71;
        }
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

    char line[128];
    int length = snprintf(line, sizeof line, "%.6f %.6f %.6f %ld %d\n", now() - start, seconds(used.ru_utime),
                          seconds(used.ru_stime), used.ru_maxrss, code);
    if (write(record, line, (size_t)length) != length) {
        fprintf(stderr, "cpu_of: %s: %s\n", argv[1], strerror(errno));
        return 74;
    }
    return code;
}
