// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/autostart.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/async/ready.hpp"
#include "util/base/clock.hpp"
#include "util/base/printable.hpp"
#include "util/net/connect_error.hpp"
#include "util/net/format.hpp"
#include "util/net/spawn.hpp"

namespace sluice {

namespace {

constexpr int64_t pause_usec = 2'000;
constexpr int64_t pause_usec_max = 50'000;
// A daemon that ends at once may have made room for another, which is then about to listen.
constexpr int64_t grace_usec = 500'000;

bool nobody_there(const Error &error)
{
    return error.code == ENOENT || error.code == ECONNREFUSED;
}

// The lock that libvirt's client has: the first byte of the file. Whoever holds it
// removes the file at the end, so that one who has waited may have got it on a file
// that nobody else will ever lock: then the file is opened anew.
class StartLock {
public:
    explicit StartLock(std::string path) : path_(std::move(path)) {}
    StartLock(const StartLock &) = delete;
    StartLock &operator=(const StartLock &) = delete;
    ~StartLock()
    {
        if (held_)
            unlink(path_.c_str());
    }

    int open_file()
    {
        fd_.reset(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        return fd_ ? 0 : errno;
    }
    int try_lock()
    {
        struct flock range {};
        range.l_type = F_WRLCK;
        range.l_whence = SEEK_SET;
        range.l_len = 1;
        if (fcntl(fd_.get(), F_SETLK, &range) != 0)
            return errno;
        struct stat ours, present;
        if (fstat(fd_.get(), &ours) != 0)
            return errno;
        held_ = stat(path_.c_str(), &present) == 0 && ours.st_dev == present.st_dev && ours.st_ino == present.st_ino;
        if (held_)
            return 0;
        int code = open_file();
        return code == 0 ? EAGAIN : code;
    }

private:
    std::string path_;
    UniqueFd fd_;
    bool held_ = false;
};

// A copy of `options` with what is left of their timeout.
ConnectOptions remaining(const ConnectOptions &options, int64_t deadline)
{
    ConnectOptions copy = options;
    if (deadline != no_deadline)
        copy.timeout = std::chrono::microseconds(std::max<int64_t>(deadline - monotonic_usec(), 0));
    return copy;
}

Error ended_error(const Address &address, const DaemonStart &daemon)
{
    return connect_error(address,
                         Error{ECONNREFUSED, format(_("{} was started but ended at once; run it by hand to see "
                                                      "why"),
                                                    printable(daemon.binary))});
}

Error silent_error(const Address &address, const DaemonStart &daemon, const ConnectOptions &options)
{
    return connect_error(address, Error{ETIMEDOUT, format(_("{} was started but did not listen within {} s; run it by "
                                                            "hand to see why"),
                                                          printable(daemon.binary), in_seconds(options.timeout))});
}

// 0 when the lock is held, else an errno.
Task<int> take_lock(Loop loop, StartLock &lock, int64_t deadline)
{
    int code = lock.open_file();
    if (code != 0)
        co_return code;
    for (int64_t pause = pause_usec;; pause = std::min(pause * 2, pause_usec_max)) {
        code = lock.try_lock();
        if (code != EAGAIN && code != EACCES && code != EINTR)
            co_return code;
        if (monotonic_usec() >= deadline)
            co_return ETIMEDOUT;
        co_await loop.sleep_for(std::chrono::microseconds(pause));
    }
}

// Try until somebody listens; `ended` is readable when the daemon has come to its end.
Task<Result<UniqueFd>> await_daemon(Loop loop, Address address, DaemonStart daemon, ConnectOptions options,
                                    int64_t deadline, UniqueFd ended)
{
    ConnectOptions quietly;
    quietly.timeout = options.timeout;
    bool alone = false; // the daemon has ended: only another could still listen
    for (int64_t pause = pause_usec;; pause = std::min(pause * 2, pause_usec_max)) {
        int64_t until = std::min(deadline, monotonic_usec() + pause);
        if (ended) {
            int events = co_await ReadyBefore(loop, ended.get(), SLUICE_EVENT_READABLE, until);
            if (events != 0) {
                ended.reset();
                alone = true;
                deadline = std::min(deadline, monotonic_usec() + grace_usec);
            }
        } else {
            co_await loop.sleep_for(std::chrono::microseconds(std::max<int64_t>(until - monotonic_usec(), 0)));
        }
        auto fd = co_await connect_to(loop, address, remaining(quietly, deadline));
        if (fd)
            options.report("connected", printable(to_string(address)));
        if (fd || !nobody_there(fd.error()))
            co_return fd;
        if (monotonic_usec() >= deadline)
            co_return tl::unexpected<Error>(alone ? ended_error(address, daemon)
                                                  : silent_error(address, daemon, options));
    }
}

} // namespace

Task<Result<UniqueFd>> connect_or_start(Loop loop, Address address, DaemonStart daemon, ConnectOptions options)
{
    int64_t deadline = deadline_after(options.timeout.count(), monotonic_usec());
    auto first = co_await connect_to(loop, address, options);
    if (first || !nobody_there(first.error()))
        co_return first;

    if (g_mkdir_with_parents(daemon.run_dir.c_str(), 0700) != 0)
        co_return tl::unexpected<Error>(connect_error(
            address, Error::from_errno(errno, format(_("cannot make the folder {}"), printable(daemon.run_dir)))));
    StartLock lock(daemon.lock_path);
    int code = co_await take_lock(loop, lock, deadline);
    if (code != 0)
        co_return tl::unexpected<Error>(
            connect_error(address, Error::from_errno(code, format(_("cannot lock {}"), printable(daemon.lock_path)))));

    // whoever held the lock before us may have started it
    auto second = co_await connect_to(loop, address, remaining(options, deadline));
    if (second || !nobody_there(second.error()))
        co_return second;

    options.report("start", daemon.binary);
    auto ended = spawn_detached(daemon.binary, daemon.arguments);
    if (!ended)
        co_return tl::unexpected<Error>(connect_error(address, ended.error()));
    auto result = co_await await_daemon(loop, address, daemon, options, deadline, std::move(*ended));
    co_return result;
}

} // namespace sluice
