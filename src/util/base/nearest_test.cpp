// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/base/nearest.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Nearest, CountsEdits)
{
    EXPECT_EQ(edit_distance("", ""), 0u);
    EXPECT_EQ(edit_distance("abc", ""), 3u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
    EXPECT_EQ(edit_distance("idle", "idle"), 0u);
    EXPECT_EQ(edit_distance("idel", "idle"), 1u);
    EXPECT_EQ(edit_distance("worker", "workers"), 1u);
    EXPECT_EQ(edit_distance("max-connections", "connections"), 4u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, FindsWhatWasMeant)
{
    const std::vector<std::string> known{"listen", "connect", "balance", "name", "splice"};
    EXPECT_EQ(nearest("conect", known), "connect");
    EXPECT_EQ(nearest("listne", known), "listen");
    EXPECT_EQ(nearest("ballance", known), "balance");
    EXPECT_EQ(nearest("nmae", known), "name");
    EXPECT_EQ(nearest("bal", known), "balance");
    EXPECT_EQ(nearest("", known), "");
    EXPECT_EQ(nearest("tls", known), "");
    EXPECT_EQ(nearest("certificate", known), "");
    EXPECT_EQ(nearest(std::string(1'000'000, 'x'), known), "");
}

} // namespace
} // namespace sluice
