/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SLUICE_EVENT_H
#define SLUICE_EVENT_H

/**
 * @file
 * Handles (watched file descriptors) and timeouts over a GLib main context.
 *
 * A *loop* (`sluice_loop`) belongs to one `GMainContext`. A *watch* is a file
 * descriptor with the events its owner wants; a *timer* fires after an interval
 * and again after each further one. Whoever iterates the context is the *loop's
 * thread*; callbacks and free functions run there and nowhere else, and no lock
 * is held while they do.
 *
 * Every function here may be called from any thread and from inside callbacks,
 * unless its text says otherwise. Nothing here throws.
 *
 * Two families with the same semantics:
 *  - `sluice_event_*` act on the default loop and have the shapes of libvirt's
 *    virEvent functions, so that they can be handed to `virEventRegisterImpl()`
 *    as they are. They answer -1 and set `errno`.
 *  - `sluice_loop_*` take a loop and answer with a negative errno.
 *
 * What holds for both:
 *  - Ids are positive and not used again before the counter has wrapped, and
 *    then never while in use. An id that is not known is -ENOENT.
 *  - Once a remove returns on the loop's thread, the callback does not run
 *    again. The free function runs exactly once, later, on the loop's thread and
 *    outside any callback of the loop; it may call anything here.
 *  - Events 0 parks a watch: nothing at all is reported. Otherwise ERROR and
 *    HANGUP are reported whether they were asked for or not.
 *  - A file that cannot be polled (a regular file, say) is always ready.
 *  - If a descriptor was closed while it was watched, the callback runs at most
 *    once more, with ERROR, and then not until the watch is updated. An update
 *    that changes nothing re-arms: it makes the loop look at the descriptor anew.
 *  - A change made inside a callback reaches the kernel when the loop is about to
 *    poll again, and not at all if it was undone by then.
 *  - Timers never fire early and do not drift: the next deadline is the last one
 *    plus the interval. Deadlines that went by are skipped, not made up for.
 */

#include <stddef.h>
#include <stdint.h>

#include <sluice/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Spelled with the struct tag so that GLib's own header is not needed here. */
struct _GMainContext;

/** Event bits, with libvirt's values. */
enum sluice_event_flags {
    SLUICE_EVENT_READABLE = 1 << 0, /**< a read would not block */
    SLUICE_EVENT_WRITABLE = 1 << 1, /**< a write would not block */
    SLUICE_EVENT_ERROR = 1 << 2,    /**< an error is pending, or the fd is closed */
    SLUICE_EVENT_HANGUP = 1 << 3,   /**< the peer has closed both ways */
};

/** Called when @p fd has @p events; @p watch is the id that add returned. */
typedef void (*sluice_event_handle_callback)(int watch, int fd, int events, void *opaque);
/** Called when an interval of @p timer has gone by. */
typedef void (*sluice_event_timeout_callback)(int timer, void *opaque);
/** Called once, when a watch or timer is gone and its callback cannot run again. */
typedef void (*sluice_event_free_callback)(void *opaque);

/**
 * @name The default loop, in libvirt's shapes
 * @{
 */

/**
 * Watch @p fd on the default loop.
 * @return the watch's id (> 0), or -1 with errno EBADF (not an open descriptor),
 *         EINVAL (unknown event bits, no callback) or ENOMEM.
 * Since: 0.1
 */
int sluice_event_add_handle(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                            sluice_event_free_callback free_opaque);

/** Change the events of a watch; errno is ENOENT afterwards if it is not known. Since: 0.1 */
void sluice_event_update_handle(int watch, int events);

/** Remove a watch. @return 0, or -1 with errno ENOENT. Since: 0.1 */
int sluice_event_remove_handle(int watch);

/**
 * Start a timer on the default loop.
 * @param timeout_ms interval in milliseconds: < 0 parked, 0 on every turn of the loop.
 * @return the timer's id (> 0), or -1 with errno EINVAL or ENOMEM.
 * Since: 0.1
 */
int sluice_event_add_timeout(int timeout_ms, sluice_event_timeout_callback callback, void *opaque,
                             sluice_event_free_callback free_opaque);

/** Start a timer anew from now; errno is ENOENT afterwards if it is not known. Since: 0.1 */
void sluice_event_update_timeout(int timer, int timeout_ms);

/** Remove a timer. @return 0, or -1 with errno ENOENT. Since: 0.1 */
int sluice_event_remove_timeout(int timer);

/** The shapes of the six functions above, for sluice_event_register_impl(). */
typedef int (*sluice_event_add_handle_func)(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                                            sluice_event_free_callback free_opaque);
typedef void (*sluice_event_update_handle_func)(int watch, int events);
typedef int (*sluice_event_remove_handle_func)(int watch);
typedef int (*sluice_event_add_timeout_func)(int timeout_ms, sluice_event_timeout_callback callback, void *opaque,
                                             sluice_event_free_callback free_opaque);
