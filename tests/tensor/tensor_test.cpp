#include "tensor/tensor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/expect_error.h"

namespace tenon {
namespace {

constexpr int64_t huge = int64_t{1} << 40;

TEST(ElementCount, MultipliesExtents) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({huge, huge, 0}), 0);  // empty, however large the rest
  EXPECT_EQ(element_count({INT64_MAX}), INT64_MAX);
}

TEST(ElementCount, RefusesNegativeAndUncountable) {
  expect_error<UserError>([] { element_count({2, -1}); }, "a tensor of shape [2,-1] has a negative extent");
  expect_error<UserError>([] { element_count({0, -1}); }, "a tensor of shape [0,-1] has a negative extent");
  expect_error<UserError>(
      [] {
        element_count({huge, huge});
      },
      "a tensor of shape [1099511627776,1099511627776] has more elements than can be counted");
}

TEST(RowMajorStrides, CountElements) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Extents{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Extents{});
  EXPECT_EQ(row_major_strides({0, huge, huge}), (Extents{0, 0, 0}));  // the first would overflow
}

TEST(Tensor, StartsAsZeros) {
  const Tensor t(DType::I32, {2, 3});
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.extent(1), 3);
  EXPECT_EQ(t.count(), 6);
  for (const int32_t element : t.data<int32_t>())
    EXPECT_EQ(element, 0);
  EXPECT_EQ(Tensor(DType::String, {2}).strings(), (std::vector<std::string>{"", ""}));
}

TEST(Tensor, AnEmptyOneHasAnAddress) {
  const Tensor t(DType::F64, {0, 5});
  EXPECT_TRUE(t.data<double>().empty());
  EXPECT_NE(t.data<double>().data(), nullptr);
  EXPECT_TRUE(Tensor().bytes().empty());
}

int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGE_SIZE);
}

TEST(Tensor, ABigOneCostsNothingUntilItIsTouched) {
  constexpr int64_t size = 256 << 20;
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  const Tensor t(DType::U8, {size});
  const Tensor zeros = repeat(Tensor::scalar(0.0f), {size / 4});
  EXPECT_EQ(t.bytes().back(), std::byte{0});
  EXPECT_EQ(zeros.bytes().back(), std::byte{0});
  EXPECT_LT(resident_bytes() - before, size / 2);
}

TEST(Tensor, RefusesMoreThanTheMachineHas) {
  expect_error<UserError>(
      [] {
        Tensor(DType::F32, {huge, 1024});
      },
      fmt::format(
          "f32[1099511627776,1024] needs 4 bytes for each of 1125899906842624 elements, but this machine "
          "has {} bytes of memory",
          memory_limit()));
  // The size in bytes would overflow.
  for (const auto& [dtype, text] : {std::pair(DType::C128, "c128[9223372036854775807] needs 16"),
                                    std::pair(DType::String, "str[9223372036854775807] needs 32")})
    expect_error<UserError>(
        [dtype = dtype] { Tensor(dtype, {INT64_MAX}); },
        fmt::format("{} bytes for each of 9223372036854775807 elements, but this machine has {} bytes of "
                    "memory",
                    text, memory_limit()));
}

TEST(Tensor, HoldsTheValuesGiven) {
  const Tensor t = Tensor::of<float>({1, 2, 3});
  EXPECT_EQ(t.dtype(), DType::F32);
  EXPECT_EQ(t.extents(), Extents{3});
  EXPECT_EQ(t.data<float>()[2], 3);
  const Tensor scalar = Tensor::scalar<int64_t>(-7);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.data<int64_t>()[0], -7);
  EXPECT_EQ(Tensor::scalar(true).dtype(), DType::Bool);
  EXPECT_EQ(Tensor::scalar(true).data<uint8_t>()[0], 1);
  const Tensor words = Tensor::strings({"a", "b"}, {2, 1});
  EXPECT_EQ(words.strings()[1], "b");
  EXPECT_THROW(Tensor::strings({"a"}, {2}), InternalError);
}

TEST(Tensor, CopiesShareAndWritingNeedsSoleOwnership) {
  Tensor t = Tensor::of<int32_t>({1, 2});
  {
    const Tensor copy = t;
    EXPECT_EQ(copy.bytes().data(), t.bytes().data());
    EXPECT_THROW(t.mutable_bytes(), InternalError);
  }
  t.mutable_data<int32_t>()[0] = 5;
  EXPECT_EQ(t.data<int32_t>()[0], 5);
  Tensor words = Tensor::strings({"a"}, {});
  const Tensor copy = words;
  EXPECT_THROW(words.mutable_strings(), InternalError);
}

