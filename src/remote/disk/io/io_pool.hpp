// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Calls that may wait for a disk, off the loop's thread: a bounded number of threads, started
// when they are needed, and a queue. The task that awaits is resumed on the loop's thread.
// pread() and pwrite() of the page cache do not go through a thread: `read()` tries
// RWF_NOWAIT first.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <sluice/event.hpp>

#include "util/async/task.hpp"
#include "util/base/result.hpp"

namespace sluice::disk {

class IoPool {
public:
    IoPool(Loop loop, unsigned threads);
    IoPool(const IoPool &) = delete;
    IoPool &operator=(const IoPool &) = delete;
    // Waits for the calls that are running; nobody may be awaiting one.
    ~IoPool();

    // `call` runs on one of the threads and returns 0 or an errno, which is the result.
    Task<int> run(std::function<int()> call);

    // All of it or an error; a read past the end of the file gives zeros. The errors are
    // errno values without context.
    Task<Result<void>> read(int fd, uint64_t offset, std::span<std::byte> into);
    Task<Result<void>> write(int fd, uint64_t offset, std::span<const std::byte> from);
    Task<Result<void>> datasync(int fd);
    // mode as fallocate(2) has it
    Task<Result<void>> allocate(int fd, int mode, uint64_t offset, uint64_t length);

private:
    struct Core;
    Loop loop_;
    std::shared_ptr<Core> core_; // the threads have it too
};

} // namespace sluice::disk
