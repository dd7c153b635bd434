// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/admin/refusal.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::proxyd {
namespace {

constexpr size_t head_bytes_max = 16 << 10;
// A client that has been answered may have a body to get rid of before it reads the answer.
constexpr size_t received_bytes_max = 64 << 10;

} // namespace

Refusal::Refusal(Loop &loop, UniqueFd fd, std::chrono::milliseconds timeout, std::function<void()> done)
    : fd_(std::move(fd)), done_(std::move(done))
{
    watch_ = loop.watch(fd_.get(), SLUICE_EVENT_READABLE, [this](int) { readable(); });
    timer_ = loop.every(timeout, [this] { end(); });
}

void Refusal::readable()
{
    char block[4096];
    const ssize_t count = read(fd_.get(), block, sizeof block);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count > 0) {
        received_ += static_cast<size_t>(count);
        if (!answered_)
            head_.append(block, static_cast<size_t>(count));
    }
    if (!answered_ && (count <= 0 || head_.size() > head_bytes_max || head_.find("\r\n\r\n") != std::string::npos))
        answer();
    if (count <= 0 || received_ > received_bytes_max)
        end();
}

void Refusal::answer()
{
    static const std::string body = "{\"error\":\"you are not allowed to use the admin socket\"}\n";
    static const std::string text = fmt::format("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n"
                                                "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                                                body.size(), body);
    answered_ = true;
    head_.clear();
    // the first bytes that go out here: there is room for them
    [[maybe_unused]] const ssize_t sent = send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd_.get(), SHUT_WR);
}

void Refusal::end()
{
    watch_.remove();
    timer_.remove();
    fd_.reset();
    // the last thing: it may be the end of us
    const std::function<void()> done = std::move(done_);
    done();
}

} // namespace sluice::proxyd
