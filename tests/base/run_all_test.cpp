#include "base/run_all.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace tenon {
namespace {

TEST(RunAll, DoesEachOnce) {
  for (const int threads : {1, 3}) {
    std::vector<std::atomic<int>> done(100);
    run_all(done.size(), threads, [&](size_t i) { ++done[i]; });
    for (const std::atomic<int>& each : done)
      EXPECT_EQ(each, 1);
  }
  run_all(0, 2, [](size_t) { FAIL(); });
}

TEST(RunAll, ThrowsTheFirstErrorWhenAllAreDone) {
  std::atomic<int> done = 0;
  try {
    run_all(20, 3, [&](size_t i) {
      ++done;
      if (i % 7 == 3)
        throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace tenon
