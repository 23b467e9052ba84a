#include "tune/adopt.h"

#include <algorithm>

#include "base/error.h"

namespace tenon {
namespace {

constexpr double kLeastSpeedUp = 1.03;

}  // namespace

Timing timing_of(const Times& times) {
  CHECK(!times.empty(), "nothing was measured");
  Times sorted = times;
  std::ranges::sort(sorted);
  return {.fastest = sorted.front(), .median = sorted[sorted.size() / 2]};
}

Timing timing_of(const std::vector<const Times*>& steps) {
  Timing sum;
  for (const Times* step : steps) {
    const Timing each = timing_of(*step);
    sum.fastest += each.fastest;
    sum.median += each.median;
  }
  return sum;
}

bool is_adopted(const Timing& before, const Timing& after) {
  return before.fastest >= kLeastSpeedUp * after.fastest && before.median >= after.median;
}

}  // namespace tenon
