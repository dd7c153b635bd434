// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where log records go: the journal's socket, or a line on stderr. Neither ever waits:
// what cannot be taken at once is lost, and the sink says so. No sink changes the flags
// of a descriptor that is shared with others. A sink is used by one thread at a time;
// SIGPIPE must be ignored.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "util/base/unique_fd.hpp"
#include "util/net/message_id.hpp"

namespace sluice {

enum class Priority { error = 3, warning = 4, notice = 5, info = 6, debug = 7 }; // syslog's

// A name of A-Z, 0-9 and _, as the journal takes it; a value of any bytes.
struct LogField {
    const char *name;
    std::string value;
};

struct LogRecord {
    Priority priority = Priority::info;
    MessageId id;
    std::string message;
    std::vector<LogField> fields;
};

class LogSink {
public:
    virtual ~LogSink() = default;
    // False where the record, or part of it, is lost.
    virtual bool write(const LogRecord &record) = 0;
};

// One line for each record: "sluiced: MESSAGE", or "<N>MESSAGE" with `priorities`, as
// sd-daemon(3) has it. Control characters become \xHH, and a line is cut at PIPE_BUF bytes
// (4096), which is what a pipe takes whole or not at all. Fields are not shown.
class StderrSink : public LogSink {
public:
    StderrSink(int fd, std::string identifier, bool priorities);
    bool write(const LogRecord &record) override;

private:
    bool put(const std::string &line);

    int fd_;
    bool is_socket_;
    UniqueFd own_; // the same pipe or terminal, opened by us and so non-blocking for us alone
    std::string identifier_;
    bool priorities_;
};

// The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), one datagram a record;
// sd_journal_sendv(3) would wait for a journal that has stopped reading. Values are cut at
// 8 KiB. While nobody is at the socket, records go to `otherwise`.
class JournalSink : public LogSink {
public:
    JournalSink(std::string socket_path, std::string identifier, std::unique_ptr<LogSink> otherwise);
    bool write(const LogRecord &record) override;

private:
    UniqueFd fd_;
    std::string path_;
    std::string identifier_;
    std::unique_ptr<LogSink> otherwise_;
};

inline constexpr const char *journal_socket_path = "/run/systemd/journal/socket";

// Is `fd` the stream that JOURNAL_STREAM (device:inode; may be null) speaks of?
bool is_journal_stream(int fd, const char *journal_stream);

} // namespace sluice
