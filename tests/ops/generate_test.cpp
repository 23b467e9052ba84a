#include "ops/generate.h"

#include <limits>

#include "ir/graph_text.h"
#include "ops/data.h"
#include "ops/reshape.h"

namespace tenon {
namespace {

Data range_of(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  return run_text(
      fmt::format("graph(%s: {0}, %l: {0}, %d: {0}) {{ %y = range(%s, %l, %d) return %y }}", type_of(start)),
      {start, limit, delta});
}

TEST(Range, StopsBeforeTheLimit) {
  const auto ints = [](double start, double limit, double delta) {
    return range_of(i64({}, {start}), i64({}, {limit}), i64({}, {delta}))[0];
  };
  expect_tensor(ints(1, 6, 2), i64({3}, {1, 3, 5}));
  expect_tensor(ints(1, 5, 2), i64({2}, {1, 3}));
  expect_tensor(ints(10, 4, -3), i64({2}, {10, 7}));
  expect_tensor(ints(3, 3, 1), i64({0}, {}));
  expect_tensor(ints(3, 0, 1), i64({0}, {}));
  expect_tensor(range_of(f32({}, {0}), f32({}, {1}), f32({}, {0.25}))[0], f32({4}, {0, 0.25, 0.5, 0.75}));
  expect_tensor(
      range_of(tensor(DType::U8, {}, {250}), tensor(DType::U8, {}, {255}), tensor(DType::U8, {}, {2}))[0],
      tensor(DType::U8, {3}, {250, 252, 254}));
}

TEST(Range, SpansAllOf64Bits) {
  const Tensor least = Tensor::scalar(std::numeric_limits<int64_t>::min());
  const Tensor most = Tensor::scalar(std::numeric_limits<int64_t>::max());
  const Data y = range_of(least, most, most);
  EXPECT_EQ(as_ints(y[0].tensor()), (std::vector<int64_t>{std::numeric_limits<int64_t>::min(), -1,
                                                          std::numeric_limits<int64_t>::max() - 1}));
  EXPECT_EQ(range_of(most, least, least)[0].tensor().count(), 2);
}

TEST(Range, RefusesWhatHasNoEnd) {
  expect_error<UserError>([] { range_of(i64({}, {0}), i64({}, {1}), i64({}, {0})); },
                          "node %y: range: delta is 0");
  expect_error<UserError>(
      [] { range_of(f32({}, {0}), f32({}, {std::numeric_limits<double>::infinity()}), f32({}, {1})); },
      "node %y: range: from 0 to inf in steps of 1 there is no end");
  expect_error<UserError>([] { range_of(f32({}, {0}), f32({}, {std::nan("")}), f32({}, {1})); },
                          "node %y: range: from 0 to nan in steps of 1 there is no end");
}

TEST(Range, InfersItsLength) {
  const auto type = [](std::string_view start, std::string_view limit, std::string_view step) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n], %past: f32[p], %any: i64[1]) {{
        %0 = constant(value=i64[1] {{0}})
        %1 = constant(value=i64[1] {{1}})
        %2 = constant(value=i64[1] {{2}})
        %n = shape(%x)
        %p = shape(%past)
        %sum = add(%n, %p)
        %y = range({}, {}, {})
        return %y
      }})",
                                   start, limit, step));
  };
  EXPECT_EQ(type("%0", "%n", "%1"), "i64[n]");
  EXPECT_EQ(type("%p", "%sum", "%1"), "i64[n]");
  EXPECT_EQ(type("%1", "%n", "%2"), "i64[floor(n/2)]");
  EXPECT_EQ(type("%2", "%n", "%1"), "i64[max(n-2,0)]");
  EXPECT_EQ(type("%0", "%any", "%1"), "i64[d0]");
  EXPECT_EQ(output_type(R"(graph() { %0 = constant(value=f32[] {0}) %1 = constant(value=f32[] {1})
      %d = constant(value=f32[] {0.25}) %y = range(%0, %1, %d) return %y })"),
            "f32[4]");
}

TEST(Range, OfKnownIntegersIsALazyConstant) {
  register_ops();
  Graph graph;
  const auto number = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  const Value y = range(number(3), number(int64_t{1} << 40), number(2));
  EXPECT_TRUE(y.node()->is("constant"));
  EXPECT_EQ(to_string(y.type()), "i64[549755813887]");
}

