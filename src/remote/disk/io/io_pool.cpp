// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/disk/io/io_pool.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "util/async/post.hpp"
#include "util/async/waiters.hpp"

namespace sluice::disk {
namespace {

// From `offset` on until `into` is full or the file ends, which is what it gives; or -errno.
ssize_t read_some(int fd, uint64_t offset, std::span<std::byte> into, int flags)
{
    size_t done = 0;
    while (done < into.size()) {
        iovec part{into.data() + done, into.size() - done};
        ssize_t n = preadv2(fd, &part, 1, static_cast<off_t>(offset + done), flags);
        if (n == 0)
            break;
        if (n > 0)
            done += static_cast<size_t>(n);
        else if (errno != EINTR)
            return done > 0 && flags != 0 ? static_cast<ssize_t>(done) : -errno;
    }
    return static_cast<ssize_t>(done);
}

int read_all(int fd, uint64_t offset, std::span<std::byte> into)
{
    ssize_t n = read_some(fd, offset, into, 0);
    if (n < 0)
        return static_cast<int>(-n);
    std::memset(into.data() + n, 0, into.size() - static_cast<size_t>(n));
    return 0;
}

int write_all(int fd, uint64_t offset, std::span<const std::byte> from)
{
    while (!from.empty()) {
        ssize_t n = pwrite(fd, from.data(), from.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        offset += static_cast<uint64_t>(n);
        from = from.subspan(static_cast<size_t>(n));
    }
    return 0;
}

Result<void> result_of(int error)
{
    if (error != 0)
        return fail_errno(error, "file");
    return {};
}

} // namespace

// What the threads share with the loop. Results gather in `done`, and one message to the
// loop fetches all that have gathered by then.
struct IoPool::Core : std::enable_shared_from_this<Core> {
    struct Job {
        std::function<int()> call;
        OneShot<int> *result;
        int error = 0;
    };

    Core(Loop of_loop, unsigned most) : loop(std::move(of_loop)), threads_max(most) {}

    void add(Job job)
    {
        std::unique_lock lock(mutex);
        jobs.push_back(std::move(job));
        if (idle == 0 && threads.size() < threads_max)
            threads.emplace_back([this] { work(); });
        lock.unlock();
        wanted.notify_one();
    }

    void work()
    {
        std::unique_lock lock(mutex);
        for (;;) {
            ++idle;
            wanted.wait(lock, [this] { return ending || !jobs.empty(); });
            --idle;
            if (jobs.empty())
                return;
            Job job = std::move(jobs.front());
            jobs.pop_front();
            lock.unlock();
            job.error = job.call();
            job.call = nullptr; // what it holds goes away here, not under the lock
            lock.lock();
            done.push_back(std::move(job));
            if (!std::exchange(told, true)) {
                lock.unlock();
                post(loop, [self = weak_from_this()] {
                    if (auto core = self.lock())
                        core->deliver();
                });
                lock.lock();
            }
        }
    }

    // On the loop's thread.
    void deliver()
    {
        std::vector<Job> batch;
        {
            std::lock_guard lock(mutex);
            batch.swap(done);
            told = false;
        }
        for (Job &job : batch)
            job.result->set(job.error);
    }

    Loop loop;
    const size_t threads_max;
    std::mutex mutex;
    std::condition_variable wanted;
    std::deque<Job> jobs;
    std::vector<Job> done;
    std::vector<std::thread> threads;
    size_t idle = 0;
    bool told = false; // the loop knows that there is something in `done`
    bool ending = false;
};

IoPool::IoPool(Loop loop, unsigned threads) : loop_(loop), core_(std::make_shared<Core>(loop, threads)) {}

IoPool::~IoPool()
{
    {
        std::lock_guard lock(core_->mutex);
        core_->ending = true;
    }
    core_->wanted.notify_all();
    for (std::thread &thread : core_->threads)
        thread.join();
}

Task<int> IoPool::run(std::function<int()> call)
{
    OneShot<int> result;
    core_->add({std::move(call), &result, 0});
    int error = co_await result;
    co_return error;
}

Task<Result<void>> IoPool::read(int fd, uint64_t offset, std::span<std::byte> into)
{
    ssize_t n = read_some(fd, offset, into, RWF_NOWAIT);
    size_t had = n > 0 ? static_cast<size_t>(n) : 0;
    if (had == into.size())
        co_return {};
    // what is not in memory, or behind the end of the file, or of a file that knows no RWF_NOWAIT
    std::span<std::byte> rest = into.subspan(had);
    int error = co_await run([fd, from = offset + had, rest] { return read_all(fd, from, rest); });
    co_return result_of(error);
}

Task<Result<void>> IoPool::write(int fd, uint64_t offset, std::span<const std::byte> from)
{
    int error = co_await run([fd, offset, from] { return write_all(fd, offset, from); });
    co_return result_of(error);
}

Task<Result<void>> IoPool::datasync(int fd)
{
    int error = co_await run([fd] { return fdatasync(fd) == 0 ? 0 : errno; });
    co_return result_of(error);
}

Task<Result<void>> IoPool::allocate(int fd, int mode, uint64_t offset, uint64_t length)
{
    int error = co_await run([fd, mode, offset, length] {
        for (;;) {
            if (fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0)
                return 0;
            if (errno != EINTR)
                return errno;
        }
    });
    co_return result_of(error);
}

} // namespace sluice::disk
