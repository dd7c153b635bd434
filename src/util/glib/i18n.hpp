// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Translation of messages, in gettext's way. `_("text")` gives the text in the
// user's language, `N_("text")` only marks it for translation. The program calls
// setlocale() and bindtextdomain(); without them the text stays as it is.

#include <libintl.h>

namespace sluice {

inline const char *translate(const char *text) noexcept
{
    return ::dgettext("sluice", text);
}

} // namespace sluice

#define _(text) (::sluice::translate(text))
#define N_(text) (text)
