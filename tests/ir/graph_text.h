// graph_text.h — graphs in tests are written as text: parsed, run, and compared structurally.
#pragma once

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {

inline std::unique_ptr<Graph> parse_graph(std::string_view text) {
  register_ops();
  std::unique_ptr<Graph> graph = parse(text);
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  return graph;
}

// A tensor of this dtype from plain numbers: tensor(DType::F16, {2}, {1, 0.5}).
inline Tensor tensor(DType dtype, const Extents& extents, const std::vector<double>& values) {
  if (is_float(dtype))
    return narrow<double>(dtype, extents, values);
  return narrow<int64_t>(dtype, extents, std::vector<int64_t>(values.begin(), values.end()));
}
inline Tensor f32(const Extents& extents, const std::vector<double>& values) {
  return tensor(DType::F32, extents, values);
}
inline Tensor i64(const Extents& extents, const std::vector<double>& values) {
  return tensor(DType::I64, extents, values);
}

// The outputs of a graph given as text.
inline Data run_text(std::string_view text, const Data& inputs) {
  return evaluate(*parse_graph(text), inputs);
}

// The type inference gives the only output of a graph.
inline std::string output_type(std::string_view text) {
  return to_string(parse_graph(text)->outputs().front().type());
}

// Bit-equal, with the values shown when not. NaN equals NaN.
inline void expect_tensor(const Datum& actual, const Tensor& expected) {
  ASSERT_TRUE(std::holds_alternative<Tensor>(actual));
  const Tensor& got = actual.tensor();
  ASSERT_EQ(to_string(type_of(got)), to_string(type_of(expected)));
  if (expected.dtype() == DType::String) {
    EXPECT_EQ(got.strings(), expected.strings());
    return;
  }
  const std::vector<double> a = widen<double>(got), b = widen<double>(expected);
  for (size_t i = 0; i < b.size(); ++i)
    EXPECT_TRUE((std::isnan(a[i]) && std::isnan(b[i])) ||
                (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])))
        << "element " << i << " is " << a[i] << ", expected " << b[i];
}

// Within `tolerance`, absolute.
inline void expect_near(const Datum& actual, const Tensor& expected, double tolerance) {
  ASSERT_TRUE(std::holds_alternative<Tensor>(actual));
  ASSERT_EQ(to_string(type_of(actual)), to_string(type_of(expected)));
  const std::vector<double> a = widen<double>(actual.tensor()), b = widen<double>(expected);
  for (size_t i = 0; i < b.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

}  // namespace tenon
