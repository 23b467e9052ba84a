#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "frontends/onnx/write/constants.h"
#include "frontends/onnx/write/parts.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/registry.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kRows = 1500, kColumns = 2003;  // more than a part, in bytes

class PartsTest : public testing::Test {
 protected:
  PartsTest() { register_ops(); }

  // The elements in a file, from this byte on.
  Value weight(const Extents& extents, uint64_t offset) {
    Tensor tensor(DType::F32, extents);
    for (int64_t i = 0; i < tensor.count(); ++i)
      tensor.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>((7919 * i) % 1009) / 64;
    const auto* bytes = reinterpret_cast<const char*>(tensor.bytes().data());
    const std::string name = std::to_string(files_++);
    folder_.write(name, std::string(offset, 'x') + std::string(bytes, tensor.bytes().size()));
    return constant(graph_, Literal::file_slice(DType::F32, extents, MappedFile::open(folder_ / name), offset,
                                                tensor.bytes().size()));
  }

  // The parts are what is computed at once; returns how many there are.
  static int64_t count_parts(Value value) {
    const Tensor expected = compute(value);
    std::vector<std::byte> bytes;
    int64_t parts = 0;
    compute_in_parts(value, [&](const Tensor& part) {
      bytes.insert(bytes.end(), part.bytes().begin(), part.bytes().end());
      ++parts;
    });
    EXPECT_TRUE(std::ranges::equal(bytes, expected.bytes()));
    return parts;
  }

  static int64_t count_parts_alone(Value value) {
    int64_t parts = 0;
    compute_in_parts(value, [&](const Tensor&) { ++parts; });
    return parts;
  }

  TemporaryFolder folder_;
  int files_ = 0;
  Graph graph_;
};

TEST_F(PartsTest, AreWhatIsComputedAtOnce) {
  for (const uint64_t offset : {0, 3}) {  // the second is aligned for no element
    const Value w = weight({kRows, kColumns}, offset), row = weight({kColumns}, offset),
                column = weight({kRows, 1}, offset);
    EXPECT_EQ(count_parts(w), 2);
    EXPECT_EQ(count_parts(w * row), 2);
    EXPECT_EQ(count_parts(w * column), 2);
    EXPECT_EQ(count_parts(transpose(w, {1, 0})), 2);
    EXPECT_EQ(count_parts(transpose(w * row, {1, 0}) * transpose(column, {1, 0})), 2);
  }
}

TEST_F(PartsTest, TakeWholeWhatIsNotComputedRowByRow) {
  const Value w = weight({kRows, kColumns}, 0);
  EXPECT_EQ(count_parts(reshape(w, {kColumns, kRows})), 2);
  EXPECT_EQ(count_parts(concat({w, w}, 0) * concat({w, w}, 0)), 3);
}

// The result is small, but what it is computed of is not.
TEST_F(PartsTest, AreRowsOfProducts) {
  const Value w = weight({kRows, kColumns}, 0), row = weight({kColumns}, 0), column = weight({kRows}, 0);
  EXPECT_EQ(count_parts(matmul(w, row)), 2);
  EXPECT_EQ(count_parts(matmul(w, column, {.a = true})), 2);
  EXPECT_EQ(count_parts(matmul(column, w)), 2);
}

TEST_F(PartsTest, KnowWhatIsReadTwice) {
  const Value column = weight({kColumns, 1}, 0);
  EXPECT_EQ(count_parts(matmul(column, column, {.a = false, .b = true})), 2);
  Value w = weight({kRows, kColumns}, 0);
  for (int i = 0; i < 30; ++i)  // each reads the one before twice
    w = w * w;
  EXPECT_EQ(count_parts_alone(w), 2);
}

TEST_F(PartsTest, AreAllWhereThereIsLittle) {
  EXPECT_EQ(count_parts(weight({10, 10}, 0) * weight({10}, 0)), 1);
  EXPECT_EQ(count_parts(weight({}, 0)), 1);
  EXPECT_EQ(count_parts(weight({0, 3}, 0)), 1);
}

TEST_F(PartsTest, KnowOtherFormsOfConstants) {
  const Value splat = constant(graph_, Literal::splat(Tensor::scalar(2.5F), {kRows, kColumns}));
  EXPECT_EQ(count_parts(splat * weight({kRows, kColumns}, 0)), 2);
  const Value iota = constant(graph_, Literal::iota(DType::I64, 3, 2, 1 << 21));
  EXPECT_EQ(count_parts(iota * iota), 2);
}

}  // namespace
}  // namespace tenon::onnx
