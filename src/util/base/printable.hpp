// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Text from outside, made fit for one line of a message: control characters become
// \xHH, so that a name with a line feed or an escape sequence in it can neither
// forge a second line nor steer the terminal. Other bytes (UTF-8 too) stay.

#include <string>
#include <string_view>

namespace sluice {

inline std::string printable(std::string_view text)
{
    static constexpr char hex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    for (char c : text) {
        auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            out += c;
            continue;
        }
        out += "\\x";
        out += hex[byte >> 4];
        out += hex[byte & 15];
    }
    return out;
}

} // namespace sluice
