// Which dtype an op on tensors and numbers computes in: what torch.result_type and torch.promote_types give.
#include "frontends/torch/promotion.h"
#include "frontends/torch_program.h"

namespace tenon::torch {
namespace {

using namespace write;

TEST(TorchPromotion, OfTwoTypesIsTheSmallestThatHoldsBoth) {
  struct Row {
    DType a, b, both;
  };
  constexpr Row rows[] = {
      {DType::Bool, DType::Bool, DType::Bool}, {DType::Bool, DType::U8, DType::U8},
      {DType::Bool, DType::F16, DType::F16},   {DType::U8, DType::I8, DType::I16},
      {DType::U8, DType::I16, DType::I16},     {DType::U8, DType::I64, DType::I64},
      {DType::I8, DType::I32, DType::I32},     {DType::U16, DType::I16, DType::I32},
      {DType::I64, DType::F16, DType::F16},    {DType::I64, DType::BF16, DType::BF16},
      {DType::F16, DType::BF16, DType::F32},   {DType::F16, DType::F32, DType::F32},
      {DType::F32, DType::F64, DType::F64},    {DType::I32, DType::F64, DType::F64},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(promote_types(row.a, row.b), row.both) << name(row.a) << " " << name(row.b);
    EXPECT_EQ(promote_types(row.b, row.a), row.both) << name(row.b) << " " << name(row.a);
  }
}

DType added(const Given& a, const Given& b) {
  return run_op("add.Tensor", {{"self", a}, {"other", b}}).dtype();
}
Tensor of(DType dtype, const Extents& extents) { return Tensor(dtype, extents); }

TEST(TorchPromotion, LetsNumbersYieldToTensorsOfTheirKind) {
  EXPECT_EQ(added(of(DType::I32, {2}), 1), DType::I32);
  EXPECT_EQ(added(of(DType::U8, {2}), 1), DType::U8);
  EXPECT_EQ(added(of(DType::F16, {2}), 1.5), DType::F16);
  EXPECT_EQ(added(of(DType::F16, {2}), 1), DType::F16);
  EXPECT_EQ(added(of(DType::I32, {2}), 1.5), DType::F32);
  EXPECT_EQ(added(of(DType::Bool, {2}), 1), DType::I64);
  EXPECT_EQ(added(of(DType::Bool, {2}), true), DType::Bool);
  EXPECT_EQ(added(of(DType::I32, {}), 1), DType::I32);
}

TEST(TorchPromotion, LetsScalarTensorsYieldToOthersOfTheirKind) {
  EXPECT_EQ(added(of(DType::F32, {2}), of(DType::F64, {})), DType::F32);
  EXPECT_EQ(added(of(DType::I8, {2}), of(DType::I64, {})), DType::I8);
  EXPECT_EQ(added(of(DType::I64, {2}), of(DType::F16, {})), DType::F16);
  EXPECT_EQ(added(of(DType::F32, {2}), of(DType::F64, {2})), DType::F64);
  EXPECT_EQ(added(of(DType::F32, {}), of(DType::F64, {})), DType::F64);
  EXPECT_EQ(added(of(DType::Bool, {2}), of(DType::U8, {})), DType::U8);
}

TEST(TorchPromotion, DividesIntegersAsFloats) {
  expect_tensor(run_op("div.Tensor", {{"self", i64({2}, {1, 7})}, {"other", 2}}), f32({2}, {0.5, 3.5}));
  EXPECT_EQ(run_op("div.Tensor", {{"self", of(DType::F16, {2})}, {"other", 2}}).dtype(), DType::F16);
  expect_tensor(run_op("div.Tensor_mode", {{"self", i64({4}, {7, -7, 7, -7})},
                                           {"other", i64({4}, {2, 2, -2, -2})},
                                           {"rounding_mode", "floor"}}),
                i64({4}, {3, -4, -4, 3}));
  expect_tensor(
      run_op("div.Tensor_mode", {{"self", i64({2}, {7, -7})}, {"other", 2}, {"rounding_mode", "trunc"}}),
      i64({2}, {3, -3}));
  expect_tensor(
      run_op("div.Tensor_mode", {{"self", f32({2}, {7, -7})}, {"other", 2.0}, {"rounding_mode", "floor"}}),
      f32({2}, {3, -4}));
}

TEST(TorchPromotion, KeepsTheTypeOfWhatIsChangedInPlace) {
  expect_tensor(
      run_op("masked_fill.Scalar",
             {{"self", i64({2}, {1, 2})}, {"mask", tensor(DType::Bool, {2}, {1, 0})}, {"value", 3.7}}),
      i64({2}, {3, 2}));
  EXPECT_EQ(
      run_op("mul_.Tensor", {{"self", f32({2}, {1, 2})}, {"other", tensor(DType::F64, {2}, {1, 1})}}).dtype(),
      DType::F32);
}

TEST(TorchPromotion, ComputesFunctionsOfIntegersInFloats) {
  EXPECT_EQ(run_op("exp.default", {{"self", i64({1}, {0})}}).dtype(), DType::F32);
  EXPECT_EQ(run_op("floor.default", {{"self", i64({1}, {3})}}).dtype(), DType::I64);
  EXPECT_EQ(run_op("sum.default", {{"self", tensor(DType::Bool, {3}, {1, 0, 1})}}).dtype(), DType::I64);
  EXPECT_EQ(run_op("sum.default", {{"self", tensor(DType::I32, {3}, {1, 0, 1})}}).dtype(), DType::I64);
  EXPECT_EQ(run_op("clamp.default", {{"self", i64({1}, {3})}, {"min", 0.5}}).dtype(), DType::F32);
}

TEST(TorchPromotion, ComparesTruthsAsNumbers) {
  const Tensor truths = tensor(DType::Bool, {2}, {0, 1});
  expect_tensor(run_op("lt.Tensor", {{"self", truths}, {"other", tensor(DType::Bool, {2}, {1, 1})}}),
                tensor(DType::Bool, {2}, {1, 0}));
  expect_tensor(run_op("ne.Scalar", {{"self", truths}, {"other", 1}}), tensor(DType::Bool, {2}, {1, 0}));
  expect_tensor(run_op("add.Tensor", {{"self", truths}, {"other", true}}), tensor(DType::Bool, {2}, {1, 1}));
}

}  // namespace
}  // namespace tenon::torch