typedef void (*sluice_event_update_timeout_func)(int timer, int timeout_ms);
typedef int (*sluice_event_remove_timeout_func)(int timer);

/**
 * Let an application's own event loop serve the six `sluice_event_*` functions
 * above: each call goes to the function given here. Call it first and once.
 * @return 0, or -1 with errno EBUSY (an implementation is registered or the default
 *         loop is in use) or EINVAL (a function is missing).
 * Since: 0.1
 */
int sluice_event_register_impl(sluice_event_add_handle_func add_handle, sluice_event_update_handle_func update_handle,
                               sluice_event_remove_handle_func remove_handle, sluice_event_add_timeout_func add_timeout,
                               sluice_event_update_timeout_func update_timeout,
                               sluice_event_remove_timeout_func remove_timeout);

/**
 * Choose the default loop (on GLib's default context). It is also chosen by the
 * first use of a `sluice_event_*` function; calling this twice is harmless.
 * @return 0, or -1 with errno EBUSY if sluice_event_register_impl() came first.
 * Since: 0.1
 */
int sluice_event_register_default_impl(void);

/**
 * Run one turn of the default loop, waiting until there is something to do.
 * @return 0, or -1 with errno ENOSYS (an application's loop is registered) or
 *         EBUSY (another thread is running the default context).
 * Since: 0.1
 */
int sluice_event_run_default_impl(void);

/** @} */

/**
 * @name Loops
 * @{
 */

/** A loop. Counted by reference; what it watches is let go with the last one. */
typedef struct sluice_loop sluice_loop;

/** How a loop waits. */
enum sluice_backend {
    /** epoll on Linux; the environment's SLUICE_BACKEND (`epoll`, `gsource`) decides if set. */
    SLUICE_BACKEND_AUTO = 0,
    /** One GSource holding one epoll descriptor: the cost of an event does not grow with the number of handles. */
    SLUICE_BACKEND_EPOLL = 1,
    /** One GSource for each watch and timer: portable, and the fewest system calls for a handful of descriptors. */
    SLUICE_BACKEND_GSOURCE = 2,
};

/**
 * Make a loop on @p context (NULL: GLib's default context), which it keeps a
 * reference to.
 * @return a loop to be released with sluice_loop_unref(), or NULL with errno EMFILE,
 *         ENFILE or ENOMEM.
 * Since: 0.1
 */
sluice_loop *sluice_loop_new(struct _GMainContext *context);

/** The same with a backend of choice (`enum sluice_backend`); NULL with errno EINVAL for others. Since: 0.1 */
sluice_loop *sluice_loop_new_with_backend(struct _GMainContext *context, int backend);

/** Take a reference. @return @p loop. Since: 0.1 */
sluice_loop *sluice_loop_ref(sluice_loop *loop);

/**
 * Release a reference (NULL is fine). With the last one every watch and timer is
 * removed. Their free functions run before this returns where the calling thread
 * may run the context and is in no callback of the loop; otherwise on the loop's
 * thread, at its next turn.
 * Since: 0.1
 */
void sluice_loop_unref(sluice_loop *loop);

/** The default loop, on GLib's default context. Borrowed: it lives as long as the process. Since: 0.1 */
sluice_loop *sluice_loop_default(void);

/** The loop's context, borrowed. Since: 0.1 */
struct _GMainContext *sluice_loop_get_context(sluice_loop *loop);

/** The backend in use (`enum sluice_backend`, never AUTO). Since: 0.1 */
int sluice_loop_get_backend(sluice_loop *loop);

/**
 * Run one turn of the context: all of its sources, not the loop's alone.
 * @param may_block wait for something to do (nonzero) or only look (0).
 * @return 1 if anything was dispatched, 0 if not, -EBUSY if another thread runs the context.
 * Since: 0.1
 */
int sluice_loop_iterate(sluice_loop *loop, int may_block);

/**
 * Run turns until sluice_loop_quit(). A quit that came before makes it return at once.
 * @return 0, or -EBUSY if another thread runs the context.
 * Since: 0.1
 */
int sluice_loop_run(sluice_loop *loop);

/** Make the running, or else the next, sluice_loop_run() return after its current turn. Since: 0.1 */
void sluice_loop_quit(sluice_loop *loop);

/** Make a waiting turn return. Since: 0.1 */
void sluice_loop_wake(sluice_loop *loop);

/**
 * Run turns without waiting until nothing of the loop's own is pending: every
 * removed watch and timer has had its free function run and every change has
 * reached the kernel. For the loop's thread, or any while none runs the context.
 * @return 0, -EBUSY if another thread runs the context, -EDEADLK inside a callback of this loop.
 * Since: 0.1
 */
