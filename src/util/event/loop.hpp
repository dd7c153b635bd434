// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is behind a `sluice_loop`: the tables of watches and timers, and the calls of
// <sluice/event.h> on them, which say what each promises. Results are an id or 0, or
// a negative errno. Any thread may call anything.

#include <atomic>
#include <cstdint>
#include <memory>

#include "util/base/clock.hpp"
#include "util/event/backend.hpp"
#include "util/event/core.hpp"
#include "util/event/id_table.hpp"

namespace sluice::event {

class LoopImpl {
public:
    // nullptr with errno set. The caller has the one reference.
    static LoopImpl *create(GMainContext *context, int backend, ClockFunction clock = monotonic_usec);
    LoopImpl(const LoopImpl &) = delete;
    LoopImpl &operator=(const LoopImpl &) = delete;

    void ref() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void unref() noexcept;

    int add_handle(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                   sluice_event_free_callback free_opaque);
    int update_handle(int id, int events) noexcept;
    int remove_handle(int id) noexcept;
    int add_timeout(int64_t usec, sluice_event_timeout_callback callback, void *opaque,
                    sluice_event_free_callback free_opaque);
    int update_timeout(int id, int64_t usec);
    int remove_timeout(int id) noexcept;

    int iterate(bool may_block);
    int run();
    void quit() noexcept;
    void wake() noexcept;
    int drain();
    // Remove everything and refuse what comes later. What is then due runs here where
    // this thread may run the context, else on the loop's thread.
    void close() noexcept;

    GMainContext *context() const noexcept { return core_.context; }
    int backend() const noexcept { return backend_kind_; }
    void read_stats(sluice_loop_stats &stats) noexcept;

    // For tests: where the counter of ids stands.
    void set_next_id(int id) noexcept { next_id_ = id; }

private:
    LoopImpl(GMainContext *context, ClockFunction clock) : core_(context, clock) {}
    ~LoopImpl();

    template <class T>
    int new_id(const IdTable<T> &table) noexcept;
    template <class T>
    bool take_off(IdTable<T> &table, int id) noexcept;
    void note_use(int64_t now) noexcept;
    bool pending();
    void settle();
    static bool on_turn_end(void *loop);

    Core core_;
    int backend_kind_ = 0;
    std::unique_ptr<Backend> backend_;
    std::atomic<int> references_{1};
    std::atomic<bool> quit_{false};

    // guarded by the core's mutex
    IdTable<Watch> watches_;
    IdTable<Timer> timers_;
    int next_id_ = 1;
    bool closed_ = false;
    int64_t first_use_ = 0;      // of a loop that has not run yet
    bool idle_reported_ = false; // said that nobody runs it
};

} // namespace sluice::event

// The name that the C ABI gives it.
struct sluice_loop;

namespace sluice::event {
inline LoopImpl *from_c(sluice_loop *loop) noexcept
{
    return reinterpret_cast<LoopImpl *>(loop);
}
inline sluice_loop *to_c(LoopImpl *loop) noexcept
{
    return reinterpret_cast<sluice_loop *>(loop);
}
} // namespace sluice::event
