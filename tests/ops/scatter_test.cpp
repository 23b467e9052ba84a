#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

const double kNaN = std::nan("");

Data apply(std::string_view op, const Tensor& x, const Tensor& indices, const Tensor& updates,
           std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}, %i: {}, %u: {}) {{ %y = {}(%x, %i, %u{}) return %y }}",
                              type_of(x), type_of(indices), type_of(updates), op, attributes),
                  {x, indices, updates});
}

TEST(Scatter, ReplacesElementsAlongAnAxis) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_tensor(apply("scatter_elements", x, i64({1, 2}, {1, -2}), f32({1, 2}, {10, 20}))[0],
                f32({2, 3}, {1, 20, 3, 10, 5, 6}));
  expect_tensor(apply("scatter_elements", x, i64({2, 1}, {-1, 0}), f32({2, 1}, {10, 20}), ", axis=1")[0],
                f32({2, 3}, {1, 2, 10, 20, 5, 6}));
  expect_tensor(apply("scatter_elements", x, i64({0, 3}, {}), f32({0, 3}, {}))[0], x);
}

TEST(Scatter, ReplacesWhatTuplesPointAt) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_tensor(apply("scatter_nd", x, i64({2, 2}, {0, 1, -1, -1}), f32({2}, {10, 20}))[0],
                f32({2, 3}, {1, 10, 3, 4, 5, 20}));
  expect_tensor(apply("scatter_nd", x, i64({1, 1}, {-1}), f32({1, 3}, {7, 8, 9}))[0],
                f32({2, 3}, {1, 2, 3, 7, 8, 9}));
  expect_tensor(
      apply("scatter_nd", Tensor::strings({"a", "b"}, {2}), i64({1, 1}, {0}), Tensor::strings({"z"}, {1}))[0],
      Tensor::strings({"z", "b"}, {2}));
}

TEST(Scatter, ReducesUpdatesThatMeet) {
  const auto reduce = [](const Tensor& x, const Tensor& updates, std::string_view reduction) {
    return apply("scatter_elements", x, i64({3}, {1, 1, 1}), updates,
                 fmt::format(", reduction=\"{}\"", reduction))[0];
  };
  const Tensor x = f32({2}, {1, 5}), updates = f32({3}, {3, 7, 2});
  expect_tensor(reduce(x, updates, "none"), f32({2}, {1, 2}));
  expect_tensor(reduce(x, updates, "add"), f32({2}, {1, 17}));
  expect_tensor(reduce(x, updates, "mul"), f32({2}, {1, 210}));
  expect_tensor(reduce(x, updates, "max"), f32({2}, {1, 7}));
  expect_tensor(reduce(x, updates, "min"), f32({2}, {1, 2}));
  expect_tensor(reduce(x, f32({3}, {kNaN, 9, 0}), "max"), f32({2}, {1, kNaN}));
  expect_tensor(reduce(x, f32({3}, {kNaN, 9, 0}), "min"), f32({2}, {1, kNaN}));
  expect_tensor(reduce(tensor(DType::I8, {2}, {0, 127}), tensor(DType::I8, {3}, {1, 0, 0}), "add"),
                tensor(DType::I8, {2}, {0, -128}));
}

TEST(Scatter, RefusesWhatDoesNotFit) {
  const auto refuse = [](std::string_view signature, std::string_view call, const std::string& message) {
    expect_error<UserError>(
        [&] { parse_graph(fmt::format("graph({})\n{{ %y = {} return %y }}", signature, call)); },
        "line 2, column 8: " + message);
  };
  refuse("%x: f32[2,3], %i: i64[2,2], %u: f32[2,3]", "scatter_elements(%x, %i, %u)",
         "scatter_elements: updates must be of shape [2,2]\n"
         "  x  %x: f32[2,3]\n  indices  %i: i64[2,2]\n  updates  %u: f32[2,3]");
  refuse("%x: f32[2,3], %i: i64[n,1], %u: f32[n]", "scatter_nd(%x, %i, %u)",
         "scatter_nd: updates must be of shape [n,3]\n"
         "  x  %x: f32[2,3]\n  indices  %i: i64[n,1]\n  updates  %u: f32[n]");
  refuse("%x: f32[2], %i: i64[1], %u: f32[1]", "scatter_elements(%x, %i, %u, reduction=\"mean\")",
         "scatter_elements: reduction is \"mean\", but must be none, add, mul, max or min");
  refuse("%x: str[2], %i: i64[1], %u: str[1]", "scatter_elements(%x, %i, %u, reduction=\"add\")",
         "scatter_elements: str elements cannot be reduced\n"
         "  x  %x: str[2]\n  indices  %i: i64[1]\n  updates  %u: str[1]");
  refuse("%x: f32[2,4,8], %u: f32[2,5,8]", "write_along(%x, %u)",
         "write_along: updates must have the shape of x, and no more along axis 1\n"
         "  x  %x: f32[2,4,8]\n  updates  %u: f32[2,5,8]");
  refuse("%x: f32[2,4,8], %u: f32[1,4,8]", "write_along(%x, %u, axis=0)",
         "write_along: axis 0 is the batch, which cannot be written along\n"
         "  x  %x: f32[2,4,8]\n  updates  %u: f32[1,4,8]");
}

