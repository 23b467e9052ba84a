#include "tune/adopt.h"

#include <algorithm>

#include "base/error.h"

namespace tenon {
namespace {

constexpr double kLeastSpeedUp = 1.03;

}  // namespace

double fastest(const Times& times) {
  CHECK(!times.empty(), "nothing was measured");
  return *std::ranges::min_element(times);
}

double median(const Times& times) {
  CHECK(!times.empty(), "nothing was measured");
  Times sorted = times;
  const auto middle = sorted.begin() + static_cast<int64_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

bool is_adopted(const Times& before, const Times& after) {
  return fastest(before) >= kLeastSpeedUp * fastest(after) && median(before) >= median(after);
}

}  // namespace tenon
