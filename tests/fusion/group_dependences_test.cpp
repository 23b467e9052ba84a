// Groups that wait for each other while they grow, compared with a search through all of them.
#include "fusion/group_dependences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon {

using fusion::GroupDependences;

namespace {

using Order = std::vector<size_t>;

TEST(GroupDependences, SeesACycleComing) {
  GroupDependences groups;
  groups.add_group({});
  groups.add_group({0});
  groups.add_group({1});
  EXPECT_TRUE(groups.would_close_cycle(0, {2}));
  EXPECT_TRUE(groups.would_close_cycle(1, {0, 2}));
  EXPECT_FALSE(groups.would_close_cycle(1, {0, 1}));
  EXPECT_FALSE(groups.would_close_cycle(2, {0, 1, 2}));
}

TEST(GroupDependences, MovesAGroupBehindWhatItComesToWaitFor) {
  GroupDependences groups;
  groups.add_group({});
  groups.add_group({0});
  groups.add_group({});
  groups.wait(0, {2});
  EXPECT_TRUE(groups.would_close_cycle(2, {1}));
  EXPECT_TRUE(groups.would_close_cycle(2, {0}));
  EXPECT_FALSE(groups.would_close_cycle(1, {2}));
  EXPECT_EQ(groups.in_order(), (Order{2, 0, 1}));
}

TEST(GroupDependences, KeepsTheOrderOfGroupsThatNeedNone) {
  GroupDependences groups;
  for (int i = 0; i < 4; ++i)
    groups.add_group({});
  groups.wait(1, {3});
  EXPECT_EQ(groups.in_order(), (Order{0, 3, 1, 2}));
}

TEST(GroupDependences, AgreesWithASearch) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    GroupDependences groups;
    std::vector<std::set<size_t>> waits_for;
    const auto reaches = [&](auto& self, size_t from, size_t to) -> bool {
      return from == to ||
             std::ranges::any_of(waits_for[from], [&](size_t next) { return self(self, next, to); });
    };
    const auto some = [&] {
      std::set<size_t> makers;
      for (size_t i = 0; i < 2 && !waits_for.empty(); ++i)
        makers.insert(random() % waits_for.size());
      return makers;
    };
    for (int step = 0; step < 40; ++step) {
      std::set<size_t> makers = some();
      if (waits_for.empty() || random() % 2 == 0) {
        groups.add_group(makers);
        waits_for.push_back(makers);
        continue;
      }
      const size_t group = random() % waits_for.size();
      makers.erase(group);
      const bool cycle =
          std::ranges::any_of(makers, [&](size_t maker) { return reaches(reaches, maker, group); });
      ASSERT_EQ(groups.would_close_cycle(group, makers), cycle);
      if (cycle)
        continue;
      groups.wait(group, makers);
      waits_for[group].insert(makers.begin(), makers.end());
    }
    const Order order = groups.in_order();
    ASSERT_EQ(order.size(), waits_for.size());
    std::set<size_t> done;
    for (size_t group : order) {
      for (size_t maker : waits_for[group])
        EXPECT_TRUE(done.contains(maker));
      done.insert(group);
    }
  }
}

// Of a chain whose links all read what its first made, as layers do with a mask.
int64_t visits_in_chain(size_t length) {
  GroupDependences groups;
  groups.add_group({});
  for (size_t i = 1; i < length; ++i) {
    const std::set<size_t> makers = {0, i - 1};
    EXPECT_FALSE(groups.would_close_cycle(i - 1, {i - 1}));
    EXPECT_EQ(groups.would_close_cycle(0, makers), i > 1);
    groups.add_group(makers);
  }
  groups.in_order();
  return groups.visits();
}

TEST(GroupDependences, LooksAtFewGroupsOfALongChain) {
  const int64_t once = visits_in_chain(1000);
  EXPECT_LE(once, 10 * 1000);
  EXPECT_LE(visits_in_chain(4000), 5 * once);
}

}  // namespace
}  // namespace tenon
