// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Owners of what GLib and libraries on GObject hand out; each lets go by itself. For
// the programs: libsluice does without GObject. What comes out through a parameter is
// handed over at once: `GError *raw = nullptr; f(&raw); GErrorPtr error(raw);`.

#include <memory>

#include <glib-object.h>

namespace sluice {

namespace detail {

struct GObjectUnref {
    void operator()(void *object) const noexcept { g_object_unref(object); }
};
struct GErrorFree {
    void operator()(GError *error) const noexcept { g_error_free(error); }
};
struct GFree {
    void operator()(void *memory) const noexcept { g_free(memory); }
};
struct GBytesUnref {
    void operator()(GBytes *bytes) const noexcept { g_bytes_unref(bytes); }
};

} // namespace detail

// One reference to an object.
template <class T>
using GObjectPtr = std::unique_ptr<T, detail::GObjectUnref>;
using GErrorPtr = std::unique_ptr<GError, detail::GErrorFree>;
using GText = std::unique_ptr<char, detail::GFree>;
using GBytesPtr = std::unique_ptr<GBytes, detail::GBytesUnref>;

// A reference of our own beside the caller's.
template <class T>
GObjectPtr<T> share_object(T *object)
{
    return GObjectPtr<T>(static_cast<T *>(g_object_ref(object)));
}

} // namespace sluice
