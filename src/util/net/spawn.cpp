// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/spawn.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

// What libvirt passes to a session daemon that it starts, LC_ALL=C apart.
constexpr const char *passed_variables[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
};

// What the new process tells: first who it is, then, if exec fails, why.
struct Status {
    pid_t pid;
    int code;
};

constexpr int status_fd = 3;

// All that the child needs, made before the fork: after it, with threads about, only
// async-signal-safe calls are allowed.
struct Prepared {
    std::vector<char *> arguments;
    std::vector<char *> environment;
    int null_fd;
    int status_fd;
};

std::vector<std::string> daemon_environment()
{
    std::vector<std::string> environment{"LC_ALL=C"};
    for (const char *name : passed_variables) {
        if (const char *value = std::getenv(name))
            environment.push_back(std::string(name) + "=" + value);
    }
    return environment;
}

std::vector<char *> pointers_to(std::vector<std::string> &texts)
{
    std::vector<char *> pointers;
    for (std::string &text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Our own stdin or stdout may be closed: then 0 to 2 are handed out anew, and would
// be overwritten before they are used.
Result<UniqueFd> above_stdio(UniqueFd fd)
{
    if (fd.get() > STDERR_FILENO)
        return fd;
    UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, status_fd));
    if (!moved)
        return fail_errno(errno, "fcntl");
    return moved;
}

void close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    long end = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < (end > 0 && end < 65536 ? end : 65536); ++fd)
        close(fd);
}

[[noreturn]] void become_daemon(const Prepared &prepared)
{
    // an ignored signal would stay ignored in the new program
    for (int signal = 1; signal < NSIG; ++signal)
        ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        dup2(prepared.null_fd, fd);
    if (prepared.status_fd != status_fd)
        dup3(prepared.status_fd, status_fd, O_CLOEXEC);
    close_from(status_fd + 1);

    Status status{getpid(), 0};
    if (write(status_fd, &status, sizeof status) != sizeof status || chdir("/") != 0)
        _exit(EXIT_FAILURE);
    execve(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
    status.code = errno;
    (void)!write(status_fd, &status, sizeof status);
    _exit(127);
}

// Twice, so that init adopts the daemon and nobody here has to reap it.
pid_t fork_twice(const Prepared &prepared)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    setsid();
    pid_t daemon = fork();
    if (daemon != 0)
        _exit(daemon > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    become_daemon(prepared);
}

bool read_status(int fd, Status &status)
{
    ssize_t got;
    do {
        got = read(fd, &status, sizeof status);
    } while (got < 0 && errno == EINTR);
    return got == sizeof status;
}

UniqueFd pidfd_of(pid_t pid)
{
#ifdef SYS_pidfd_open
    return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#else
    (void)pid;
    return UniqueFd();
#endif
}

} // namespace

Result<UniqueFd> spawn_detached(const std::string &binary, const std::vector<std::string> &arguments)
{
    auto failed = [&binary](int code) { return fail_errno(code, format(_("cannot start {}"), printable(binary))); };
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return failed(errno);
    UniqueFd status_reader(fds[0]);
    auto status_writer = above_stdio(UniqueFd(fds[1]));
    if (!status_writer)
        return failed(status_writer.error().code);
    UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null)
        return failed(errno);
    auto null_fd = above_stdio(std::move(null));
    if (!null_fd)
        return failed(null_fd.error().code);

    std::vector<std::string> all_arguments{binary};
    all_arguments.insert(all_arguments.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = daemon_environment();
    Prepared prepared{pointers_to(all_arguments), pointers_to(environment), null_fd->get(), status_writer->get()};

    // no handler of ours may run in the child
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork_twice(prepared);
    int fork_code = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0)
        return failed(fork_code);

    status_writer->reset();
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    Status status;
    if (!read_status(status_reader.get(), status))
        return failed(EAGAIN); // the second fork failed
    pid_t daemon = status.pid;
    if (read_status(status_reader.get(), status))
        return failed(status.code);
    return pidfd_of(daemon);
}

} // namespace sluice
