// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/journal.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include <fcntl.h>

#include <gtest/gtest.h>

#include "util/net/test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// Keeps the records, and takes none while it is full.
struct Kept : LogSink {
    bool write(const LogRecord &record) override
    {
        if (!full)
            records.push_back(record);
        return !full;
    }
    std::vector<LogRecord> records;
    bool full = false;
};

class LogTest : public ::testing::Test {
protected:
    LogTest()
    {
        auto owned = std::make_unique<Kept>();
        kept = owned.get();
        Log::Options options;
        options.repeat_window = 10s;
        options.now_usec = [this] { return now; };
        log.emplace(std::move(owned), options);
    }

    void refused(const std::string &message, const char *service = "web")
    {
        log->record(Priority::warning, message_id::connection_refused, message, {{"SLUICE_SERVICE", service}});
    }

    // The messages since the last time.
    std::vector<std::string> messages()
    {
        std::vector<std::string> result;
        for (const LogRecord &record : kept->records)
            result.push_back(record.message);
        kept->records.clear();
        return result;
    }

    static std::string field(const LogRecord &record, const std::string &name)
    {
        for (const LogField &each : record.fields) {
            if (each.name == name)
                return each.value;
        }
        return "(none)";
    }

    using Strings = std::vector<std::string>;
    int64_t now = 1'000'000'000;
    Kept *kept;
    std::optional<Log> log;
};

TEST_F(LogTest, PassesARecordOn)
{
    log->record(Priority::notice, message_id::ready, "ready", {{"SLUICE_SERVICES", "2"}});
    ASSERT_EQ(kept->records.size(), 1u);
    const LogRecord &record = kept->records[0];
    EXPECT_EQ(record.priority, Priority::notice);
    EXPECT_STREQ(record.id.id, "35249aaf50e246a2ab111c8f6a70bccd");
    EXPECT_EQ(record.message, "ready");
    EXPECT_EQ(field(record, "SLUICE_SERVICES"), "2");
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel)
{
    auto say_all = [&] {
        for (Priority priority :
             {Priority::error, Priority::warning, Priority::notice, Priority::info, Priority::debug})
            log->record(priority, std::to_string(static_cast<int>(priority)));
    };
    say_all();
    EXPECT_EQ(messages(), (Strings{"3", "4", "5", "6"}));
    log->set_level(Priority::debug);
    EXPECT_TRUE(log->wants(Priority::debug));
    say_all();
    EXPECT_EQ(messages(), (Strings{"3", "4", "5", "6", "7"}));
    log->set_level(Priority::error);
    EXPECT_FALSE(log->wants(Priority::warning));
    say_all();
    EXPECT_EQ(messages(), (Strings{"3"}));
}

TEST_F(LogTest, HoldsRepeatsBack)
{
    for (int i = 0; i < 1000; ++i)
        refused(std::to_string(i));
    EXPECT_EQ(messages(), (Strings{"0"}));
    now += 9'999'999;
    log->tick();
    EXPECT_EQ(messages(), Strings{});
    now += 1;
    log->tick();
    ASSERT_EQ(kept->records.size(), 1u);
    EXPECT_EQ(field(kept->records[0], "SLUICE_REPEATS"), "999");
    EXPECT_EQ(field(kept->records[0], "SLUICE_SERVICE"), "web");
    EXPECT_EQ(messages(), (Strings{"999 more, the last: 999"}));
    // that was a record of the kind too
    refused("soon");
    EXPECT_EQ(messages(), Strings{});
    now += 10'000'000;
    log->tick();
    EXPECT_EQ(messages(), (Strings{"soon"})) << "one that was held back needs no count";
    now += 10'000'000;
    log->tick();
    refused("later");
    EXPECT_EQ(messages(), (Strings{"later"})) << "after a quiet time the first goes out at once";
}

TEST_F(LogTest, ANewOneTellsOfThoseBefore)
{
    refused("a");
    refused("b");
    refused("c");
    now += 10'000'000;
    refused("d");
    EXPECT_EQ(messages(), (Strings{"a", "2 more, the last: c", "d"}));
    refused("e");
    EXPECT_EQ(messages(), Strings{});
}

TEST_F(LogTest, CountsServicesAndUpstreamsApart)
{
    refused("a", "web");
    refused("b", "db");
    EXPECT_EQ(messages(), (Strings{"a", "b"}));
    for (const char *upstream : {"1", "2", "1"})
        log->record(Priority::warning, message_id::upstream_down, upstream,
                    {{"SLUICE_SERVICE", "web"}, {"SLUICE_UPSTREAM", upstream}, {"SLUICE_PEER", "any"}});
    EXPECT_EQ(messages(), (Strings{"1", "2"}));
    for (const char *peer : {"1", "2", "3"})
        log->record(Priority::warning, message_id::limit, peer, {{"SLUICE_SERVICE", "web"}, {"SLUICE_PEER", peer}});
    EXPECT_EQ(messages(), (Strings{"1"})) << "clients are as many as they please";
}

TEST_F(LogTest, OtherKindsAreNotHeldBack)
{
    for (int i = 0; i < 3; ++i)
        log->record(Priority::info, message_id::connection_closed, std::to_string(i), {{"SLUICE_SERVICE", "web"}});
    log->record(Priority::info, "plain");
    log->record(Priority::info, "plain");
    EXPECT_EQ(messages(), (Strings{"0", "1", "2", "plain", "plain"}));
}

