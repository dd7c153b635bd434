// SPDX-License-Identifier: LGPL-2.1-or-later
#include <climits>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "util/event/id_table.hpp"
#include "util/event/timer_heap.hpp"

namespace sluice::event {
namespace {

TEST(IdTable, FindsWhatWasInsertedAndNothingElse)
{
    IdTable<int> table;
    int a = 1, b = 2;
    EXPECT_EQ(table.find(1), nullptr);
    EXPECT_EQ(table.erase(1), nullptr);
    table.insert(1, &a);
    table.insert(INT_MAX, &b);
    EXPECT_EQ(table.find(1), &a);
    EXPECT_EQ(table.find(INT_MAX), &b);
    EXPECT_EQ(table.find(0), nullptr);
    EXPECT_EQ(table.find(-1), nullptr);
    EXPECT_EQ(table.erase(1), &a);
    EXPECT_EQ(table.erase(1), nullptr);
    EXPECT_EQ(table.size(), 1u);
}

TEST(IdTable, AgreesWithAMapUnderRandomUse)
{
    // ids from a small range, so that probe sequences collide and gaps close across the end
    std::mt19937 random(20200917);
    IdTable<int> table;
    std::map<int, int *> model;
    std::vector<int> values(400);
    for (int step = 0; step < 200'000; ++step) {
        int id = static_cast<int>(random() % 400) * 64 + 1;
        if (model.count(id)) {
            EXPECT_EQ(table.erase(id), model[id]);
            model.erase(id);
        } else {
            int *value = &values[random() % values.size()];
            table.insert(id, value);
            model[id] = value;
        }
        int probe = static_cast<int>(random() % 400) * 64 + 1;
        ASSERT_EQ(table.find(probe), model.count(probe) ? model[probe] : nullptr);
    }
    EXPECT_EQ(table.size(), model.size());
    size_t visited = 0;
    table.for_each([&](int &) { ++visited; });
    EXPECT_EQ(visited, model.size());
}

struct Item {
    int64_t deadline = 0;
    uint32_t heap_index = not_in_heap;
};

TEST(TimerHeap, AgreesWithAMultimapUnderRandomUse)
{
    std::mt19937 random(20150806);
    std::vector<Item> items(300);
    TimerHeap<Item> heap;
    auto least = [&] {
        int64_t best = INT64_MAX;
        for (const Item &item : items)
            best = item.heap_index != not_in_heap && item.deadline < best ? item.deadline : best;
        return best;
    };
    for (int step = 0; step < 20'000; ++step) {
        Item &item = items[random() % items.size()];
        if (random() % 3 == 0) {
            heap.remove(&item);
            EXPECT_EQ(item.heap_index, not_in_heap);
        } else {
            item.deadline = static_cast<int64_t>(random() % 1000);
            heap.put(&item);
        }
        ASSERT_EQ(heap.empty(), least() == INT64_MAX);
        if (!heap.empty()) {
            ASSERT_EQ(heap.top_deadline(), least());
            ASSERT_EQ(heap.top()->deadline, least());
        }
    }
    for (int64_t last = -1; !heap.empty();) {
        EXPECT_GE(heap.top_deadline(), last);
        last = heap.top_deadline();
        heap.remove(heap.top());
    }
}

} // namespace
} // namespace sluice::event
