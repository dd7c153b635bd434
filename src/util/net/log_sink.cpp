// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/log_sink.hpp"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/base/printable.hpp"
#include "util/net/address.hpp"
#include "util/net/format.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

namespace {

constexpr std::string_view cut_mark = "...";
constexpr size_t value_bytes_max = 8192; // in the journal, so that a dozen of them fit into a datagram

// Its first bytes, `max` at most, but no part of a character.
std::string_view cut(std::string_view text, size_t max)
{
    if (text.size() <= max)
        return text;
    while (max > 0 && (text[max] & 0xc0) == 0x80)
        --max;
    return text.substr(0, max);
}

mode_t type_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

// O_NONBLOCK belongs to an open file, which others share with us; opened again it is
// ours alone. That may be forbidden: then poll() has to do.
UniqueFd open_again(int fd)
{
    mode_t type = type_of(fd);
    if (type != S_IFIFO && !(type == S_IFCHR && isatty(fd)))
        return {};
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    return UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

bool has_room(int fd)
{
    pollfd poll_fd{fd, POLLOUT, 0};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0;
}

void append_field(std::string &out, std::string_view name, std::string_view value)
{
    value = cut(value, value_bytes_max);
    out += name;
    if (value.find('\n') == std::string_view::npos) {
        out += '=';
    } else {
        uint64_t size = htole64(value.size());
        out += '\n';
        out.append(reinterpret_cast<const char *>(&size), sizeof size);
    }
    out += value;
    out += '\n';
}

} // namespace

StderrSink::StderrSink(int fd, std::string identifier, bool priorities)
    : fd_(fd), is_socket_(type_of(fd) == S_IFSOCK), own_(open_again(fd)), identifier_(std::move(identifier)),
      priorities_(priorities)
{}

bool StderrSink::write(const LogRecord &record)
{
    std::string line = priorities_ ? "<" + std::to_string(static_cast<int>(record.priority)) + ">" : identifier_ + ": ";
    line += printable(record.message);
    if (line.size() >= PIPE_BUF) {
        line.resize(cut(line, PIPE_BUF - 1 - cut_mark.size()).size());
        line += cut_mark;
    }
    line += '\n';
    return put(line);
}

bool StderrSink::put(const std::string &line)
{
    int fd = own_ ? own_.get() : fd_;
    ssize_t written;
    do {
        if (is_socket_)
            written = send(fd, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (own_ || has_room(fd))
            written = ::write(fd, line.data(), line.size());
        else
            return false;
    } while (written < 0 && errno == EINTR);
    return written == static_cast<ssize_t>(line.size());
}

JournalSink::JournalSink(std::string socket_path, std::string identifier, std::unique_ptr<LogSink> otherwise)
    : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)), path_(std::move(socket_path)),
      identifier_(std::move(identifier)), otherwise_(std::move(otherwise))
{}

bool JournalSink::write(const LogRecord &record)
{
    std::string datagram;
    append_field(datagram, "MESSAGE", record.message);
    append_field(datagram, "PRIORITY", std::to_string(static_cast<int>(record.priority)));
    append_field(datagram, "SYSLOG_IDENTIFIER", identifier_);
    if (*record.id.id)
        append_field(datagram, "MESSAGE_ID", record.id.id);
    for (const LogField &field : record.fields)
        append_field(datagram, field.name, field.value);

    auto to = to_socket_address(UnixPath{path_});
    ssize_t sent;
    do
        sent =
            to ? sendto(fd_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to->get(), to->size)
               : -1;
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return true;
    // a journal that is there and does not read would not read a line either
    return errno != EAGAIN && otherwise_->write(record);
}

bool is_journal_stream(int fd, const char *journal_stream)
{
    struct stat status;
    if (!journal_stream || fstat(fd, &status) != 0)
        return false;
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == journal_stream;
}

} // namespace sluice
