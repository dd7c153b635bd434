// SPDX-License-Identifier: LGPL-2.1-or-later

// Every kind of file that a shell may put at stdin and stdout, none at all included,
// and that their shared settings are left as they were.

#include "support/helper.hpp"

namespace sluice::test {
namespace {

constexpr uint64_t file_bytes = 10'000'019;

class HelperStdio : public HelperTest {
protected:
    // A file of so many bytes of the pattern.
    std::string pattern_file(uint64_t bytes, Pattern pattern = Pattern{})
    {
        std::vector<std::byte> content(bytes);
        pattern.fill(0, content);
        const std::string path = dir / "input";
        const UniqueFd file = open_file(path, O_CREAT | O_TRUNC | O_WRONLY);
        EXPECT_EQ(write(file.get(), content.data(), content.size()), ssize_t(content.size()));
        return path;
    }

    static bool has_pattern(const std::string &content, uint64_t bytes, Pattern pattern = Pattern{})
    {
        return content.size() == bytes && !pattern.first_difference(0, std::as_bytes(std::span{content}));
    }

    // The daemon's part: take everything to the end, then send so much and close.
    void serve(Child &child, uint64_t expected, uint64_t reply_bytes)
    {
        UniqueFd server = daemon.accept();
        ASSERT_TRUE(server) << child.errors();
        Traffic traffic;
        Drain &arrived = traffic.drain(server.get());
        EXPECT_TRUE(traffic.run_until([&] { return arrived.done; }));
        EXPECT_EQ(arrived.bytes, expected);
        EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
        Feed &reply = traffic.feed(server.get(), reply_bytes, Pattern{2});
        EXPECT_TRUE(traffic.run_until([&] { return reply.done; }));
    }
};

TEST_F(HelperStdio, RegularFiles)
{
    const UniqueFd input = open_file(pattern_file(file_bytes), O_RDONLY);
    const UniqueFd output = open_file(dir / "output", O_CREAT | O_WRONLY);
    Child child = helper({daemon.address()}).input(input.get()).output(output.get()).start();
    serve(child, file_bytes, file_bytes);
    expect_exit(child, 0);
    EXPECT_TRUE(has_pattern(file_text(dir / "output"), file_bytes, Pattern{2}));
}

TEST_F(HelperStdio, OutputAppends)
{
    const std::string kept = "what was there before\n";
    std::ofstream(dir / "output") << kept;
    const UniqueFd output = open_file(dir / "output", O_WRONLY | O_APPEND);
    Child child = helper({daemon.address()}).output(output.get()).start();
    serve(child, 0, file_bytes);
    expect_exit(child, 0);
    const std::string content = file_text(dir / "output");
    EXPECT_EQ(content.substr(0, kept.size()), kept);
    EXPECT_TRUE(has_pattern(content.substr(kept.size()), file_bytes, Pattern{2}));
}

// Several commands of one shell redirection share the position in a file.
TEST_F(HelperStdio, FilesAreUsedFromTheirPosition)
{
    const UniqueFd input = open_file(pattern_file(1000), O_RDONLY);
    ASSERT_EQ(lseek(input.get(), 600, SEEK_SET), 600);
    const UniqueFd output = open_file(dir / "output", O_CREAT | O_WRONLY);
    ASSERT_EQ(write(output.get(), "before", 6), 6);
    Child child = helper({daemon.address()}).input(input.get()).output(output.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    std::string received;
    Traffic traffic;
    Drain &arrived = traffic.drain(server.get());
    arrived.keep = &received;
    ASSERT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(received.size(), 400u);
    EXPECT_FALSE(Pattern{}.first_difference(600, std::as_bytes(std::span{received})));
    ASSERT_EQ(write(server.get(), "reply", 5), 5);
    server.reset();
    expect_exit(child, 0);
    EXPECT_EQ(lseek(input.get(), 0, SEEK_CUR), 1000);
    ASSERT_EQ(write(output.get(), "after", 5), 5);
    EXPECT_EQ(file_text(dir / "output"), "beforereplyafter");
}

TEST_F(HelperStdio, NullDevice)
{
    Child child = helper({daemon.address()}).start();
    serve(child, 0, file_bytes);
    expect_exit(child, 0);
}

TEST_F(HelperStdio, ZeroDeviceStreams)
{
    constexpr uint64_t enough = 64 << 20;
    const UniqueFd zero = open_file("/dev/zero", O_RDONLY);
    Child child = helper({daemon.address()}).input(zero.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    Traffic traffic;
    Drain &arrived = traffic.drain(server.get());
    std::string received;
    arrived.keep = &received;
    ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes >= enough; }));
    EXPECT_EQ(received.find_first_not_of('\0'), std::string::npos);
}

TEST_F(HelperStdio, ClosedInputIsAnEndedOne)
{
    Ends output = make_pipe();
    Child child = helper({daemon.address()}).input(Command::closed).output(output.second.get()).start();
    output.second.reset();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server) << child.errors();
    ASSERT_TRUE(wait_for(server.get(), POLLIN));
    char byte;
    EXPECT_EQ(read(server.get(), &byte, 1), 0);
    ASSERT_EQ(write(server.get(), "reply", 5), 5);
    server.reset();
    Traffic traffic;
    std::string received;
    Drain &arrived = traffic.drain(output.first.get());
    arrived.keep = &received;
    EXPECT_TRUE(traffic.run_until([&] { return arrived.done; }));
    EXPECT_EQ(received, "reply");
    expect_exit(child, 0);
}

