#include "tensor/rounding.h"

#include <gtest/gtest.h>

#include "tensor/wide.h"

namespace tenon {
namespace {

TEST(RoundingStep, IsTheDistanceFromOneToTheNextNumber) {
  for (const DTypeInfo& dtype : all_dtypes()) {
    const double step = rounding_step(dtype.dtype);
    if (dtype.kind != DTypeKind::Float) {
      EXPECT_EQ(step, 0) << dtype.name;
      continue;
    }
    const std::vector<double> wanted = {1, 1 + step};
    EXPECT_EQ(widen<double>(narrow<double>(dtype.dtype, {2}, wanted)), wanted) << dtype.name;
    if (dtype.dtype == DType::F8E8M0)  // rounds up
      continue;
    const double between =
        widen<double>(narrow<double>(dtype.dtype, {1}, std::vector<double>{1 + step / 4}))[0];
    EXPECT_EQ(between, 1) << dtype.name;
  }
}

}  // namespace
}  // namespace tenon
