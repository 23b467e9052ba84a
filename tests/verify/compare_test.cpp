#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/wide.h"

namespace tenon {
namespace {

template <class Part>
Tensor complex(DType dtype, const std::vector<Part>& parts) {
  const auto values = std::make_shared<std::vector<Part>>(parts);
  return Tensor(dtype, {static_cast<int64_t>(parts.size() / 2)}, values, std::as_bytes(std::span(*values)));
}

Tensor floats(const std::vector<float>& values) { return Tensor::of<float>(values); }

// What first_mismatch says, which must be what compare says, too, without tolerance.
std::string mismatch(const Tensor& actual, const Tensor& expected) {
  const Comparison comparison = compare(actual, expected, 0);
  const std::string detail = first_mismatch(actual, expected, 0, 0);
  EXPECT_EQ(comparison.agree, detail.empty());
  EXPECT_TRUE(comparison.detail.starts_with(detail)) << comparison.detail;
  return detail;
}

TEST(Compare, EqualTensorsAgree) {
  for (const DTypeInfo& dtype : all_dtypes())
    for (const Extents& extents : {Extents{}, Extents{0}, Extents{2, 3}})
      EXPECT_EQ(mismatch(Tensor(dtype.dtype, extents), Tensor(dtype.dtype, extents)), "") << dtype.name;
}

TEST(Compare, TypesMustBeEqual) {
  EXPECT_EQ(mismatch(floats({1, 2}), floats({1})), "got f32[2], expected f32[1]");
  EXPECT_EQ(mismatch(floats({1}), floats({1}).reshaped({})), "got f32[1], expected f32[]");
  EXPECT_EQ(mismatch(Tensor::of<int64_t>({1}), Tensor::of<int32_t>({1})), "got i64[1], expected i32[1]");
}

TEST(Compare, NamesTheFirstElementThatDiffers) {
  EXPECT_EQ(mismatch(floats({1, 2.5}), floats({1, 2})), "element 1 of f32[2] is 2.5, expected 2");
  EXPECT_EQ(mismatch(Tensor::of<int64_t>({1, 2, -3, 4}), Tensor::of<int64_t>({1, 2, 3, 5})),
            "element 2 of i64[4] is -3, expected 3");
  EXPECT_EQ(mismatch(filled(DType::I4, {2}, -1), filled(DType::I4, {2}, 7)),
            "element 0 of i4[2] is -1, expected 7");
  EXPECT_EQ(mismatch(filled(DType::BF16, {2}, 1), filled(DType::BF16, {2}, -2)),
            "element 0 of bf16[2] is 1, expected -2");
  EXPECT_EQ(mismatch(filled(DType::Bool, {1}, 1), filled(DType::Bool, {1}, 0)),
            "element 0 of bool[1] is 1, expected 0");
  EXPECT_EQ(mismatch(Tensor::strings({"a", "b"}, {2}), Tensor::strings({"a", "c"}, {2})),
            "element 1 of str[2] is b, expected c");
}

TEST(Compare, ComplexNumbersThatDifferAreNamedAsWell) {
  EXPECT_EQ(mismatch(complex<float>(DType::C64, {1, 2, 3, 4}), complex<float>(DType::C64, {1, 2, 3, -4.5})),
            "element 1 of c64[2] is 3+4i, expected 3-4.5i");
  EXPECT_EQ(mismatch(complex<double>(DType::C128, {0, 1}), complex<double>(DType::C128, {1, 1})),
            "element 0 of c128[1] is 0+1i, expected 1+1i");
  EXPECT_EQ(mismatch(complex<float>(DType::C64, {1, 2}), complex<float>(DType::C64, {1, 2})), "");
}

TEST(Compare, NaNAndInfMustStandInTheSamePlaces) {
  EXPECT_EQ(mismatch(floats({NAN, INFINITY}), floats({NAN, INFINITY})), "");
  EXPECT_EQ(mismatch(floats({0}), floats({NAN})), "element 0 of f32[1] is 0, expected nan");
  EXPECT_EQ(mismatch(floats({NAN}), floats({0})), "element 0 of f32[1] is nan, expected 0");
  EXPECT_EQ(mismatch(floats({INFINITY}), floats({-INFINITY})), "element 0 of f32[1] is inf, expected -inf");
  EXPECT_EQ(mismatch(floats({64}), floats({INFINITY})), "element 0 of f32[1] is 64, expected inf");
}

TEST(Compare, ToleranceIsOfTheGreatestElement) {
  const Comparison within = compare(floats({100, 0.5}), floats({100, 0}), 0.005);
  EXPECT_TRUE(within.agree);
  EXPECT_EQ(within.worst_error, 0.5);
  EXPECT_EQ(within.scale, 100);
  const Comparison beyond = compare(floats({100, 0.5}), floats({100, 0}), 0.004);
  EXPECT_FALSE(beyond.agree);
  EXPECT_EQ(beyond.detail, "element 1 of f32[2] is 0.5, expected 0: off by 0.5, more than 0.004 of 100");
}

TEST(Compare, AgreeingOnNearlyNothingProvesNothing) {
  EXPECT_TRUE(compare(floats({1e-4F}), floats({1e-4F}), 0).proves_nothing);
  EXPECT_FALSE(compare(floats({1e-4F, 1}), floats({1e-4F, 1}), 0).proves_nothing);
  EXPECT_FALSE(compare(floats({}), floats({}), 0).proves_nothing);
}

TEST(FirstMismatch, ToleranceIsOfEachElement) {
  const auto agree = [](float actual, float expected, double relative, double absolute) {
    return first_mismatch(floats({100, actual}), floats({100, expected}), relative, absolute).empty();
  };
  EXPECT_TRUE(agree(2.25, 2, 0.125, 0));
  EXPECT_FALSE(agree(2.25, 2, 0.124, 0));
  EXPECT_TRUE(agree(0.25, 0, 0.5, 0.25));
  EXPECT_FALSE(agree(0.25, 0, 0.5, 0.24));
}

TEST(FirstMismatch, LooksIntoSequencesAndOptionals) {
  const Datum one = floats({1}), two = floats({2});
  const Datum empty = Optional{}, full = Optional{std::make_shared<Datum>(one)};
  const auto sequence = [](std::vector<Datum> elements) { return Datum(Sequence{std::move(elements)}); };
  EXPECT_EQ(first_mismatch(sequence({one, two}), sequence({one, two}), 0, 0), "");
  EXPECT_EQ(first_mismatch(sequence({one, two}), sequence({one, one}), 0, 0),
            "in element 1 of the sequence: element 0 of f32[1] is 2, expected 1");
  EXPECT_EQ(first_mismatch(sequence({one}), sequence({}), 0, 0), "got a sequence of 1, expected one of 0");
  EXPECT_EQ(first_mismatch(full, full, 0, 0), "");
  EXPECT_EQ(first_mismatch(empty, full, 0, 0), "got an empty optional, expected a full one");
  EXPECT_EQ(first_mismatch(one, sequence({one}), 0, 0), "got f32[1], expected seq<f32[1]>");
}

TEST(FirstOtherBits, TellsZerosApartButNotNaNs) {
  EXPECT_EQ(first_other_bits(floats({1, NAN}), floats({1, -NAN})), "");
  EXPECT_EQ(first_other_bits(floats({1, -0.0F}), floats({1, 0})), "element 1 of f32[2] is -0, expected 0");
  const Datum zero = Sequence{{floats({0})}}, negative = Sequence{{floats({-0.0F})}};
  EXPECT_EQ(first_other_bits(negative, zero),
            "in element 0 of the sequence: element 0 of f32[1] is -0, expected 0");
  const int64_t large = int64_t{1} << 60;
  EXPECT_NE(first_other_bits(Tensor::of(std::vector{large}), Tensor::of(std::vector{large + 1})), "");
}

}  // namespace
}  // namespace tenon
