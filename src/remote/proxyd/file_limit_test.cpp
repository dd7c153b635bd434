// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "remote/proxyd/file_limit.hpp"

namespace sluice::proxyd {
namespace {

Config config_for(unsigned connections, unsigned workers = 1)
{
    Config config;
    config.workers = workers;
    config.services.resize(2);
    config.services[0].limits.connections = connections / 2;
    config.services[1].limits.connections = connections - connections / 2;
    return config;
}

TEST(FileLimit, ConnectionsTakeTwoEachAndPipesTheRest)
{
    auto budget = plan_files(config_for(5000), 2, 20'000);
    ASSERT_TRUE(budget);
    EXPECT_EQ(budget->connections, 10'000u);
    EXPECT_GT(budget->pipes, 100u);
    EXPECT_LE(budget->connections + budget->own + 2 * budget->pipes, 20'000u);
}

TEST(FileLimit, WhatCannotFitIsRefusedWithTheNumbers)
{
    auto budget = plan_files(config_for(600), 1, 1024);
    ASSERT_FALSE(budget);
    EXPECT_EQ(budget.error().code, EMFILE);
    EXPECT_NE(budget.error().message.find("600 connections"), std::string::npos) << budget.error().message;
    EXPECT_NE(budget.error().message.find("1024"), std::string::npos) << budget.error().message;
    EXPECT_TRUE(plan_files(config_for(256), 1, 1024));
}

TEST(FileLimit, TheLimitOfTheMessageFits)
{
    unsigned fits = 0;
    for (unsigned n = 1; n < 600 && plan_files(config_for(n, 4), 3, 1024); ++n)
        fits = n;
    EXPECT_GT(fits, 400u);
    auto refused = plan_files(config_for(fits + 1, 4), 3, 1024);
    ASSERT_FALSE(refused);
    std::string advice = "at most " + std::to_string(fits) + " connections";
    EXPECT_NE(refused.error().message.find(advice), std::string::npos) << refused.error().message;
}

TEST(FileLimit, TheSoftLimitIsRaisedToTheHardOne)
{
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit low{64, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(raise_file_limit(), before.rlim_max);
    rlimit after{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(after.rlim_cur, before.rlim_max);
}

} // namespace
} // namespace sluice::proxyd
