#include "verify/sample_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "ir/graph_text.h"
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

// The first input, of i64[4], of a graph with this body.
std::vector<int64_t> integers_for(const std::string& body) {
  return as_ints(
      sample_inputs(*parse_graph("graph g(%i: i64[4], %t: f32[n,2]) { " + body + " }")).front().tensor());
}

TEST(SampleInputs, IndicesAreWithinWhatTheyAreLookedUpIn) {
  const std::string table = "%x = constant(value=f32[7,5] splat 1) ";
  EXPECT_EQ(integers_for(table + "%y = gather(%x, %i) return %y"), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(integers_for(table + "%y = gather(%x, %i, axis=1) return %y"),
            (std::vector<int64_t>{0, 4, 3, 2}));
  // Through views and casts, and within the smaller of two.
  EXPECT_EQ(integers_for(table + R"(%r = unsqueeze(%i, axes=[0]) %c = cast(%r, to=i32)
    %y = gather(%x, %c) %z = gather(%x, %i, axis=1) return %y, %z)"),
            (std::vector<int64_t>{0, 4, 3, 2}));
  // A tuple counts along two dimensions.
  EXPECT_EQ(integers_for(table + R"(%s = constant(value=i64[2] {2, 2}) %r = reshape(%i, %s)
    %y = gather_nd(%x, %r) return %y)"),
            (std::vector<int64_t>{0, 4, 3, 2}));
  // Symbols are 1.
  EXPECT_EQ(integers_for("%y = gather(%t, %i) return %y"), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(SampleInputs, OtherIntegersAreAsLargeAsEver) {
  const std::vector<int64_t> usual = {0, 919, 838, 757};
  EXPECT_EQ(integers_for("%y = mul(%i, %i) return %y"), usual);
  EXPECT_EQ(
      integers_for("%x = constant(value=f32[7] splat 1) %j = mul(%i, %i) %y = gather(%x, %j) return %y"),
      usual);
  EXPECT_EQ(integers_for("%x = constant(value=f32[2000] splat 1) %y = gather(%x, %i) return %y"), usual);
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
