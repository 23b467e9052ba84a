#include "tensor/join.h"

#include <gtest/gtest.h>

#include "tensor/wide.h"

namespace tenon {
namespace {

Tensor ints(Extents extents, std::vector<int64_t> values) {
  return narrow<int64_t>(DType::I32, extents, values);
}

TEST(Join, PutsTensorsSideBySide) {
  const std::vector<Tensor> pieces{ints({2, 1}, {1, 2}), ints({2, 0}, {}), ints({2, 2}, {3, 4, 5, 6})};
  const Tensor joined = join(pieces, 1);
  EXPECT_EQ(joined.extents(), (Extents{2, 3}));
  EXPECT_EQ(joined_extents(pieces, 1), joined.extents());
  EXPECT_EQ(widen<int64_t>(joined), (std::vector<int64_t>{1, 3, 4, 2, 5, 6}));
}

TEST(Join, AlongTheFirstDimension) {
  EXPECT_EQ(widen<int64_t>(join({ints({1, 2}, {1, 2}), ints({2, 2}, {3, 4, 5, 6})}, 0)),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace tenon
