// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice as it is called, but for top.

#include <sysexits.h>

#include "remote/cli/cli_fixture.hpp"
#include "remote/cli/json.hpp"

namespace sluice::cli {
namespace {

using ::testing::Test;

void expect_error(const Ran &ran, int code, std::initializer_list<const char *> parts)
{
    EXPECT_EQ(ran.code, code) << ran.errors;
    EXPECT_EQ(ran.output, "");
    EXPECT_TRUE(ran.errors.starts_with("sluice: ")) << ran.errors;
    EXPECT_EQ(std::count(ran.errors.begin(), ran.errors.end(), '\n'), 1) << ran.errors;
    for (const char *part : parts)
        EXPECT_NE(ran.errors.find(part), std::string::npos) << part << " in " << ran.errors;
}

class Commands : public CliTest {};

TEST_F(Commands, StatusForPeople)
{
    const Ran ran = run({"status"});
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_NE(ran.output.find("sluiced 1.2.3, pid 4711: ready for 1 h 0 min"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("\nweb      open          2/256        19        3  2.0 KiB  8.0 MiB  tcp:[::]:80,"),
              std::string::npos)
        << ran.output;
    EXPECT_EQ(ran.output.find('\x1b'), std::string::npos);
    EXPECT_EQ(ran.output.find("relaying"), std::string::npos);
    EXPECT_TRUE(hears("snapshot"));
}

TEST_F(Commands, StatusWithConnections)
{
    const Ran ran = run({"status", "--connections"});
    EXPECT_NE(ran.output.find("uid 1000 pid 4712"), std::string::npos) << ran.output;
    EXPECT_TRUE(hears("snapshot with connections"));
}

TEST_F(Commands, StatusForPrograms)
{
    for (const auto &args : {std::vector<std::string>{"--json", "status"}, {"status", "--json"}}) {
        auto document = JsonDocument::parse(run(args).output);
        ASSERT_TRUE(document);
        EXPECT_EQ(document->root().text("version"), "1.2.3");
        EXPECT_FALSE(document->root()["connections"].is_array());
    }
    auto document = JsonDocument::parse(run({"status", "--json", "-c"}).output);
    ASSERT_TRUE(document);
    EXPECT_EQ(document->root().list("connections").size(), 2u);
}

TEST_F(Commands, Metrics)
{
    const Ran ran = run({"metrics"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(ran.output.starts_with("# HELP ")) << ran.output;
    EXPECT_NE(ran.output.find("\nsluice_fds_open 42\n"), std::string::npos) << ran.output;
}

TEST_F(Commands, DrainAndResume)
{
    Ran ran = run({"drain", "web"});
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_EQ(ran.output, "\"web\" takes no more connections; those there are go on\n");
    EXPECT_TRUE(hears("draining web"));
    EXPECT_NE(run({"status"}).output.find("\nweb      draining"), std::string::npos);
    expect_error(run({"drain", "web"}), EX_UNAVAILABLE, {"\"web\" is draining"});
    ran = run({"resume", "--json", "web"});
    EXPECT_EQ(ran.output, "{\"done\":\"resume\",\"service\":\"web\"}\n");
    EXPECT_TRUE(hears("open web"));
    expect_error(run({"drain", "a b/c"}), EX_NOINPUT, {"a b/c"});
    EXPECT_TRUE(hears("draining a b/c"));
    expect_error(run({"drain"}), EX_USAGE, {"sluice drain SERVICE"});
    expect_error(run({"drain", "web", "db"}), EX_USAGE, {"\"db\""});
}

TEST_F(Commands, Close)
{
    EXPECT_EQ(run({"close", "17"}).output, "connection 17 is closed\n");
    EXPECT_TRUE(hears("close 17"));
    expect_error(run({"close", "17"}), EX_NOINPUT, {"17"});
    expect_error(run({"close", "-1"}), EX_USAGE, {"-1"});
    expect_error(run({"close", "--", "-1"}), EX_USAGE, {"\"-1\"", "status --connections"});
    EXPECT_EQ(run({"close", "--json", "18"}).output, "{\"done\":\"close\",\"connection\":18}\n");
}

TEST_F(Commands, TheSocketMayBeNamedBeforeOrAfterTheCommand)
{
    auto elsewhere = [&](std::vector<std::string> args) {
        return finish(command(std::move(args)).env("SLUICE_ADMIN", "unix:/nowhere"));
    };
    EXPECT_EQ(elsewhere({"--admin=" + path, "status"}).code, 0);
    EXPECT_EQ(elsewhere({"status", "--admin", "unix:" + path}).code, 0);
    expect_error(elsewhere({"status"}), EX_NOINPUT, {"unix:/nowhere", "[admin]", "--admin"});
}

TEST_F(Commands, AUserOwnDaemonComesFirst)
{
    if (geteuid() == 0) {
        // root has no daemon of its own: the system's, which is not there
        std::filesystem::create_directory(dir / "sluiced");
        std::filesystem::create_symlink(path, dir / "sluiced/admin.sock");
        expect_error(finish(command({"status"}).env("SLUICE_ADMIN", "").env("XDG_RUNTIME_DIR", dir.path())), EX_NOINPUT,
                     {"/sluiced/admin.sock"});
        // and somebody else is not let in, but has found it
        expect_error(
            finish(command({"status"}).env("SLUICE_ADMIN", "").env("XDG_RUNTIME_DIR", dir.path()).as_user(65534)),
            EX_NOPERM, {(dir / "sluiced/admin.sock").c_str(), "not permitted"});
        return;
    }
    std::filesystem::create_directory(dir / "sluiced");
    std::filesystem::create_symlink(path, dir / "sluiced/admin.sock");
    EXPECT_EQ(finish(command({"status"}).env("SLUICE_ADMIN", "").env("XDG_RUNTIME_DIR", dir.path())).code, 0);
}

TEST_F(Commands, SaysWhyThereIsNoAnswer)
{
    expect_error(run({"--admin=odd", "status"}), EX_USAGE, {"odd"});
    expect_error(run({"--admin=vsock:1:1", "status"}), EX_USAGE, {"vsock:1:1"});
    expect_error(run({"--admin=tcp:127.0.0.1:http", "status"}), EX_USAGE, {"tcp:127.0.0.1:http"});
    const int port = [] {
        return test::Listener::tcp4().port(); // closed again
    }();
    expect_error(run({"--admin=tcp:127.0.0.1:" + std::to_string(port), "status"}), EX_UNAVAILABLE, {"nobody listens"});
    stop_daemon();
    expect_error(run({"status"}), EX_NOINPUT, {path.c_str()});
}

TEST_F(Commands, ALockedSocketIsSaidToBe)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "needs root to be somebody else";
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    expect_error(finish(command({"status"}).as_user(65534)), EX_NOPERM, {"permission denied"});
    std::filesystem::permissions(path, std::filesystem::perms(0666));
    expect_error(finish(command({"drain", "web"}).as_user(65534)), EX_NOPERM, {"not permitted", "[admin]"});
}

// Whatever listens there instead of a sluiced: what it says, and how sluice ends.
TEST_F(Commands, AnswersOfOthersAreNotBelieved)
{
    const std::pair<const char *, int> answers[] = {
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", EX_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", EX_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", EX_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"version\":", EX_UNAVAILABLE},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", EX_PROTOCOL},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", EX_PROTOCOL},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 18\r\n\r\n{\"error\":\"\\u001b\"}", EX_UNAVAILABLE},
        {"", EX_UNAVAILABLE},
    };
    for (const auto &[answer, code] : answers) {
        test::Listener listener = test::Listener::unix_socket("@sluice-cli-test-" + std::to_string(getpid()));
        const UniqueFd output(test::must(memfd_create("output", MFD_CLOEXEC), "memfd_create"));
        test::Child child = command({"status", "--admin=unix:" + listener.address()}).output(output.get()).start();
        {
            UniqueFd client = listener.accept();
            ASSERT_TRUE(client);
            std::string request;
            char block[1024];
            while (request.find("\r\n\r\n") == std::string::npos) {
                ASSERT_TRUE(test::wait_for(client.get(), POLLIN));
                const ssize_t count = read(client.get(), block, sizeof block);
                ASSERT_GT(count, 0);
                request.append(block, static_cast<size_t>(count));
            }
            EXPECT_TRUE(request.starts_with("GET /status?connections=no HTTP/1.1\r\n")) << request;
            const std::string_view text = answer;
            ASSERT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
            shutdown(client.get(), SHUT_WR);
            listener.close(); // nobody for a second try
        }
        const auto exit = child.wait();
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->code, code) << answer << child.errors();
        EXPECT_TRUE(child.errors().starts_with("sluice: ")) << child.errors();
        EXPECT_EQ(child.errors().find('\x1b'), std::string::npos);
    }
}

TEST_F(Commands, OutputThatCannotBeWrittenIsAnError)
{
    const UniqueFd full = test::open_file("/dev/full", O_WRONLY);
    test::Child child = command({"status"}).output(full.get()).start();
    const auto exit = child.wait();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, EX_IOERR);
    EXPECT_NE(child.errors().find("standard output"), std::string::npos) << child.errors();
}

