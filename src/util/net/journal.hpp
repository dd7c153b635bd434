// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The daemon's log: records with a priority, a kind, a message for people and fields for
// programs. They go to the journal where stderr is connected to it, else to stderr, one
// line each. Any thread may record; nothing ever waits for whoever reads the log.
//
//     log.record(Priority::warning, message_id::upstream_down,
//                format(_("upstream {} is down: {}"), at, why),
//                {{"SLUICE_SERVICE", name}, {"SLUICE_UPSTREAM", at}});

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include "util/base/clock.hpp"
#include "util/net/log_sink.hpp"
#include "util/net/message_id.hpp"

namespace sluice {

class Log {
public:
    struct Options {
        std::string identifier = "sluiced"; // SYSLOG_IDENTIFIER, and the head of a line
        bool priorities = false;            // "<4>" at the head of a line on stderr instead
        std::chrono::microseconds repeat_window = std::chrono::seconds{10};
        std::function<int64_t()> now_usec = monotonic_usec;
    };

    // The journal, if JOURNAL_STREAM says that stderr is connected to it; else stderr.
    static std::unique_ptr<LogSink> default_sink(const Options &options);

    Log() : Log(Options{}) {}
    explicit Log(Options options) : Log(default_sink(options), options) {}
    Log(std::unique_ptr<LogSink> sink, Options options);
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    ~Log(); // flushes

    // Records of less weight than this are not made. At first: info.
    void set_level(Priority least) noexcept { level_.store(least, std::memory_order_relaxed); }
    bool wants(Priority priority) const noexcept { return priority <= level_.load(std::memory_order_relaxed); }

    // A kind that repeats is held back for `repeat_window` after each record of it that has
    // gone out, separately for each SLUICE_SERVICE and SLUICE_UPSTREAM. What was held back
    // is then told in one record, which has the last one's message and fields, the number
    // of them in the message and in SLUICE_REPEATS; and after a window without any, the
    // next one goes out at once.
    void record(Priority priority, const MessageId &id, std::string message, std::vector<LogField> fields = {});
    void record(Priority priority, std::string message) { record(priority, message_id::none, std::move(message)); }

    // Tell what has been held back for long enough. To be called now and then; every few
    // seconds will do.
    void tick();
    // Tell all that has been held back, as before exiting.
    void flush();

    // Records that nobody took: a full pipe or disk, a reader that is gone. When records get
    // through again, the first is followed by one that says how many are missing.
    uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

private:
    struct Repeated {
        int64_t window_ends_usec = 0;
        uint64_t held = 0;
        LogRecord last;
    };

    void write(const LogRecord &record);
    void tell(Repeated &repeated);

    Options options_;
    std::atomic<Priority> level_{Priority::info};
    std::atomic<uint64_t> dropped_{0};
    std::mutex mutex_; // guards all below
    std::unique_ptr<LogSink> sink_;
    uint64_t dropped_told_ = 0;
    std::map<std::string, Repeated> repeats_; // by kind, service and upstream
};

} // namespace sluice