int sluice_loop_drain(sluice_loop *loop);

/**
 * As sluice_event_add_handle(), on @p loop.
 * @return id (> 0) or negative errno; -ESHUTDOWN once the loop's thread has ended.
 * Since: 0.1
 */
int sluice_loop_add_handle(sluice_loop *loop, int fd, int events, sluice_event_handle_callback callback, void *opaque,
                           sluice_event_free_callback free_opaque);
/** @return 0, -ENOENT or -EINVAL. Since: 0.1 */
int sluice_loop_update_handle(sluice_loop *loop, int watch, int events);
/** @return 0 or -ENOENT. Since: 0.1 */
int sluice_loop_remove_handle(sluice_loop *loop, int watch);

/**
 * As sluice_event_add_timeout(), on @p loop.
 * @return id (> 0) or negative errno; -ESHUTDOWN once the loop's thread has ended.
 * Since: 0.1
 */
int sluice_loop_add_timeout(sluice_loop *loop, int timeout_ms, sluice_event_timeout_callback callback, void *opaque,
                            sluice_event_free_callback free_opaque);
/** @return 0 or -ENOENT. Since: 0.1 */
int sluice_loop_update_timeout(sluice_loop *loop, int timer, int timeout_ms);
/** @return 0 or -ENOENT. Since: 0.1 */
int sluice_loop_remove_timeout(sluice_loop *loop, int timer);

/**
 * As sluice_loop_add_timeout(), in microseconds. The deadline is kept to the
 * microsecond; the wait itself ends with the resolution of GLib's poll (1 ms),
 * late, never early.
 * @return id (> 0) or negative errno.
 * Since: 0.1
 */
int sluice_loop_add_timeout_usec(sluice_loop *loop, int64_t timeout_usec, sluice_event_timeout_callback callback,
                                 void *opaque, sluice_event_free_callback free_opaque);
/** @return 0 or -ENOENT. Since: 0.1 */
int sluice_loop_update_timeout_usec(sluice_loop *loop, int timer, int64_t timeout_usec);

/** Counters since the loop was made; `handles` and `timeouts` are the present numbers. */
struct sluice_loop_stats {
    uint64_t handles;            /**< watches registered now */
    uint64_t timeouts;           /**< timers registered now */
    uint64_t turns;              /**< turns of the context that the loop took part in */
    uint64_t polls;              /**< times the loop asked the kernel for events */
    uint64_t events;             /**< handle callbacks run */
    uint64_t expirations;        /**< timer callbacks run */
    uint64_t frees;              /**< watches and timers let go, after their free function */
    uint64_t changes;            /**< watches looked at because something about them changed */
    uint64_t kernel_changes;     /**< of these, how many cost a system call */
    uint64_t wakeups;            /**< times another thread had to interrupt the wait */
    uint64_t bad_fds;            /**< watches found to be on a closed descriptor */
    uint64_t releases_immediate; /**< sources whose last reference was dropped at once */
    uint64_t releases_deferred;  /**< sources whose last reference waited for the context */
};

/**
 * Copy the counters. @param size `sizeof *stats` of the caller; fields past what
 * the library knows are set to 0, so that either side may be the newer one.
 * @return 0.
 * Since: 0.1
 */
int sluice_loop_get_stats(sluice_loop *loop, struct sluice_loop_stats *stats, size_t size);

/** @} */

/**
 * @name Event threads
 * @{
 */

/** A named thread that runs a context of its own. Counted by reference. */
typedef struct sluice_thread sluice_thread;

/**
 * Start a thread with a private context and a loop on it.
 * @param name for debuggers and `ps -L`; the kernel keeps 15 bytes of it.
 * @return a thread to be released with sluice_thread_unref(), or NULL with errno.
 * Since: 0.1
 */
sluice_thread *sluice_thread_new(const char *name);

/** Take a reference. @return @p thread. Since: 0.1 */
sluice_thread *sluice_thread_ref(sluice_thread *thread);

/**
 * Release a reference (NULL is fine). The last one stops the thread, which lets
 * go of what its loop still holds; this waits for that, unless it is called on
 * the thread itself, which then ends after the current turn.
 * Since: 0.1
 */
void sluice_thread_unref(sluice_thread *thread);

/** The thread's loop, borrowed; take a reference to keep it longer than the thread. Since: 0.1 */
sluice_loop *sluice_thread_get_loop(sluice_thread *thread);

/** The thread's context, borrowed. Since: 0.1 */
struct _GMainContext *sluice_thread_get_context(sluice_thread *thread);

/** @} */

/** The version of the library at run time, as `SLUICE_VERSION` is at compile time. Since: 0.1 */
const char *sluice_version(void);

#ifdef __cplusplus
}
#endif

#endif