TEST_F(HelperStdio, ClosedOutputStillSends)
{
    const UniqueFd input = open_file(pattern_file(file_bytes), O_RDONLY);
    Child child = helper({daemon.address()}).input(input.get()).output(Command::closed).start();
    serve(child, file_bytes, 0);
    expect_exit(child, 0);
}

TEST_F(HelperStdio, BytesForClosedOutputAreAnError)
{
    Ends input = make_pipe();
    Child child = helper({daemon.address()}).input(input.first.get()).output(Command::closed).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    ASSERT_EQ(write(server.get(), "reply", 5), 5);
    expect_exit(child, exit_code::io);
}

// The socket must not be given the number of a closed stdin or stdout, and be taken for it.
TEST_F(HelperStdio, NothingIsOpen)
{
    const Command command =
        helper({daemon.address()}).input(Command::closed).output(Command::closed).errors(Command::closed);
    Child child = command.start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    ASSERT_TRUE(wait_for(server.get(), POLLIN));
    char byte;
    EXPECT_EQ(read(server.get(), &byte, 1), 0);
    server.reset();
    const std::optional<Exit> exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0) << *exit;
}

TEST_F(HelperStdio, InputThatCannotBeReadIsAnError)
{
    const UniqueFd write_only = open_file(dir / "write-only", O_CREAT | O_WRONLY);
    Child child = helper({daemon.address()}).input(write_only.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    expect_exit(child, exit_code::io);
}

TEST_F(HelperStdio, FolderAsInputIsAnError)
{
    const UniqueFd folder = open_file(dir.path().string(), O_RDONLY);
    Child child = helper({daemon.address()}).input(folder.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    expect_exit(child, exit_code::io);
    EXPECT_NE(child.errors().find("Is a directory"), std::string::npos) << child.errors();
}

TEST_F(HelperStdio, Terminal)
{
    Ends terminal = make_terminal(false);
    Child child = helper({daemon.address()}).input(terminal.second.get()).output(terminal.second.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    ASSERT_EQ(write(terminal.first.get(), "a line\n", 7), 7);
    char received[16] = {};
    ASSERT_TRUE(wait_for(server.get(), POLLIN));
    EXPECT_EQ(read(server.get(), received, sizeof(received)), 7);
    EXPECT_STREQ(received, "a line\n");
    ASSERT_EQ(write(server.get(), "reply", 5), 5);
    ASSERT_TRUE(wait_for(terminal.first.get(), POLLIN));
    EXPECT_EQ(read(terminal.first.get(), received, sizeof(received)), 5);
    EXPECT_EQ(std::string(received, 5), "reply");
    // Ctrl-D at the beginning of a line
    ASSERT_EQ(write(terminal.first.get(), "\4", 1), 1);
    ASSERT_TRUE(wait_for(server.get(), POLLIN));
    EXPECT_EQ(read(server.get(), received, sizeof(received)), 0);
    server.reset();
    expect_exit(child, 0);
    EXPECT_FALSE(is_nonblocking(terminal.second.get()));
}

TEST_F(HelperStdio, RawTerminalCarriesBulk)
{
    constexpr uint64_t bulk = 1 << 20;
    Ends terminal = make_terminal(true);
    Child child = helper({daemon.address()}).input(terminal.second.get()).output(terminal.second.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    Traffic traffic;
    traffic.feed(terminal.first.get(), bulk);
    traffic.feed(server.get(), bulk, Pattern{2});
    Drain &arrived = traffic.drain(server.get());
    Drain &output = traffic.drain(terminal.first.get(), Pattern{2});
    EXPECT_TRUE(traffic.run_until([&] { return arrived.bytes == bulk && output.bytes == bulk; }));
    EXPECT_TRUE(arrived.intact) << arrived.damaged_at;
    EXPECT_TRUE(output.intact) << output.damaged_at;
}

// The terminal goes away: its end of the connection has ended.
TEST_F(HelperStdio, HangUpOfTheTerminalEnds)
{
    Ends terminal = make_terminal(true);
    Child child = helper({daemon.address()}).input(terminal.second.get()).output(terminal.second.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    terminal.first.reset();
    ASSERT_TRUE(wait_for(server.get(), POLLIN));
    char byte;
    EXPECT_EQ(read(server.get(), &byte, 1), 0);
    server.reset();
    const std::optional<Exit> exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->signal, 0);
}

// Whoever shares stdin or stdout with us must not find it non-blocking.
class HelperFlags : public HelperTest, public ::testing::WithParamInterface<std::tuple<Stdio, int>> {};

INSTANTIATE_TEST_SUITE_P(Endings, HelperFlags,
                         ::testing::Combine(::testing::Values(Stdio::pipes, Stdio::socketpair),
                                            ::testing::Values(0, SIGTERM, SIGINT, SIGHUP)),
                         [](const auto &which) {
                             const int signal = std::get<1>(which.param);
                             return std::string(name_of(std::get<0>(which.param))) + "_" +
                                    (signal ? sigabbrev_np(signal) : "end");
                         });

TEST_P(HelperFlags, AreLeftAsTheyWere)
{
    const auto [kind, signal] = GetParam();
    RelayStdio stdio = RelayStdio::make(kind);
    Child child = helper({daemon.address()}).input(stdio.child_input.get()).output(stdio.child_output.get()).start();
    UniqueFd server = daemon.accept();
    ASSERT_TRUE(server);
    {
        constexpr uint64_t bulk = 16 << 20;
        Traffic traffic;
        traffic.feed(stdio.input.get(), bulk);
        traffic.feed(server.get(), bulk);
        Drain &arrived = traffic.drain(server.get());
        Drain &output = traffic.drain(stdio.output.get());
        ASSERT_TRUE(traffic.run_until([&] { return arrived.bytes == bulk && output.bytes == bulk; }));
    }
    if (signal != 0) {
        child.kill(signal);
    } else {
        end_input(stdio.input);
        server.reset();
    }
    ASSERT_TRUE(child.wait());
    EXPECT_FALSE(is_nonblocking(stdio.child_input.get()));
    EXPECT_FALSE(is_nonblocking(stdio.child_output.get()));
}

} // namespace
} // namespace sluice::test
