// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Translated messages with values in them: `format(_("cannot open {}: {}"), a, b)`.
// A translation whose places do not fit the values shows as it stands rather than
// ending the program.

#include <string>

#include <fmt/format.h>

#include "util/glib/i18n.hpp"

namespace sluice {

template <class... Values>
std::string format(const char *text, const Values &...values)
{
    try {
        return fmt::vformat(text, fmt::make_format_args(values...));
    } catch (const fmt::format_error &) {
        return text;
    }
}

} // namespace sluice
