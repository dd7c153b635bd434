// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/async/waiters.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "util/async/task_set.hpp"

namespace sluice {
namespace {

Task<void> wait_in(WaitList *list, char name, std::string *order, int times)
{
    for (int i = 0; i < times; ++i) {
        co_await list->wait();
        *order += name;
    }
}

TEST(WaitList, WakesInOrderAndOnlyThoseThatWaitedBefore)
{
    WaitList list;
    TaskSet tasks;
    std::string order;
    tasks.spawn(wait_in(&list, 'a', &order, 2));
    tasks.spawn(wait_in(&list, 'b', &order, 1));
    list.wake_all();
    EXPECT_EQ(order, "ab");
    EXPECT_TRUE(list.wake_one());
    EXPECT_EQ(order, "aba");
    EXPECT_FALSE(list.wake_one());
}

TEST(WaitList, WhoGivesUpIsGone)
{
    WaitList list;
    std::string order;
    TaskSet stays;
    {
        TaskSet goes;
        goes.spawn(wait_in(&list, 'a', &order, 1));
        stays.spawn(wait_in(&list, 'b', &order, 1));
        goes.spawn(wait_in(&list, 'c', &order, 1));
    }
    list.wake_all();
    EXPECT_EQ(order, "b");
    EXPECT_TRUE(list.empty());
}

Task<void> end_others(WaitList *list, std::unique_ptr<TaskSet> *others, std::string *order)
{
    co_await list->wait();
    *order += 'x';
    others->reset();
}

TEST(WaitList, AWokenOneMayEndThoseThatAreStillToBeWoken)
{
    WaitList list;
    std::string order;
    auto others = std::make_unique<TaskSet>();
    TaskSet tasks;
    tasks.spawn(end_others(&list, &others, &order));
    others->spawn(wait_in(&list, 'a', &order, 1));
    tasks.spawn(wait_in(&list, 'b', &order, 1));
    list.wake_all();
    EXPECT_EQ(order, "xb");
}

Task<void> await_shot(OneShot<int> *shot, int *value)
{
    *value = co_await *shot;
}

TEST(OneShot, BeforeAndAfter)
{
    TaskSet tasks;
    int value = 0;
    OneShot<int> early, late;
    early.set(1);
    tasks.spawn(await_shot(&early, &value));
    EXPECT_EQ(value, 1);
    tasks.spawn(await_shot(&late, &value));
    EXPECT_EQ(value, 1);
    EXPECT_FALSE(late.is_set());
    late.set(2);
    EXPECT_EQ(value, 2);
}

} // namespace
} // namespace sluice
