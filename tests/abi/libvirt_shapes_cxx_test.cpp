// SPDX-License-Identifier: LGPL-2.1-or-later

// The same assignments under the stricter conversions of C++.
#include "libvirt_shapes_test.c"
