// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/journal.hpp"

#include <cstdlib>
#include <string_view>

#include "util/net/format.hpp"

namespace sluice {

namespace {

// What a repeat is told by: records that differ in these are about different things.
std::string repeat_key(const MessageId &id, const std::vector<LogField> &fields)
{
    std::string key = id.id;
    for (const LogField &field : fields) {
        std::string_view name = field.name;
        if (name == "SLUICE_SERVICE" || name == "SLUICE_UPSTREAM")
            key.append("\n").append(name).append("=").append(field.value);
    }
    return key;
}

} // namespace

std::unique_ptr<LogSink> Log::default_sink(const Options &options)
{
    if (!is_journal_stream(STDERR_FILENO, getenv("JOURNAL_STREAM")))
        return std::make_unique<StderrSink>(STDERR_FILENO, options.identifier, options.priorities);
    // the stream's reader is the journal too, and takes the priority from the line
    return std::make_unique<JournalSink>(journal_socket_path, options.identifier,
                                         std::make_unique<StderrSink>(STDERR_FILENO, options.identifier, true));
}

Log::Log(std::unique_ptr<LogSink> sink, Options options) : options_(std::move(options)), sink_(std::move(sink)) {}

Log::~Log()
{
    flush();
}

void Log::record(Priority priority, const MessageId &id, std::string message, std::vector<LogField> fields)
{
    if (!wants(priority))
        return;
    LogRecord record{priority, id, std::move(message), std::move(fields)};
    std::lock_guard lock(mutex_);
    if (!id.repeats) {
        write(record);
        return;
    }
    int64_t now = options_.now_usec();
    auto [place, first] = repeats_.try_emplace(repeat_key(id, record.fields));
    Repeated &repeated = place->second;
    if (!first && now < repeated.window_ends_usec) {
        ++repeated.held;
        repeated.last = std::move(record);
        return;
    }
    tell(repeated);
    write(record);
    repeated.window_ends_usec = now + options_.repeat_window.count();
}

void Log::tick()
{
    std::lock_guard lock(mutex_);
    int64_t now = options_.now_usec();
    for (auto place = repeats_.begin(); place != repeats_.end();) {
        Repeated &repeated = place->second;
        if (now < repeated.window_ends_usec) {
            ++place;
        } else if (repeated.held == 0) {
            place = repeats_.erase(place);
        } else {
            tell(repeated);
            repeated.window_ends_usec = now + options_.repeat_window.count();
            ++place;
        }
    }
}

void Log::flush()
{
    std::lock_guard lock(mutex_);
    for (auto &[key, repeated] : repeats_)
        tell(repeated);
    repeats_.clear();
}

// One is just the record that was held back; more are counted.
void Log::tell(Repeated &repeated)
{
    if (repeated.held == 0)
        return;
    LogRecord record = std::move(repeated.last);
    if (repeated.held > 1)
        record.message = format(_("{} more, the last: {}"), repeated.held, record.message);
    record.fields.push_back({"SLUICE_REPEATS", std::to_string(repeated.held)});
    repeated.held = 0;
    write(record);
}

void Log::write(const LogRecord &record)
{
    if (!sink_->write(record)) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    uint64_t missing = dropped() - dropped_told_;
    if (missing == 0)
        return;
    LogRecord note{Priority::warning,
                   message_id::none,
                   format(_("{} log records before this one are missing: nobody took them"), missing),
                   {{"SLUICE_DROPPED", std::to_string(missing)}}};
    if (sink_->write(note))
        dropped_told_ += missing;
}

} // namespace sluice
