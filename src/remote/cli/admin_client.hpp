// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Requests to the admin socket of a sluiced, over libsoup, on the loop's thread. The
// loop's context must be the thread-default one. Each request is bounded in time, its
// answer in size. Errors say what to try, in the user's language.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <sluice/event.hpp>

#include "util/base/result.hpp"

namespace sluice::cli {

// Where the admin socket is, if --admin does not say: SLUICE_ADMIN; else, for users other
// than root, the socket of a daemon of their own, if there is one; else the system's.
std::string default_admin_address();

class AdminClient {
public:
    static constexpr std::chrono::seconds timeout{30};
    static constexpr size_t answer_bytes_max = 256u << 20;

    using Done = std::function<void(Result<std::string> body)>;

    // Connects to nothing yet. `address` empty: the default. Codes: EINVAL, ENAMETOOLONG.
    static Result<AdminClient> make(Loop loop, const std::string &address);

    // The body of the answer; an answer of HTTP other than 200 is an Error with the message
    // that came along: EACCES for 403, ENOENT for 404, EBUSY for 409. Other codes: those of
    // connecting (ENOENT, EACCES, ECONNREFUSED, ...), ETIMEDOUT, ECONNRESET, EPROTO.
    // Not called back any more once the client is gone.
    void request(const char *method, const std::string &path, Done done);
    // The same, waited for.
    Result<std::string> fetch(const char *method, const std::string &path);
    Result<std::string> get(const std::string &path) { return fetch("GET", path); }
    Result<std::string> post(const std::string &path) { return fetch("POST", path); }

    const std::string &address() const noexcept;

    AdminClient(AdminClient &&) noexcept;
    AdminClient &operator=(AdminClient &&) noexcept;
    ~AdminClient();

private:
    class Impl;
    explicit AdminClient(std::unique_ptr<Impl> impl);

    std::unique_ptr<Impl> impl_;
};

// One part of a path, with what has a meaning in paths escaped.
std::string escape_segment(const std::string &text);

} // namespace sluice::cli