// What bash offers for the beginning of a line; the daemon is asked for the names.
TEST_F(Commands, BashCompletesWhatThereIs)
{
    auto offers = [&](const std::string &line) {
        test::Command bash({"bash", "-c",
                            "compopt() { :; }; . \"$1\"; COMP_LINE=$2 COMP_POINT=${#2}; _sluice; "
                            "echo \"${COMPREPLY[*]}\"",
                            "bash", SLUICE_BASH_COMPLETION, line});
        const std::string folder = std::filesystem::path(program).parent_path();
        bash.env("PATH", folder + ":" + environment("PATH")).env("SLUICE_ADMIN", "unix:/nowhere");
        const Ran ran = finish(bash);
        EXPECT_EQ(ran.errors, "");
        return ran.output;
    };
    const std::string here = "sluice --admin=unix:" + path;
    EXPECT_EQ(offers("sluice "), "status top drain resume close metrics\n");
    EXPECT_EQ(offers("sluice dr"), "drain\n");
    EXPECT_EQ(offers("sluice status --c"), "--connections\n");
    EXPECT_EQ(offers(here + " drain "), "web db\n");
    EXPECT_EQ(offers(here + " resume d"), "db\n");
    EXPECT_EQ(offers(here + " close "), "18 17\n");
    EXPECT_EQ(offers("sluice drain "), "\n");
    EXPECT_EQ(offers("sluice top --interval=5"), "500ms 5s\n");
}

