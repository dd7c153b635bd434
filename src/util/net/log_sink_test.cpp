// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/log_sink.hpp"

#include <climits>
#include <csignal>
#include <map>

#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#define SD_JOURNAL_SUPPRESS_LOCATION // else it adds the place in the source
#include <systemd/sd-journal.h>

#include <gtest/gtest.h>

#include "util/net/journal.hpp"
#include "util/net/test_support.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;

LogRecord text_record(std::string message, Priority priority = Priority::warning)
{
    return {priority, message_id::none, std::move(message), {}};
}

struct Pipe {
    Pipe()
    {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) != 0)
            throw std::runtime_error("pipe2");
        reader.reset(fds[0]);
        writer.reset(fds[1]);
    }
    // To the last byte, and blocking as before.
    void fill() const
    {
        int flags = fcntl(writer.get(), F_GETFL);
        fcntl(writer.get(), F_SETFL, flags | O_NONBLOCK);
        while (write(writer.get(), "x", 1) == 1) {
        }
        fcntl(writer.get(), F_SETFL, flags);
    }
    std::string read_some() const
    {
        std::string text(1 << 17, '\0');
        ssize_t got = read(reader.get(), text.data(), text.size());
        text.resize(got < 0 ? 0 : static_cast<size_t>(got));
        return text;
    }
    UniqueFd reader, writer;
};

// What would wait for ever ends the test program instead.
class Sink : public ::testing::Test {
protected:
    void SetUp() override
    {
        alarm(120);
        signal(SIGPIPE, SIG_IGN);
    }
    void TearDown() override { alarm(0); }
};

TEST_F(Sink, OneLineOnStderr)
{
    Pipe pipe;
    StderrSink plain(pipe.writer.get(), "sluiced", false), marked(pipe.writer.get(), "sluiced", true);
    EXPECT_TRUE(plain.write(text_record("cannot listen")));
    EXPECT_EQ(pipe.read_some(), "sluiced: cannot listen\n");
    EXPECT_TRUE(marked.write(text_record("cannot listen", Priority::error)));
    EXPECT_EQ(pipe.read_some(), "<3>cannot listen\n");
    EXPECT_TRUE(marked.write(text_record("one\ntwo\x1b[31m", Priority::debug)));
    EXPECT_EQ(pipe.read_some(), "<7>one\\x0atwo\\x1b[31m\n");
}