TEST(Range, OfKnownWholeFloatsIsARange) {
  register_ops();
  Graph graph;
  const auto number = [&](float value) { return constant(graph, Tensor::scalar(value)); };
  const Value y = range(number(0), number(3), number(1));
  EXPECT_TRUE(y.node()->is("range"));
  EXPECT_EQ(to_string(y.type()), "f32[3]");
}

TEST(Fill, OfAKnownShapeIsALazyConstant) {
  register_ops();
  Graph graph;
  const Value y = fill(int_vector(graph, {int64_t{1} << 20, int64_t{1} << 20}), f32({1}, {7}));
  EXPECT_TRUE(y.node()->is("constant"));
  EXPECT_EQ(to_string(y.type()), "f32[1048576,1048576]");
}

TEST(Fill, OfAShapeThatTheModelComputes) {
  register_ops();
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("n"), 2}), "x");
  graph.set_outputs({fill(shape_of(x), i64({1}, {7}))});
  EXPECT_EQ(to_string(graph.outputs()[0].type()), "i64[n,2]");
  expect_tensor(evaluate(graph, {f32({1, 2}, {0, 0})})[0], i64({1, 2}, {7, 7}));
}

TEST(Eye, HasOnesOnADiagonal) {
  const auto eye = [](int64_t diagonal) {
    return run_text(
        fmt::format("graph(%s: i64[2]) {{ %y = eye(%s, dtype=f16, diagonal={}) return %y }}", diagonal),
        {i64({2}, {2, 3})})[0];
  };
  expect_tensor(eye(0), tensor(DType::F16, {2, 3}, {1, 0, 0, 0, 1, 0}));
  expect_tensor(eye(2), tensor(DType::F16, {2, 3}, {0, 0, 1, 0, 0, 0}));
  expect_tensor(eye(-1), tensor(DType::F16, {2, 3}, {0, 0, 0, 1, 0, 0}));
  expect_tensor(eye(std::numeric_limits<int64_t>::min()), tensor(DType::F16, {2, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(output_type("graph(%x: f32[n,m]) { %s = shape(%x) %y = eye(%s, dtype=bool) return %y }"),
            "bool[n,m]");
}

TEST(Eye, RefusesANegativeSize) {
  expect_error<UserError>(
      [] { parse_graph("graph() { %s = constant(value=i64[2] {-3,2}) %y = eye(%s, dtype=f32) return %y }"); },
      "line 1, column 51: eye: shape[0] is -3\n  shape  %s: i64[2]");
}

TEST(Triangle, KeepsOneSideOfADiagonal) {
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, std::nan("")});
  const auto triangle = [&](std::string_view attributes) {
    return run_text(fmt::format("graph(%x: f32[1,2,3]) {{ %y = triangle(%x, {}) return %y }}", attributes),
                    {x})[0];
  };
  expect_tensor(triangle("upper=true"), f32({1, 2, 3}, {1, 2, 3, 0, 5, std::nan("")}));
  expect_tensor(triangle("upper=true, diagonal=2"), f32({1, 2, 3}, {0, 0, 3, 0, 0, 0}));
  expect_tensor(triangle("upper=false"), f32({1, 2, 3}, {1, 0, 0, 4, 5, 0}));
  expect_tensor(triangle("upper=false, diagonal=-1"), f32({1, 2, 3}, {0, 0, 0, 4, 0, 0}));
}

TEST(Triangle, TakesADiagonalThatTheModelComputes) {
  const std::string text =
      "graph(%x: f32[n,n], %k: i64[]) { %y = triangle(%x, upper=true, diagonal=%k) return %y }";
  EXPECT_EQ(output_type(text), "f32[n,n]");
  expect_tensor(run_text(text, {f32({2, 2}, {1, 2, 3, 4}), i64({}, {1})})[0], f32({2, 2}, {0, 2, 0, 0}));
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[3]) { %y = triangle(%x, upper=true) return %y }"); },
      "line 1, column 26: triangle: x must be a matrix, or a stack of them\n  x  %x: f32[3]");
}

}  // namespace
}  // namespace tenon
