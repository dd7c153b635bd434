// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Errors as values. `Result<T>` holds a T or an `Error`; an Error has an errno, a
// message for the operator and, through `context()`, what was being done when it
// came up, outermost first: "connect to unix:/run/x.sock: Connection refused".

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace sluice {

struct Error {
    int code = EIO; // an errno value
    std::string message;

    static Error from_errno(int code, std::string what) { return {code, std::move(what) + ": " + std::strerror(code)}; }

    // The same error, seen from one step further out.
    Error context(const std::string &outer) const { return {code, outer + ": " + message}; }
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(int code, std::string message)
{
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

inline tl::unexpected<Error> fail_errno(int code, std::string what)
{
    return tl::unexpected<Error>(Error::from_errno(code, std::move(what)));
}

} // namespace sluice
