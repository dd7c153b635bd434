// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "remote/proxyd/config/arguments.hpp"

namespace sluice::proxyd {
namespace {

using namespace std::chrono_literals;

Result<Options> parse(std::vector<std::string> words)
{
    words.insert(words.begin(), "sluiced");
    std::vector<char *> argv;
    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    return parse_options(static_cast<int>(words.size()), argv.data());
}

Config config_of(const std::vector<std::string> &words)
{
    auto options = parse(words);
    EXPECT_TRUE(options) << options.error().message;
    if (!options)
        return {};
    auto config = load_config(*options);
    EXPECT_TRUE(config) << to_string(config.error()[0]);
    return config ? *config : Config{};
}

std::string error_of(const std::vector<std::string> &words)
{
    auto options = parse(words);
    return options ? "none" : options.error().message;
}

TEST(Options, AnAddressIsAConfigurationOfOneService)
{
    Config config = config_of({"localhost:8080"});
    ASSERT_EQ(config.services.size(), 1u);
    ServiceConfig expected;
    expected.name = "default";
    expected.connect = {TcpAddress{"localhost", "8080"}};
    expected.listen.emplace_back(); // every passed socket
    EXPECT_EQ(config.services[0], expected);
    config.services.clear();
    EXPECT_EQ(config, Config{});
}

TEST(Options, TakesTheCommandLinesOfSystemdSocketProxyd)
{
    const std::vector<std::string> forms[] = {
        {"--connections-max=7", "--exit-idle-time=5min 20s", "/run/x"},
        {"--connections-max", "7", "--exit-idle-time", "320", "/run/x"},
        {"-c", "7", "--exit-idle-time=320s", "--", "/run/x"},
        {"-c7", "/run/x", "--exit-idle-time=5min20s"},
        {"--conn=7", "--exit", "5min 20s", "/run/x"},
    };
    for (const auto &form : forms) {
        Config config = config_of(form);
        ASSERT_EQ(config.services.size(), 1u) << form[0];
        EXPECT_EQ(config.services[0].limits.connections, 7u) << form[0];
        EXPECT_EQ(config.exit_idle_time, 320s) << form[0];
        EXPECT_EQ(config.services[0].connect, std::vector<Address>{UnixPath{"/run/x"}}) << form[0];
    }
    EXPECT_EQ(config_of({"--exit-idle-time=infinity", "/run/x"}).exit_idle_time, 0s);
    EXPECT_EQ(config_of({"--exit-idle-time=0", "/run/x"}).exit_idle_time, 1s);
    EXPECT_EQ(config_of({"--exit-idle-time=10ms", "/run/x"}).exit_idle_time, 1s);
}

TEST(Options, EveryOptionGoesToItsField)
{
    Config config = config_of({"--proxy-protocol=v2", "--drain-timeout=90", "--workers=3", "--listen=tcp:[::]:80",
                               "--listen=systemd:web", "--admin=/run/admin", "--log-level=warning", "@up"});
    const ServiceConfig &service = config.services.at(0);
    EXPECT_EQ(service.send_proxy, ProxyProtocol::v2);
    ASSERT_EQ(service.listen.size(), 2u);
    EXPECT_EQ(std::get<Address>(service.listen[0].at), Address(TcpAddress{"::", "80"}));
    EXPECT_EQ(std::get<PassedSocket>(service.listen[1].at).name, "web");
    EXPECT_EQ(service.connect, std::vector<Address>{UnixAbstract{"up"}});
    EXPECT_EQ(config.drain_timeout, 90s);
    EXPECT_EQ(config.workers, 3u);
    EXPECT_EQ(config.log_level, LogLevel::warning);
    ASSERT_EQ(config.admin.listen.size(), 1u);
    EXPECT_EQ(std::get<Address>(config.admin.listen[0].at), Address(UnixPath{"/run/admin"}));
    EXPECT_EQ(config_of({"--drain-timeout=infinity", "@up"}).drain_timeout, 1000h);
    EXPECT_TRUE(parse({"--version"})->show_version);
    EXPECT_TRUE(parse({"-V", "x", "y"})->show_version);
}

class TomlFile {
public:
    explicit TomlFile(const std::string &text)
    {
        int fd = mkstemps(name_, 5);
        EXPECT_GE(fd, 0);
        close(fd);
        std::ofstream(name_) << text;
    }
    ~TomlFile() { unlink(name_); }
    std::string name() const { return name_; }

private:
    char name_[32] = "/tmp/sluiced-XXXXXX.toml";
};

TEST(Options, AFileIsNamedInSeveralWays)
{
    for (const auto &words : {std::vector<std::string>{"--config=/x"}, {"--config", "/x"}, {"-f", "/x"}, {"-f/x"}}) {
        auto options = parse(words);
        ASSERT_TRUE(options) << words[0];
        EXPECT_EQ(options->config_path, "/x");
        EXPECT_FALSE(options->check);
    }
    for (const auto &words :
         {std::vector<std::string>{"--check", "/x"}, {"--check", "--config", "/x"}, {"-f/x", "--check"}}) {
        auto options = parse(words);
        ASSERT_TRUE(options) << words[0];
        EXPECT_EQ(options->config_path, "/x");
        EXPECT_TRUE(options->check);
    }
}

TEST(Options, TheCommandLineGoesBeforeTheFile)
{
    TomlFile file("[daemon]\nworkers = 2\nlog-level = 'error'\n[admin]\nlisten = '/run/a'\n"
                  "[[service]]\nname = 'x'\nlisten = '/run/x'\nconnect = '/run/y'\n");
    Config config = config_of({"-f", file.name(), "--workers=5", "--admin=/run/b", "--drain-timeout=1min"});
    EXPECT_EQ(config.workers, 5u);
    EXPECT_EQ(config.log_level, LogLevel::error);
    EXPECT_EQ(config.drain_timeout, 60s);
    EXPECT_EQ(std::get<Address>(config.admin.listen.at(0).at), Address(UnixPath{"/run/b"}));
    EXPECT_EQ(config.services.at(0).name, "x");
    auto options = parse({"-f", file.name(), "--exit-idle-time=5"});
    ASSERT_TRUE(options);
    EXPECT_FALSE(load_config(*options)) << "it has a socket of its own";
    auto own = parse({"--listen=/run/x", "--exit-idle-time=5", "/run/y"});
    ASSERT_TRUE(own);
    EXPECT_FALSE(load_config(*own));
}

TEST(Options, ErrorsSayWhatToWrite)
{
    const std::pair<std::vector<std::string>, const char *> cases[] = {
        {{}, "no address: say where to connect to, or --config=FILE"},
        {{"a:1", "b:2"}, "\"b:2\" is one argument too many"},
        {{"--connections-max=0", "a:1"}, "--connections-max: \"0\" is no number: write one from 1 to 1000000"},
        {{"-c", "x", "a:1"}, "--connections-max: \"x\" is no number"},
        {{"--workers=257", "a:1"}, "write one from 1 to 256"},
        {{"--exit-idle-time=-1", "a:1"}, "--exit-idle-time: \"-1\" is no time"},
        {{"--drain-timeout=1y", "a:1"}, "is no time up to 1000h"},
        {{"--proxy-protocol=v3", "a:1"}, "\"v3\" is not known: write \"v1\" or \"v2\""},
        {{"--log-level=loud", "a:1"}, "write \"error\", \"warning\", \"info\" or \"debug\""},
        {{"--listen=x", "a:1"}, "--listen: bad address 'x'"},
        {{"--admin=tcp:localhost:1", "a:1"}, "is no unix socket"},
        {{"8080"}, "write localhost:8080"},
        {{"--config=/x", "a:1"}, "\"a:1\": with --config, all services are in the file"},
        {{"--config=/x", "--connections-max=5"}, "--connections-max: with --config, all services are in the file"},
        {{"--check"}, "--check: no file"},
        {{"--check", "a", "b"}, "\"b\" is one argument too many"},
        {{"--check", "-fa", "b"}, "\"b\" is one argument too many"},
        {{"--no-such-option", "a:1"}, "--no-such-option"},
        {{"--connections-max"}, "--connections-max"},
    };
    for (const auto &[words, says] : cases) {
        std::string error = error_of(words);
        EXPECT_NE(error.find(says), std::string::npos) << (words.empty() ? "" : words[0]) << ": " << error;
    }
}

TEST(Arguments, AreSpeltOut)
{
    const std::vector<OptionName> known{{"listen", 0, true},
                                        {"log-level", 0, true},
                                        {"connections-max", 'c', true},
                                        {"check", 0, false},
                                        {"config", 'f', true}};
    using Words = std::vector<std::string>;
    auto spelt = [&](const Words &words) { return spell_out(words, known); };
    EXPECT_EQ(spelt({"--li=x", "--lo", "y"}), (Words{"--listen=x", "--log-level", "y"}));
    EXPECT_EQ(spelt({"--l=x", "--con=5", "--x"}), (Words{"--l=x", "--con=5", "--x"}));
    EXPECT_EQ(spelt({"-c5", "-c", "-f6", "-x"}), (Words{"--connections-max=5", "-c", "-f6", "-x"}));
    EXPECT_EQ(spelt({"--", "-c5", "--li"}), (Words{"--", "-c5", "--li"}));
    EXPECT_EQ(spelt({"--listen", "--", "--ch"}), (Words{"--listen", "--", "--check"}));
    EXPECT_EQ(spelt({"a", "-", ""}), (Words{"a", "-", ""}));
}

} // namespace
} // namespace sluice::proxyd
