// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What ThreadSanitizer has to be told about GLib. GLib is not built for it, and its
// locks are futexes of its own, so TSan does not see that a source is attached,
// dispatched and freed under the lock of its context, one thread after the other.
// These say so; without TSan they are nothing.

#include <glib.h>

#if defined(__SANITIZE_THREAD__)
#define SLUICE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_TSAN 1
#endif
#endif

#ifdef SLUICE_TSAN
extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#endif

namespace sluice {

// What this thread did so far is seen by those who next come `after_glib_lock()` of
// the same object.
inline void before_glib_lock([[maybe_unused]] void *object) noexcept
{
#ifdef SLUICE_TSAN
    __tsan_release(object);
#endif
}

inline void after_glib_lock([[maybe_unused]] void *object) noexcept
{
#ifdef SLUICE_TSAN
    __tsan_acquire(object);
#endif
}

// For the length of a source's callback: GLib has held the lock before and will after.
class InGlibCallback {
public:
    explicit InGlibCallback(void *source) noexcept : source_(source) { after_glib_lock(source_); }
    InGlibCallback(const InGlibCallback &) = delete;
    InGlibCallback &operator=(const InGlibCallback &) = delete;
    ~InGlibCallback() { before_glib_lock(source_); }

private:
    void *source_;
};

// For GSourceFuncs: the last reference may be dropped by another thread than the one
// that has just left the source's callback.
#ifdef SLUICE_TSAN
inline constexpr auto source_finalize = +[](GSource *source) { after_glib_lock(source); };
#else
inline constexpr void (*source_finalize)(GSource *) = nullptr;
#endif

} // namespace sluice
