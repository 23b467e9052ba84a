#include "verify/sample_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

Extents extents_for(const char* dim) { return sample_input({DType::F32, {Dim::parse(dim)}}).extents(); }

TEST(SampleInputs, FollowTheRuleOfTheirDType) {
  const Tensor x = sample_input({DType::F64, {3}});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(x.data<double>()[i], std::sin(static_cast<double>(i) * 0.37) + 0.1);
  EXPECT_EQ(as_ints(sample_input({DType::I32, {3}})), (std::vector<int64_t>{0, 919, 838}));
  EXPECT_EQ(as_ints(sample_input({DType::Bool, {2}})), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(sample_input({DType::String, {1}}).strings()[0], "");
  EXPECT_TRUE(identical(sample_input({DType::C64, {2}}), Tensor(DType::C64, {2})));
}

TEST(SampleInputs, EverySymbolIsOne) {
  EXPECT_EQ(extents_for("n"), Extents{1});
  EXPECT_EQ(extents_for("2*n"), Extents{2});
  EXPECT_EQ(extents_for("n+3*m-1"), Extents{3});
  EXPECT_EQ(extents_for("floor((n+1)/2)"), Extents{1});
  EXPECT_EQ(extents_for("?"), Extents{1});
}

TEST(SampleInputs, DimensionsThatHaveNoSizeThenAreRefused) {
  expect_error<UserError>([] { extents_for("n-3"); }, "the dimension n-3 is -2 where every symbol is 1");
  expect_error<UserError>([] { extents_for("mod(n,m-1)"); },
                          "the dimension mod(n,m-1) has no size where every symbol is 1");
}

TEST(SampleInputs, WhatNoMemoryHoldsIsRefused) {
  for (const DType dtype : {DType::F32, DType::F4E2M1, DType::I64, DType::I2, DType::Bool, DType::String})
    EXPECT_THROW(sample_input({dtype, {4611686018427387904}}), UserError) << name(dtype);
}

TEST(SampleInputs, WhatHasNoValueIsRefusedByName) {
  Graph sequence;
  sequence.add_input(Type::sequence(Type::tensor(DType::F32, {1})), "x");
  expect_error<UserError>([&] { sample_inputs(sequence); },
                          "input x of type seq<f32[1]>: no value can be made up for it");
  Graph unranked;
  unranked.add_input(Type::tensor(DType::F32, Shape::unranked()), "x");
  expect_error<UserError>([&] { sample_inputs(unranked); },
                          "input x of type f32[*]: its rank is unknown, so no value can be made up for it");
}

}  // namespace
}  // namespace tenon
