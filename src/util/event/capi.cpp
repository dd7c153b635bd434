// SPDX-License-Identifier: LGPL-2.1-or-later

// The C ABI: every function of <sluice/event.h>, and nothing else is exported. What
// could throw is caught here and becomes -ENOMEM, the one cause there is.

#include <sluice/event.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "util/event/default_loop.hpp"
#include "util/event/event_thread.hpp"
#include "util/event/loop.hpp"

#define SLUICE_EXPORT __attribute__((visibility("default")))

using namespace sluice::event;

namespace {

template <class F>
auto no_throw(F &&call) noexcept -> decltype(call())
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

template <class F>
auto no_throw_pointer(F &&call) noexcept -> decltype(call())
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        errno = ENOMEM;
        return nullptr;
    }
}

// A negative errno as libvirt's shapes have it.
int with_errno(int result) noexcept
{
    if (result >= 0)
        return result;
    errno = -result;
    return -1;
}

// What the default loop answers, or -1 with the errno that kept it from being made.
template <class F>
int on_default_loop(F &&call) noexcept
{
    LoopImpl *loop = no_throw_pointer([] { return default_loop(); });
    return loop ? with_errno(no_throw([&] { return call(*loop); })) : -1;
}

int64_t usec_from_ms(int timeout_ms) noexcept
{
    return timeout_ms < 0 ? -1 : int64_t{timeout_ms} * 1000;
}

EventThread *from_c(sluice_thread *thread) noexcept
{
    return reinterpret_cast<EventThread *>(thread);
}

} // namespace