TEST_F(Commands, HelpVersionAndUsage)
{
    EXPECT_NE(run({"--help"}).output.find("\n  drain SERVICE "), std::string::npos);
    for (const char *name : {"status", "top", "drain", "resume", "close", "metrics"}) {
        const Ran ran = run({name, "--help"});
        EXPECT_EQ(ran.code, 0);
        EXPECT_TRUE(ran.output.starts_with(std::string("Usage:\n  sluice ") + name)) << ran.output;
        EXPECT_NE(ran.output.find("--admin=ADDRESS"), std::string::npos) << ran.output;
        expect_error(run({name, "--no-such-thing"}), EX_USAGE, {"--no-such-thing", name});
    }
    EXPECT_TRUE(run({"--version"}).output.starts_with("sluice "));
    expect_error(run({}), EX_USAGE, {"--help"});
    expect_error(run({"stat"}), EX_USAGE, {"\"stat\""});
    expect_error(run({"--json", "metrics"}), EX_USAGE, {"--json"});
    expect_error(run({"status", "web"}), EX_USAGE, {"\"web\""});
    expect_error(run({"top"}), EX_USAGE, {"terminal", "sluice status"});
    expect_error(run({"top", "--interval=1ms"}), EX_USAGE, {"1ms"});
}

} // namespace
} // namespace sluice::cli