TEST(Tensor, ReshapedSharesTheElements) {
  const Tensor t = Tensor::of<int32_t>({1, 2, 3, 4});
  const Tensor square = t.reshaped({2, 2});
  EXPECT_EQ(square.extents(), (Extents{2, 2}));
  EXPECT_EQ(square.bytes().data(), t.bytes().data());
  EXPECT_THROW(t.reshaped({3}), InternalError);
}

TEST(Tensor, AViewKeepsItsOwnerAndIsNotWritten) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  Tensor view(DType::F32, {3}, owner, std::as_bytes(std::span(*owner)));
  EXPECT_EQ(view.data<float>().data(), owner->data());
  owner.reset();
  EXPECT_EQ(view.data<float>()[1], 2);
  EXPECT_THROW(view.mutable_bytes(), InternalError);
}

TEST(Tensor, AMisalignedViewIsCopied) {
  alignas(8) static const std::byte bytes[12] = {std::byte{9}, std::byte{1}};
  const Tensor t(DType::I32, {2}, nullptr, std::span(bytes).subspan(1, 8));
  EXPECT_NE(t.bytes().data(), bytes + 1);
  EXPECT_EQ(t.data<int32_t>()[0], 1);
  // A complex number is two floats: four bytes of alignment are enough.
  EXPECT_EQ(Tensor(DType::C64, {1}, nullptr, std::span(bytes).subspan(4, 8)).bytes().data(), bytes + 4);
}

TEST(Tensor, AViewMustHaveTheRightSize) {
  static const std::byte bytes[8] = {};
  EXPECT_THROW(Tensor(DType::F32, {3}, nullptr, bytes), InternalError);
  EXPECT_THROW(Tensor(DType::String, {0}, nullptr, {}), InternalError);
}

TEST(Tensor, ElementsAreReadAsTheirSize) {
  const Tensor t(DType::F16, {2});
  EXPECT_NO_THROW(t.data<uint16_t>());
  EXPECT_THROW(t.data<float>(), InternalError);
  EXPECT_THROW(t.strings(), InternalError);
  EXPECT_THROW(Tensor(DType::String, {1}).bytes(), InternalError);
}

TEST(Identical, ComparesBits) {
  EXPECT_TRUE(identical(Tensor::scalar(std::nan("")), Tensor::scalar(std::nan(""))));
  EXPECT_FALSE(identical(Tensor::scalar(0.0), Tensor::scalar(-0.0)));
  EXPECT_FALSE(identical(Tensor(DType::I32, {2}), Tensor(DType::U32, {2})));
  EXPECT_FALSE(identical(Tensor(DType::I32, {2}), Tensor(DType::I32, {2, 1})));
  EXPECT_TRUE(identical(Tensor(DType::I32, {0}), Tensor(DType::I32, {0})));
  EXPECT_TRUE(identical(Tensor::strings({"a"}, {1}), Tensor::strings({"a"}, {1})));
  EXPECT_FALSE(identical(Tensor::strings({"a"}, {1}), Tensor::strings({"b"}, {1})));
}

TEST(Repeat, FillsEveryElement) {
  const Tensor t = repeat(Tensor::scalar<int32_t>(0x01020304), {5});
  EXPECT_TRUE(identical(t, Tensor::of<int32_t>(std::vector<int32_t>(5, 0x01020304))));
  EXPECT_EQ(repeat(Tensor::strings({"x"}, {}), {2}).strings(), (std::vector<std::string>{"x", "x"}));
  EXPECT_EQ(repeat(Tensor::scalar(1.5), {0, 3}).count(), 0);
  EXPECT_THROW(repeat(Tensor(DType::F32, {2}), {2}), InternalError);
}

TEST(Repeat, NegativeZeroIsNotZero) {
  EXPECT_TRUE(std::signbit(repeat(Tensor::scalar(-0.0), {3}).data<double>()[2]));
}

TEST(Describe, PrintsDTypeAndExtents) {
  EXPECT_EQ(describe(DType::F32, {2, 3}), "f32[2,3]");
  EXPECT_EQ(describe(DType::Bool, {}), "bool[]");
}

}  // namespace
}  // namespace tenon