TEST_F(LogTest, FlushTellsAll)
{
    refused("a");
    refused("b");
    log->flush();
    EXPECT_EQ(messages(), (Strings{"a", "b"}));
    refused("c");
    EXPECT_EQ(messages(), (Strings{"c"}));
}

TEST_F(LogTest, SaysHowManyAreMissing)
{
    log->record(Priority::info, "a");
    kept->full = true;
    for (int i = 0; i < 7; ++i)
        log->record(Priority::info, "lost");
    EXPECT_EQ(log->dropped(), 7u);
    kept->full = false;
    log->record(Priority::info, "b");
    EXPECT_EQ(field(kept->records.back(), "SLUICE_DROPPED"), "7");
    log->record(Priority::info, "c");
    EXPECT_EQ(messages(), (Strings{"a", "b", "7 log records before this one are missing: nobody took them", "c"}));
    EXPECT_EQ(log->dropped(), 7u);
}

TEST(Log, HasStderrOutsideOfSystemd)
{
    TestDir dir;
    int result = in_child([&] {
        UniqueFd file(open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        dup2(file.get(), STDERR_FILENO);
        unsetenv("JOURNAL_STREAM");
        {
            Log plain;
            plain.record(Priority::error, message_id::limit, "full", {{"SLUICE_SERVICE", "web"}});
            plain.record(Priority::error, message_id::limit, "full again", {{"SLUICE_SERVICE", "web"}});
        }
        setenv("JOURNAL_STREAM", "1:1", 1); // another's
        Log::Options options;
        options.priorities = true;
        options.identifier = "x";
        Log marked(options);
        marked.record(Priority::info, "done");
        return 0;
    });
    EXPECT_EQ(result, 0);
    std::ifstream file(dir / "log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    EXPECT_EQ(lines, (std::vector<std::string>{"sluiced: full", "sluiced: full again", "<6>done"}));
}

TEST(Log, TakesRecordsFromManyThreads)
{
    constexpr int threads = 4, records = 500;
    TestDir dir;
    UniqueFd file(open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    {
        Log log(std::make_unique<StderrSink>(file.get(), "s", false), {});
        std::vector<std::thread> writers;
        for (int writer = 0; writer < threads; ++writer)
            writers.emplace_back([&log, writer] {
                for (int i = 0; i < records; ++i) {
                    log.record(Priority::info, std::to_string(writer) + " " + std::to_string(i));
                    log.record(Priority::info, message_id::limit, "full");
                    log.tick();
                    if (log.dropped() != 0 || !log.wants(Priority::info))
                        log.set_level(Priority::error);
                }
            });
        for (std::thread &writer : writers)
            writer.join();
    }
    // each thread's records in their order, and no two in one line
    std::ifstream lines(dir / "log");
    int next[threads] = {}, repeats = 0;
    for (std::string line; std::getline(lines, line);) {
        int writer = -1, number = -1;
        if (sscanf(line.c_str(), "s: %d %d", &writer, &number) == 2 && writer >= 0 && writer < threads)
            EXPECT_EQ(number, next[writer]++) << line;
        else
            repeats += line == "s: full" ? 1 : 1000 * (line == "s: 1999 more, the last: full");
    }
    for (int count : next)
        EXPECT_EQ(count, records);
    EXPECT_EQ(repeats, 1001);
}

// Every kind of record is explained to whoever reads it with journalctl -x; journalctl
// itself reads the catalogue.
TEST(MessageIds, AreAllInTheCatalogue)
{
    const std::vector<MessageId> ids{message_id::started,
                                     message_id::ready,
                                     message_id::reloaded,
                                     message_id::reload_failed,
                                     message_id::stopping,
                                     message_id::connection_closed,
                                     message_id::connection_refused,
                                     message_id::connect_failed,
                                     message_id::accept_paused,
                                     message_id::accept_recovered,
                                     message_id::upstream_down,
                                     message_id::upstream_up,
                                     message_id::limit,
                                     message_id::drain_cut};
    std::vector<std::string> wanted;
    for (const MessageId &id : ids) {
        ASSERT_EQ(std::strlen(id.id), 32u);
        wanted.push_back(id.id);
    }
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(std::adjacent_find(wanted.begin(), wanted.end()), wanted.end());

    if (access(JOURNALCTL, X_OK) != 0)
        GTEST_SKIP() << "journalctl is not installed";
    TestDir dir;
    std::filesystem::create_directories(dir / "usr/lib/systemd/catalog");
    std::filesystem::copy_file(CATALOG, dir / "usr/lib/systemd/catalog/sluice.catalog");
    std::string journalctl = std::string(JOURNALCTL) + " --root=" + dir.path();
    ASSERT_EQ(system((journalctl + " --update-catalog").c_str()), 0);
    FILE *list = popen((journalctl + " --list-catalog").c_str(), "r");
    ASSERT_NE(list, nullptr);
    std::vector<std::string> found;
    for (char line[1024]; fgets(line, sizeof line, list);) {
        std::string text = line;
        found.push_back(text.substr(0, text.find(' ')));
        EXPECT_NE(text.find(" Sluice: "), std::string::npos) << text;
    }
    EXPECT_EQ(pclose(list), 0);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, wanted);
}

} // namespace
} // namespace sluice