TEST(Scatter, ChecksAgainWhenItRuns) {
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[*], %i: i64[*], %u: f32[*]) { %y = scatter_nd(%x, %i, %u) return %y }",
                 {f32({2}, {1, 2}), i64({1, 1}, {0}), f32({2}, {1, 2})});
      },
      "node %y: scatter_nd: updates of shape [2] do not fit where indices of shape [1,1] point in x of shape "
      "[2]");
  expect_error<UserError>(
      [] {
        apply("scatter_nd", f32({2}, {1, 2}), i64({1, 1}, {2}), f32({1}, {1}));
      },
      "node %y: scatter_nd: index 2 is out of range for dimension 0 of size 2");
}

TEST(Scatter, KeepsTheShapeOfX) {
  EXPECT_EQ(
      output_type("graph(%x: f32[n,4], %i: i64[*], %u: f32[*]) { %y = scatter_nd(%x, %i, %u) return %y }"),
      "f32[n,4]");
  EXPECT_EQ(output_type("graph(%x: f32[2,n,4], %u: f32[*]) { %y = write_along(%x, %u) return %y }"),
            "f32[2,n,4]");
}

TEST(Scatter, FollowsShapes) {
  const auto follow = [](std::string_view scatter) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,m], %z: f32[k]) {{
        %s = shape(%x)
        %u = shape(%z)
        %i = constant(value=i64[1] {{1}})
        %t = constant(value=i64[1,1] {{0}})
        %p = {}
        %zeros = constant(value=f32[] {{0}})
        %y = broadcast(%zeros, %p)
        return %y
      }})",
                                   scatter));
  };
  EXPECT_EQ(follow("scatter_elements(%s, %i, %u)"), "f32[n,k]");
  EXPECT_EQ(follow("scatter_nd(%s, %t, %u)"), "f32[k,m]");
  EXPECT_EQ(follow("scatter_nd(%s, %t, %u, reduction=\"add\")"), "f32[d0,d1]");
}

Data write_cache(const Tensor& x, const Tensor& updates, const Tensor& starts, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}, %u: {}, %s: {}) {{ %y = write_along(%x, %u, %s{}) return %y }}",
                              type_of(x), type_of(updates), type_of(starts), attributes),
                  {x, updates, starts});
}

TEST(TensorScatter, WritesEachOfTheBatchFromItsOwnStart) {
  const Tensor x(DType::F32, {2, 3, 1});
  expect_tensor(write_cache(x, f32({2, 2, 1}, {1, 2, 3, 4}), i64({2}, {1, 0}), "")[0],
                f32({2, 3, 1}, {0, 1, 2, 3, 4, 0}));
  // Along the last axis, with two rows to an element of the batch.
  expect_tensor(
      write_cache(Tensor(DType::F32, {1, 2, 2}), f32({1, 2, 1}, {1, 2}), i64({1}, {1}), ", axis=-1")[0],
      f32({1, 2, 2}, {0, 1, 0, 2}));
  expect_tensor(write_cache(x, f32({2, 2, 1}, {1, 2, 3, 4}), i64({2}, {2, -1}), ", circular=true")[0],
                f32({2, 3, 1}, {2, 0, 1, 4, 0, 3}));
  expect_error<UserError>(
      [&] {
        write_cache(x, f32({2, 2, 1}, {1, 2, 3, 4}), i64({2}, {0, 2}), "");
      },
      "node %y: write_along: 2 elements from 2 on do not fit into 3");
}

// Whether or not there is something to write.
TEST(TensorScatter, RefusesStartsThatDoNotFit) {
  const auto write_nothing = [](const Extents& x, const Extents& updates, const Tensor& starts) {
    run_text("graph(%x: f32[b,n,m], %u: f32[b,k,m], %s: i64[c]) { %y = write_along(%x, %u, %s) return %y }",
             {Tensor(DType::F32, x), Tensor(DType::F32, updates), starts});
  };
  write_nothing({2, 3, 0}, {2, 2, 0}, i64({2}, {1, 0}));
  write_nothing({2, 3, 1}, {2, 0, 1}, i64({2}, {7, -1}));
  expect_error<UserError>(
      [&] {
        write_nothing({2, 3, 0}, {2, 2, 0}, i64({2}, {0, 2}));
      },
      "node %y: write_along: 2 elements from 2 on do not fit into 3");
  expect_error<UserError>(
      [&] {
        write_nothing({0, 3, 1}, {0, 2, 1}, i64({2}, {0, 0}));
      },
      "node %y: write_along: starts of shape [2] for a batch of 0");
}

TEST(TensorScatter, StartsAtTheFrontWhenNotTold) {
  expect_tensor(run_text("graph(%x: f32[1,2,1], %u: f32[1,1,1]) { %y = write_along(%x, %u) return %y }",
                         {f32({1, 2, 1}, {1, 2}), f32({1, 1, 1}, {9})})[0],
                f32({1, 2, 1}, {9, 2}));
}

}  // namespace
}  // namespace tenon