TEST_F(Sink, ALongLineIsCutBetweenCharacters)
{
    Pipe pipe;
    StderrSink sink(pipe.writer.get(), "s", false);
    EXPECT_TRUE(sink.write(text_record(std::string(10'000, 'x'))));
    EXPECT_EQ(pipe.read_some(), "s: " + std::string(PIPE_BUF - 7, 'x') + "...\n");
    EXPECT_TRUE(sink.write(text_record(std::string(PIPE_BUF - 4, 'x'))));
    EXPECT_EQ(pipe.read_some(), "s: " + std::string(PIPE_BUF - 4, 'x') + "\n");
    std::string umlauts;
    for (int i = 0; i < 4096; ++i)
        umlauts += "\xc3\xa4";
    for (const char *shift : {"", "x"}) {
        EXPECT_TRUE(sink.write(text_record(shift + umlauts)));
        std::string line = pipe.read_some();
        EXPECT_LE(line.size(), size_t{PIPE_BUF});
        EXPECT_GE(line.size(), size_t{PIPE_BUF} - 1);
        EXPECT_EQ(line.substr(line.size() - 6), "\xc3\xa4...\n");
    }
}

TEST_F(Sink, AFullPipeHoldsNobodyUp)
{
    Pipe pipe;
    pipe.fill();
    StderrSink sink(pipe.writer.get(), "s", false);
    EXPECT_FALSE(sink.write(text_record("lost")));
    EXPECT_EQ(fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK, 0) << "the pipe belongs to others too";
    EXPECT_EQ(pipe.read_some().find_first_not_of('x'), std::string::npos);
    EXPECT_TRUE(sink.write(text_record("found")));
    EXPECT_EQ(pipe.read_some(), "s: found\n");
}

// A pipe that root has made and another user has inherited cannot be opened again.
TEST_F(Sink, AFullPipeOfAnotherUser)
{
    Pipe pipe;
    pipe.fill();
    int result = in_child([&] {
        alarm(120);
        if (!become_unprivileged())
            return 1;
        StderrSink sink(pipe.writer.get(), "s", false);
        if (sink.write(text_record("lost")))
            return 2;
        pipe.read_some();
        return sink.write(text_record("found")) ? 0 : 3;
    });
    EXPECT_EQ(result, 0);
    EXPECT_EQ(pipe.read_some(), "s: found\n");
}

TEST_F(Sink, AFullDisk)
{
    UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(full);
    StderrSink sink(full.get(), "s", false);
    EXPECT_FALSE(sink.write(text_record("lost")));
    EXPECT_FALSE(sink.write(text_record("lost")));
}

TEST_F(Sink, NobodyThere)
{
    Pipe pipe;
    StderrSink sink(pipe.writer.get(), "s", false);
    pipe.reader.reset();
    EXPECT_FALSE(sink.write(text_record("lost")));
    StderrSink closed(-1, "s", false);
    EXPECT_FALSE(closed.write(text_record("lost")));
}

TEST_F(Sink, ATerminalThatIsNotRead)
{
    int master = -1, slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    UniqueFd screen(master), terminal(slave);
    StderrSink sink(terminal.get(), "s", false);
    EXPECT_TRUE(sink.write(text_record("found")));
    int lost = 0;
    for (int i = 0; i < 100; ++i)
        lost += sink.write(text_record(std::string(3000, 'x'))) ? 0 : 1;
    EXPECT_GT(lost, 0);
    EXPECT_EQ(fcntl(terminal.get(), F_GETFL) & O_NONBLOCK, 0);
    char bytes[9];
    ASSERT_EQ(read(screen.get(), bytes, sizeof bytes), 9);
    EXPECT_EQ(std::string(bytes, 9), "s: found\r");
}

TEST_F(Sink, ASocketThatIsNotRead)
{
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    UniqueFd here(fds[0]), there(fds[1]);
    StderrSink sink(here.get(), "s", true);
    int lost = 0;
    for (int i = 0; i < 1000; ++i)
        lost += sink.write(text_record(std::string(3000, 'x'))) ? 0 : 1;
    EXPECT_GT(lost, 0);
    EXPECT_EQ(fcntl(here.get(), F_GETFL) & O_NONBLOCK, 0);
    there.reset();
    EXPECT_FALSE(sink.write(text_record("lost")));
}

// Keeps what would have gone to stderr.
struct Kept : LogSink {
    explicit Kept(std::vector<std::string> &to) : messages(to) {}
    bool write(const LogRecord &record) override
    {
        messages.push_back(record.message);
        return true;
    }
    std::vector<std::string> &messages;
};

class Journal : public Sink {
protected:
    std::string received()
    {
        std::string bytes(1 << 18, '\0');
        ssize_t got = recv(journal.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
        return bytes;
    }

    TestDir dir;
    UniqueFd journal = make_socket(dir / "journal", -1, SOCK_DGRAM);
    std::vector<std::string> otherwise;
    JournalSink sink{dir / "journal", "sluiced", std::make_unique<Kept>(otherwise)};
};

TEST_F(Journal, OneDatagramARecord)
{
    ASSERT_TRUE(sink.write({Priority::error,
                            message_id::upstream_down,
                            "upstream is down",
                            {{"SLUICE_SERVICE", "web"}, {"SLUICE_UPSTREAM", "tcp:[::1]:80"}}}));
    EXPECT_EQ(received(), "MESSAGE=upstream is down\nPRIORITY=3\nSYSLOG_IDENTIFIER=sluiced\n"
                          "MESSAGE_ID=38d8929a9ce546679985cf8a5055ddcd\nSLUICE_SERVICE=web\n"
                          "SLUICE_UPSTREAM=tcp:[::1]:80\n");
    ASSERT_TRUE(sink.write(text_record("", Priority::debug)));
    EXPECT_EQ(received(), "MESSAGE=\nPRIORITY=7\nSYSLOG_IDENTIFIER=sluiced\n");
    EXPECT_EQ(received(), "");
    EXPECT_TRUE(otherwise.empty());
}

TEST_F(Journal, ALineFeedCannotForgeAField)
{
    ASSERT_TRUE(sink.write({Priority::info,
                            message_id::none,
                            "a\nPRIORITY=0",
                            {{"SLUICE_PEER", "b\n_UID=0\n"}, {"SLUICE_BYTES_UP", "1"}}}));
    EXPECT_EQ(received(), "MESSAGE\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\nPRIORITY=6\nSYSLOG_IDENTIFIER=sluiced\n"
                          "SLUICE_PEER\n\x09\0\0\0\0\0\0\0b\n_UID=0\n\nSLUICE_BYTES_UP=1\n"s);
}

TEST_F(Journal, AJournalThatDoesNotReadHoldsNobodyUp)
{
    int taken = 0;
    for (int i = 0; i < 5000; ++i)
        taken += sink.write({Priority::info, message_id::none, "record", {{"SLUICE_PEER", std::string(9000, 'x')}}});
    EXPECT_GT(taken, 0);
    EXPECT_LT(taken, 5000);
    EXPECT_TRUE(otherwise.empty()) << "its stream would not take a line either";
    std::string first = received();
    EXPECT_EQ(first.size(), "MESSAGE=record\nPRIORITY=6\nSYSLOG_IDENTIFIER=sluiced\nSLUICE_PEER=\n"s.size() + 8192);
    EXPECT_TRUE(sink.write(text_record("there is room again")));
}

TEST_F(Journal, WithoutAJournalThereIsStderr)
{
    ASSERT_EQ(unlink((dir / "journal").c_str()), 0);
    EXPECT_TRUE(sink.write(text_record("one")));
    make_dead_socket(dir / "journal");
    EXPECT_TRUE(sink.write(text_record("two")));
    EXPECT_EQ(otherwise, (std::vector<std::string>{"one", "two"}));
    ASSERT_EQ(unlink((dir / "journal").c_str()), 0);
    journal = make_socket(dir / "journal", -1, SOCK_DGRAM);
    EXPECT_TRUE(sink.write(text_record("three")));
    EXPECT_NE(received(), "") << "a journal that has come back is used again";
}

TEST(JournalStream, IsKnownByItsInode)
{
    Pipe pipe;
    struct stat status;
    ASSERT_EQ(fstat(pipe.writer.get(), &status), 0);
    std::string device = std::to_string(status.st_dev), inode = std::to_string(status.st_ino);
    EXPECT_TRUE(is_journal_stream(pipe.writer.get(), (device + ":" + inode).c_str()));
    for (const std::string &other : {device + ":" + inode + "0", "1" + device + ":" + inode, device, ":"s, ""s,
                                     device + ":" + inode + " ", inode + ":" + device})
        EXPECT_FALSE(is_journal_stream(pipe.writer.get(), other.c_str())) << other;
    EXPECT_FALSE(is_journal_stream(pipe.writer.get(), nullptr));
    EXPECT_FALSE(is_journal_stream(-1, (device + ":" + inode).c_str()));
}

// A datagram of the journal's protocol, taken apart.
std::multimap<std::string, std::string> fields_of(const std::string &datagram)
{
    std::multimap<std::string, std::string> fields;
    for (size_t at = 0; at < datagram.size();) {
        size_t end = datagram.find('\n', at), equals = datagram.find('=', at);
        if (end == std::string::npos)
            throw std::runtime_error("a field without an end");
        if (equals < end) {
            fields.emplace(datagram.substr(at, equals - at), datagram.substr(equals + 1, end - equals - 1));
            at = end + 1;
        } else {
            uint64_t size = 0;
            datagram.copy(reinterpret_cast<char *>(&size), sizeof size, end + 1);
            fields.emplace(datagram.substr(at, end - at), datagram.substr(end + 9, size));
            at = end + 9 + size + 1;
        }
    }
    return fields;
}

// systemd's own library writes to a socket in the journal's place, and so does the log as
// the daemon uses it: the two say the same. All of it in a file system of its own.
TEST_F(Sink, SaysWhatSystemdsLibrarySays)
{
    constexpr int skip = 77;
    int result = in_child([] {
        alarm(120);
        if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return skip;
        if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", "/run", "tmpfs", 0, nullptr) != 0)
            return skip;
        mkdir("/run/systemd", 0755);
        mkdir("/run/systemd/journal", 0755);
        UniqueFd journal = make_socket(journal_socket_path, -1, SOCK_DGRAM);
        auto received = [&] {
            std::string bytes(1 << 16, '\0');
            ssize_t got = recv(journal.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
            return bytes;
        };

        std::string theirs[] = {"MESSAGE=two\nlines"s, "PRIORITY=5"s, "SYSLOG_IDENTIFIER=sluiced"s,
                                "MESSAGE_ID="s + message_id::ready.id, "SLUICE_SERVICE=web"s};
        std::vector<iovec> parts;
        for (std::string &field : theirs)
            parts.push_back({field.data(), field.size()});
        if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) != 0)
            return 2;
        auto wanted = fields_of(received());

        // stderr is the journal's stream now
        Pipe stream;
        dup2(stream.writer.get(), STDERR_FILENO);
        struct stat status;
        fstat(STDERR_FILENO, &status);
        setenv("JOURNAL_STREAM", (std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino)).c_str(), 1);
        Log log;
        log.record(Priority::notice, message_id::ready, "two\nlines", {{"SLUICE_SERVICE", "web"}});
        if (wanted.size() != 5 || fields_of(received()) != wanted)
            return 3;
        // and with the journal gone it is the stream that has it, marked as it wants it
        unlink(journal_socket_path);
        log.record(Priority::error, message_id::ready, "alone");
        return stream.read_some() == "<3>alone\n" ? 0 : 4;
    });
    if (result == skip)
        GTEST_SKIP() << "no mount namespaces here";
    EXPECT_EQ(result, 0);
}

} // namespace
} // namespace sluice