extern "C" {

// --- the default loop ------------------------------------------------------------

SLUICE_EXPORT int sluice_event_add_handle(int fd, int events, sluice_event_handle_callback callback, void *opaque,
                                          sluice_event_free_callback free_opaque)
{
    if (const EventImpl *impl = registered_impl())
        return impl->add_handle(fd, events, callback, opaque, free_opaque);
    return on_default_loop([&](LoopImpl &loop) { return loop.add_handle(fd, events, callback, opaque, free_opaque); });
}

SLUICE_EXPORT void sluice_event_update_handle(int watch, int events)
{
    if (const EventImpl *impl = registered_impl())
        impl->update_handle(watch, events);
    else
        on_default_loop([&](LoopImpl &loop) { return loop.update_handle(watch, events); });
}

SLUICE_EXPORT int sluice_event_remove_handle(int watch)
{
    if (const EventImpl *impl = registered_impl())
        return impl->remove_handle(watch);
    return on_default_loop([&](LoopImpl &loop) { return loop.remove_handle(watch); });
}

SLUICE_EXPORT int sluice_event_add_timeout(int timeout_ms, sluice_event_timeout_callback callback, void *opaque,
                                           sluice_event_free_callback free_opaque)
{
    if (const EventImpl *impl = registered_impl())
        return impl->add_timeout(timeout_ms, callback, opaque, free_opaque);
    return on_default_loop(
        [&](LoopImpl &loop) { return loop.add_timeout(usec_from_ms(timeout_ms), callback, opaque, free_opaque); });
}

SLUICE_EXPORT void sluice_event_update_timeout(int timer, int timeout_ms)
{
    if (const EventImpl *impl = registered_impl())
        impl->update_timeout(timer, timeout_ms);
    else
        on_default_loop([&](LoopImpl &loop) { return loop.update_timeout(timer, usec_from_ms(timeout_ms)); });
}

SLUICE_EXPORT int sluice_event_remove_timeout(int timer)
{
    if (const EventImpl *impl = registered_impl())
        return impl->remove_timeout(timer);
    return on_default_loop([&](LoopImpl &loop) { return loop.remove_timeout(timer); });
}

SLUICE_EXPORT int sluice_event_register_impl(sluice_event_add_handle_func add_handle,
                                             sluice_event_update_handle_func update_handle,
                                             sluice_event_remove_handle_func remove_handle,
                                             sluice_event_add_timeout_func add_timeout,
                                             sluice_event_update_timeout_func update_timeout,
                                             sluice_event_remove_timeout_func remove_timeout)
{
    return with_errno(
        register_impl({add_handle, update_handle, remove_handle, add_timeout, update_timeout, remove_timeout}));
}

SLUICE_EXPORT int sluice_event_register_default_impl(void)
{
    if (registered_impl())
        return with_errno(-EBUSY);
    return on_default_loop([](LoopImpl &) { return 0; });
}

SLUICE_EXPORT int sluice_event_run_default_impl(void)
{
    if (registered_impl())
        return with_errno(-ENOSYS);
    return on_default_loop([](LoopImpl &loop) { return std::min(loop.iterate(true), 0); });
}

// --- loops -----------------------------------------------------------------------

SLUICE_EXPORT sluice_loop *sluice_loop_new(GMainContext *context)
{
    return sluice_loop_new_with_backend(context, SLUICE_BACKEND_AUTO);
}

SLUICE_EXPORT sluice_loop *sluice_loop_new_with_backend(GMainContext *context, int backend)
{
    return no_throw_pointer([&] { return to_c(LoopImpl::create(context, backend)); });
}

SLUICE_EXPORT sluice_loop *sluice_loop_ref(sluice_loop *loop)
{
    from_c(loop)->ref();
    return loop;
}

SLUICE_EXPORT void sluice_loop_unref(sluice_loop *loop)
{
    if (loop)
        from_c(loop)->unref();
}

SLUICE_EXPORT sluice_loop *sluice_loop_default(void)
{
    return no_throw_pointer([] { return to_c(default_loop()); });
}

SLUICE_EXPORT GMainContext *sluice_loop_get_context(sluice_loop *loop)
{
    return from_c(loop)->context();
}

SLUICE_EXPORT int sluice_loop_get_backend(sluice_loop *loop)
{
    return from_c(loop)->backend();
}

SLUICE_EXPORT int sluice_loop_iterate(sluice_loop *loop, int may_block)
{
    return from_c(loop)->iterate(may_block != 0);
}

SLUICE_EXPORT int sluice_loop_run(sluice_loop *loop)
{
    return from_c(loop)->run();
}

SLUICE_EXPORT void sluice_loop_quit(sluice_loop *loop)
{
    from_c(loop)->quit();
}

SLUICE_EXPORT void sluice_loop_wake(sluice_loop *loop)
{
    from_c(loop)->wake();
}

SLUICE_EXPORT int sluice_loop_drain(sluice_loop *loop)
{
    return from_c(loop)->drain();
}

SLUICE_EXPORT int sluice_loop_add_handle(sluice_loop *loop, int fd, int events, sluice_event_handle_callback callback,
                                         void *opaque, sluice_event_free_callback free_opaque)
{
    return no_throw([&] { return from_c(loop)->add_handle(fd, events, callback, opaque, free_opaque); });
}

SLUICE_EXPORT int sluice_loop_update_handle(sluice_loop *loop, int watch, int events)
{
    return from_c(loop)->update_handle(watch, events);
}

SLUICE_EXPORT int sluice_loop_remove_handle(sluice_loop *loop, int watch)
{
    return from_c(loop)->remove_handle(watch);
}

SLUICE_EXPORT int sluice_loop_add_timeout(sluice_loop *loop, int timeout_ms, sluice_event_timeout_callback callback,
                                          void *opaque, sluice_event_free_callback free_opaque)
{
    return sluice_loop_add_timeout_usec(loop, usec_from_ms(timeout_ms), callback, opaque, free_opaque);
}

SLUICE_EXPORT int sluice_loop_update_timeout(sluice_loop *loop, int timer, int timeout_ms)
{
    return sluice_loop_update_timeout_usec(loop, timer, usec_from_ms(timeout_ms));
}

SLUICE_EXPORT int sluice_loop_remove_timeout(sluice_loop *loop, int timer)
{
    return from_c(loop)->remove_timeout(timer);
}

SLUICE_EXPORT int sluice_loop_add_timeout_usec(sluice_loop *loop, int64_t timeout_usec,
                                               sluice_event_timeout_callback callback, void *opaque,
                                               sluice_event_free_callback free_opaque)
{
    return no_throw([&] { return from_c(loop)->add_timeout(timeout_usec, callback, opaque, free_opaque); });
}

SLUICE_EXPORT int sluice_loop_update_timeout_usec(sluice_loop *loop, int timer, int64_t timeout_usec)
{
    return no_throw([&] { return from_c(loop)->update_timeout(timer, timeout_usec); });
}

SLUICE_EXPORT int sluice_loop_get_stats(sluice_loop *loop, struct sluice_loop_stats *stats, size_t size)
{
    sluice_loop_stats all{};
    from_c(loop)->read_stats(all);
    std::memset(stats, 0, size);
    std::memcpy(stats, &all, std::min(size, sizeof all));
    return 0;
}

// --- event threads ---------------------------------------------------------------

SLUICE_EXPORT sluice_thread *sluice_thread_new(const char *name)
{
    return no_throw_pointer([&] { return reinterpret_cast<sluice_thread *>(EventThread::create(name)); });
}

SLUICE_EXPORT sluice_thread *sluice_thread_ref(sluice_thread *thread)
{
    from_c(thread)->ref();
    return thread;
}

SLUICE_EXPORT void sluice_thread_unref(sluice_thread *thread)
{
    if (thread)
        from_c(thread)->unref();
}

SLUICE_EXPORT sluice_loop *sluice_thread_get_loop(sluice_thread *thread)
{
    return to_c(from_c(thread)->loop());
}

SLUICE_EXPORT GMainContext *sluice_thread_get_context(sluice_thread *thread)
{
    return from_c(thread)->context();
}

SLUICE_EXPORT const char *sluice_version(void)
{
    return SLUICE_VERSION;
}

} // extern "C"
