#include "runtime/memory_pool.h"

#include <gtest/gtest.h>

namespace tenon {

using runtime::MemoryPool;

namespace {

constexpr int64_t kBytes = MemoryPool::kLeastBytes;

Tensor take(MemoryPool& pool, int64_t bytes) { return pool.take(DType::U8, {bytes}); }

TEST(MemoryPool, UsesMemoryAgainThatNobodyHolds) {
  MemoryPool pool;
  const std::byte* memory = take(pool, 2 * kBytes).bytes().data();
  const Tensor again = pool.take(DType::F32, {kBytes / 4});
  EXPECT_EQ(again.bytes().data(), memory);
  EXPECT_EQ(again.extents(), Extents{kBytes / 4});
  EXPECT_NE(take(pool, 2 * kBytes).bytes().data(), memory);
  EXPECT_EQ(pool.bytes(), 4 * kBytes);
}

TEST(MemoryPool, LeavesMemoryToThoseWhoHoldAView) {
  MemoryPool pool;
  Tensor view;
  {
    const Tensor taken = take(pool, kBytes);
    view = taken.reshaped({2, kBytes / 2});
  }
  EXPECT_NE(take(pool, kBytes).bytes().data(), view.bytes().data());
}

TEST(MemoryPool, TakesTheSmallestThatFits) {
  MemoryPool pool;
  const std::byte* small = nullptr;
  {
    const Tensor large = take(pool, 4 * kBytes), middle = take(pool, 2 * kBytes), least = take(pool, kBytes);
    small = middle.bytes().data();
  }
  EXPECT_EQ(take(pool, kBytes + 1).bytes().data(), small);
}

TEST(MemoryPool, GivesBackWhatARunDidNotTake) {
  MemoryPool pool;
  take(pool, kBytes);
  pool.give_back_unused();
  EXPECT_EQ(pool.bytes(), kBytes);
  take(pool, 3 * kBytes);
  pool.give_back_unused();
  EXPECT_EQ(pool.bytes(), 3 * kBytes);
  pool.give_back_unused();
  EXPECT_EQ(pool.bytes(), 0);
}

TEST(MemoryPool, KeepsNothingSmall) {
  MemoryPool pool;
  take(pool, kBytes - 1);
  take(pool, 0);
  EXPECT_EQ(pool.bytes(), 0);
}

}  // namespace
}  // namespace tenon
