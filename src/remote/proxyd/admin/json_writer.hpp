// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// JSON text (RFC 8259), written from front to back into one string: no tree is built, so
// that a status of thousands of connections costs no more than its text. The caller
// opens and closes objects and arrays in pairs; commas are put by themselves. Bytes that
// are no UTF-8 become U+FFFD, numbers that JSON cannot say become 0.
//
//     JsonWriter json;
//     json.open('{');
//     json.field("name", "web");
//     json.key("ports"), json.open('['), json.value(80), json.close(']');
//     json.close('}');

#include <charconv>
#include <cmath>
#include <concepts>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <glib.h>

namespace sluice::proxyd {

// The same text as valid UTF-8.
inline std::string valid_utf8(std::string_view text)
{
    if (g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr))
        return std::string(text);
    char *made = g_utf8_make_valid(text.data(), static_cast<gssize>(text.size()));
    std::string result(made);
    g_free(made);
    return result;
}

class JsonWriter {
public:
    void open(char bracket)
    {
        separate();
        text_ += bracket;
        first_ = true;
    }
    void close(char bracket)
    {
        text_ += bracket;
        first_ = false;
    }
    void key(std::string_view name)
    {
        separate();
        quote(name);
        text_ += ':';
        first_ = true; // what follows is this key's value
    }
    void value(std::string_view text)
    {
        separate();
        quote(text);
    }
    void value(const char *text) { value(std::string_view(text)); }
    void value(bool is)
    {
        separate();
        text_ += is ? "true" : "false";
    }
    template <class T>
    requires(std::integral<T> && !std::same_as<T, bool>) void value(T number)
    {
        separate();
        append(number);
    }
    void value(double number)
    {
        separate();
        append(std::isfinite(number) ? number : 0.0);
    }
    template <class T>
    void field(std::string_view name, const T &what)
    {
        key(name);
        value(what);
    }

    std::string take() { return std::exchange(text_, {}); }

private:
    void separate()
    {
        if (!std::exchange(first_, false))
            text_ += ',';
    }
    // The shortest text that gives the number again.
    template <class T>
    void append(T number)
    {
        char digits[32];
        text_.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
    }
    void quote(std::string_view text)
    {
        if (!g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr))
            return quote(valid_utf8(text));
        text_ += '"';
        while (!text.empty()) {
            size_t plain = 0;
            while (plain < text.size() && !is_special(text[plain]))
                ++plain;
            text_.append(text.substr(0, plain));
            text.remove_prefix(plain);
            if (!text.empty()) {
                escape(text.front());
                text.remove_prefix(1);
            }
        }
        text_ += '"';
    }
    static bool is_special(char c)
    {
        auto byte = static_cast<unsigned char>(c);
        return c == '"' || c == '\\' || byte < 0x20 || byte == 0x7f;
    }
    void escape(char c)
    {
        static constexpr char hex[] = "0123456789abcdef";
        text_ += '\\';
        if (c == '"' || c == '\\') {
            text_ += c;
            return;
        }
        auto byte = static_cast<unsigned char>(c);
        text_ += "u00";
        text_ += hex[byte >> 4];
        text_ += hex[byte & 15];
    }

    std::string text_;
    bool first_ = true; // nothing stands yet in the innermost bracket
};

} // namespace sluice::proxyd
