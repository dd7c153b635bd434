// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "remote/proxyd/listeners.hpp"

namespace sluice::proxyd {
namespace {

class ListenersTest : public testing::Test {
protected:
    ListenersTest()
    {
        char name[] = "/tmp/listeners-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~ListenersTest() override { std::filesystem::remove_all(folder_); }

    std::string path(const char *name) const { return folder_ + "/" + name; }
    Address address(const char *name) const { return UnixPath{path(name)}; }

    PassedFd passed(const char *name)
    {
        auto listener = listen_on(address(name));
        EXPECT_TRUE(listener);
        UniqueFd copy(fcntl(listener->fds().front().get(), F_DUPFD_CLOEXEC, 3));
        listener->keep_path();
        return {std::move(copy), name};
    }

    static ServiceConfig service(const char *name, std::vector<ListenConfig> listen)
    {
        ServiceConfig one;
        one.name = name;
        one.listen = std::move(listen);
        return one;
    }
    static ListenConfig by_name(const char *name) { return {PassedSocket{name}, {}, {}, {}}; }
    ListenConfig own(const char *name, std::optional<mode_t> mode = {}) const { return {address(name), mode, {}, {}}; }

    std::string folder_;
};

std::string joined(const std::vector<std::string> &lines)
{
    std::string all;
    for (const std::string &line : lines)
        all += line + "\n";
    return all;
}

TEST_F(ListenersTest, PassedSocketsAreFoundByNameInAnyOrder)
{
    std::vector<PassedFd> fds;
    fds.push_back(passed("b"));
    fds.push_back(passed("a"));
    fds.push_back(passed("c"));
    Listeners listeners(std::move(fds));
    Config config;
    config.services = {service("one", {by_name("a")}), service("two", {by_name("b")})};
    auto set = listeners.open(config, {});
    ASSERT_TRUE(set) << joined(set.error());
    EXPECT_EQ(to_string((*set)["one"].at(0).listener->addresses().at(0)), "unix:" + path("a"));
    EXPECT_EQ(to_string((*set)["two"].at(0).listener->addresses().at(0)), "unix:" + path("b"));
    EXPECT_TRUE((*set)["one"].at(0).passed);
    ASSERT_EQ(listeners.unused(*set).size(), 1u);
    EXPECT_EQ(listeners.unused(*set)[0], "c (unix:" + path("c") + ")");
}

TEST_F(ListenersTest, NoNameMeansAllThatNobodyNames)
{
    std::vector<PassedFd> fds;
    fds.push_back(passed("a"));
    fds.push_back(passed("b"));
    fds.push_back(passed("c"));
    Listeners listeners(std::move(fds));
    Config config;
    config.services = {service("rest", {by_name("")}), service("two", {by_name("b")})};
    auto set = listeners.open(config, {});
    ASSERT_TRUE(set) << joined(set.error());
    EXPECT_EQ((*set)["rest"].size(), 2u);
    EXPECT_TRUE(listeners.unused(*set).empty());
}

TEST_F(ListenersTest, WhatIsMissingIsSaidAllAtOnce)
{
    std::vector<PassedFd> fds;
    fds.push_back(passed("a"));
    Listeners listeners(std::move(fds));
    Config config;
    config.services = {service("one", {by_name("x")}), service("two", {by_name("y")}),
                       service("three", {own("no/such/folder")})};
    auto set = listeners.open(config, {});
    ASSERT_FALSE(set);
    ASSERT_EQ(set.error().size(), 3u) << joined(set.error());
    EXPECT_NE(set.error()[0].find("\"x\""), std::string::npos) << set.error()[0];
    EXPECT_NE(set.error()[0].find("there are: a"), std::string::npos) << set.error()[0];
    EXPECT_NE(set.error()[2].find("no/such/folder"), std::string::npos) << set.error()[2];
}

TEST_F(ListenersTest, NothingPassedIsSaidPlainly)
{
    Listeners listeners({});
    Config config;
    config.services = {service("default", {by_name("")})};
    auto set = listeners.open(config, {});
    ASSERT_FALSE(set);
    EXPECT_NE(joined(set.error()).find("no socket was passed in"), std::string::npos) << joined(set.error());
}

TEST_F(ListenersTest, APassedSocketsPathStays)
{
    {
        std::vector<PassedFd> fds;
        fds.push_back(passed("a"));
        Listeners listeners(std::move(fds));
        Config config;
        config.services = {service("one", {by_name("a")})};
        ASSERT_TRUE(listeners.open(config, {}));
    }
    EXPECT_TRUE(std::filesystem::is_socket(path("a")));
}

TEST_F(ListenersTest, OwnSocketsComeAndGoAndSurviveAReload)
{
    Listeners listeners({});
    Config config;
    config.services = {service("one", {own("a", 0600)}), service("two", {own("b")})};
    auto first = listeners.open(config, {});
    ASSERT_TRUE(first) << joined(first.error());
    const Listener *kept = (*first)["one"].at(0).listener.get();

    config.services = {service("renamed", {own("a", 0660)}), service("three", {own("c")})};
    auto second = listeners.open(config, *first);
    ASSERT_TRUE(second) << joined(second.error());
    EXPECT_EQ((*second)["renamed"].at(0).listener.get(), kept);
    struct stat found;
    ASSERT_EQ(stat(path("a").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, 0660u);
    EXPECT_TRUE(std::filesystem::is_socket(path("b"))) << "the old set is still there";
    first->clear();
    EXPECT_FALSE(std::filesystem::exists(path("b")));
    EXPECT_TRUE(std::filesystem::is_socket(path("a")));
}

TEST_F(ListenersTest, AFailedSetLeavesNothingBehind)
{
    Listeners listeners({});
    Config config;
    config.services = {service("one", {own("a")}), service("two", {own("no/b")})};
    ASSERT_FALSE(listeners.open(config, {}));
    EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(ListenersTest, WhatAnEarlierProcessStoredIsTakenUpAgain)
{
    Config config;
    config.services = {service("one", {own("a")})};
    std::string stored_as;
    UniqueFd stored;
    {
        Listeners before({});
        auto set = before.open(config, {});
        ASSERT_TRUE(set);
        stored_as = (*set)["one"].at(0).stored_as;
        stored.reset(fcntl((*set)["one"].at(0).listener->fds().at(0).get(), F_DUPFD_CLOEXEC, 3));
        (*set)["one"].at(0).listener->keep_path();
    }
    struct stat before_stat, after_stat;
    ASSERT_EQ(fstat(stored.get(), &before_stat), 0);
    std::vector<PassedFd> fds;
    fds.push_back({std::move(stored), stored_as});
    Listeners after(std::move(fds));
    auto set = after.open(config, {});
    ASSERT_TRUE(set) << joined(set.error());
    ASSERT_EQ(fstat((*set)["one"].at(0).listener->fds().at(0).get(), &after_stat), 0);
    EXPECT_EQ(before_stat.st_ino, after_stat.st_ino);
}

} // namespace
} // namespace sluice::proxyd
