// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Translation of messages, in gettext's way. `_("text")` gives the text in the
// user's language, `N_("text")` only marks it for translation. The program says how to
// set up the locale in `translation_setup`, which runs before the first text is asked
// for: most runs have nothing to say, and reading the locale's files takes as long as
// connecting.

#include <libintl.h>

#include <utility>

namespace sluice {

inline void (*translation_setup)() = nullptr;

inline void set_up_translation()
{
    if (auto setup = std::exchange(translation_setup, nullptr))
        setup();
}

inline const char *translate(const char *text)
{
    set_up_translation();
    return ::dgettext("sluice", text);
}

} // namespace sluice

#define _(text) (::sluice::translate(text))
#define N_(text) (text)
