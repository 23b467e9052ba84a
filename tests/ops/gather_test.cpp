#include "ir/graph_text.h"

namespace tenon {
namespace {

Data apply(std::string_view op, const Tensor& x, const Tensor& indices, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}, %i: {}) {{ %y = {}(%x, %i{}) return %y }}", type_of(x),
                              type_of(indices), op, attributes),
                  {x, indices});
}

std::string type(std::string_view op, std::string_view x, std::string_view indices,
                 std::string_view attributes = "") {
  return output_type(
      fmt::format("graph(%x: {}, %i: {})\n{{ %y = {}(%x, %i{}) return %y }}", x, indices, op, attributes));
}

const Tensor grid = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Gather, TakesSlicesAlongAnAxis) {
  expect_tensor(apply("gather", grid, i64({2}, {1, -2}))[0], f32({2, 3}, {4, 5, 6, 1, 2, 3}));
  expect_tensor(apply("gather", grid, tensor(DType::I32, {1, 2}, {-1, 0}), ", axis=1")[0],
                f32({2, 1, 2}, {3, 1, 6, 4}));
  expect_tensor(apply("gather", grid, i64({}, {1}), ", axis=-1")[0], f32({2}, {2, 5}));
  expect_tensor(apply("gather", grid, i64({0}, {}))[0], f32({0, 3}, {}));
}

TEST(Gather, MovesEveryDType) {
  expect_tensor(apply("gather", Tensor::strings({"a", "b", ""}, {3}), i64({2}, {2, 1}))[0],
                Tensor::strings({"", "b"}, {2}));
  for (const DTypeInfo& dtype : all_dtypes())
    if (dtype.kind != DTypeKind::String && dtype.kind != DTypeKind::Complex)
      expect_tensor(apply("gather", tensor(dtype.dtype, {3}, {0, 1, 0}), i64({1}, {1}))[0],
                    tensor(dtype.dtype, {1}, {1}));
}

TEST(Gather, TakesElementsAtTheirOwnPlace) {
  expect_tensor(apply("gather_elements", grid, i64({1, 3}, {1, 0, -1}))[0], f32({1, 3}, {4, 2, 6}));
  expect_tensor(apply("gather_elements", grid, i64({2, 4}, {0, 0, 1, 2, -1, -2, -3, 0}), ", axis=1")[0],
                f32({2, 4}, {1, 1, 2, 3, 6, 5, 4, 4}));
  expect_tensor(apply("gather_elements", grid, i64({0, 3}, {}))[0], f32({0, 3}, {}));
}

TEST(Gather, FollowsTuples) {
  expect_tensor(apply("gather_nd", grid, i64({2, 2}, {0, -1, 1, 0}))[0], f32({2}, {3, 4}));
  expect_tensor(apply("gather_nd", grid, i64({1}, {-1}))[0], f32({3}, {4, 5, 6}));
  expect_tensor(apply("gather_nd", grid, i64({2, 1}, {2, 0}), ", batch_dims=1")[0], f32({2}, {3, 4}));
  // The tuple of no index is all of x.
  expect_tensor(apply("gather_nd", grid, i64({2, 0}, {}))[0],
                f32({2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(Gather, RefusesIndicesOutOfRange) {
  const auto refuse = [](std::string_view op, const Tensor& indices, const std::string& message,
                         std::string_view attributes = "") {
    expect_error<UserError>([&] { apply(op, grid, indices, attributes); }, "node %y: " + message);
  };
  refuse("gather", i64({1}, {2}), "gather: index 2 is out of range for dimension 0 of size 2");
  refuse("gather", i64({1}, {-4}), "gather: index -4 is out of range for dimension 1 of size 3", ", axis=1");
  refuse("gather_elements", i64({1, 1}, {2}),
         "gather_elements: index 2 is out of range for dimension 0 of size 2");
  refuse("gather_nd", i64({1, 2}, {0, 3}), "gather_nd: index 3 is out of range for dimension 1 of size 3");
  expect_error<UserError>([] { apply("gather", f32({0}, {}), i64({1}, {0})); },
                          "node %y: gather: index 0 is out of range for dimension 0 of size 0");
}

TEST(Gather, RefusesShapesThatDoNotFit) {
  const auto refuse = [](std::string_view op, std::string_view x, std::string_view indices,
                         const std::string& message, std::string_view attributes = "") {
    expect_error<UserError>([&] { type(op, x, indices, attributes); }, "line 2, column 8: " + message);
  };
  refuse("gather", "f32[]", "i64[2]", "gather: axis 0 is out of range for a tensor of rank 0");
  refuse("gather", "f32[4]", "f32[2]", "gather: indices is f32[2], but only i64 i32 will do");
  refuse("gather_elements", "f32[4,2]", "i64[2]",
         "gather_elements: x and indices must have the same rank\n"
         "  x  %x: f32[4,2]\n  indices  %i: i64[2]");
  refuse("gather_elements", "f32[n,2]", "i64[4,3]",
         "gather_elements: indices reach beyond x in dimension 1\n"
         "  x  %x: f32[n,2]\n  indices  %i: i64[4,3]");
  refuse("gather_nd", "f32[4,2]", "i64[5,3]",
         "gather_nd: tuples of 3 index x, which has 2 dimensions to index\n"
         "  x  %x: f32[4,2]\n  indices  %i: i64[5,3]");
  refuse("gather_nd", "f32[4,2]", "i64[5,1]",
         "gather_nd: batch dimension 0 differs\n"
         "  x  %x: f32[4,2]\n  indices  %i: i64[5,1]",
         ", batch_dims=1");
  refuse("gather_nd", "f32[4,2]", "i64[]",
         "gather_nd: indices must have at least one dimension, which holds the tuples\n"
         "  x  %x: f32[4,2]\n  indices  %i: i64[]");
}

// What types cannot tell is found when it runs.
TEST(Gather, ChecksShapesAgainWhenItRuns) {
  const auto refuse = [](std::string_view op, const Tensor& indices, const std::string& message) {
    expect_error<UserError>(
        [&] {
          run_text(fmt::format("graph(%x: f32[*], %i: i64[*]) {{ %y = {}(%x, %i) return %y }}", op),
                   {grid, indices});
        },
        "node %y: " + message);
  };
  refuse("gather_elements", i64({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}),
         "gather_elements: indices of shape [2,4] reach beyond x of shape [2,3]");
  refuse("gather_nd", i64({1, 3}, {0, 0, 0}),
         "gather_nd: indices of shape [1,3] with 0 batch dimensions cannot index x of shape [2,3]");
  refuse("gather_nd", i64({}, {0}),
         "gather_nd: indices of shape [] with 0 batch dimensions cannot index x of shape [2,3]");
}

TEST(Gather, InfersSymbolicShapes) {
  EXPECT_EQ(type("gather", "f32[n,4]", "i64[m,k]"), "f32[m,k,4]");
  EXPECT_EQ(type("gather", "f32[n,4]", "i64[]", ", axis=-1"), "f32[n]");
  EXPECT_EQ(type("gather", "f32[n,4]", "i64[*]"), "f32[*]");
  EXPECT_EQ(type("gather_elements", "f32[n,4]", "i64[m,2]"), "f32[m,2]");
  EXPECT_EQ(type("gather_nd", "f32[b,n,4]", "i64[b,m,1]", ", batch_dims=1"), "f32[b,m,4]");
  EXPECT_EQ(type("gather_nd", "f32[b,n,4]", "i64[b,m]"), "f32[*]");
}

TEST(Gather, FollowsShapes) {
  const auto follow = [](std::string_view gathers) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,3,m]) {{
        %s = shape(%x)
        {}
        %zeros = constant(value=f32[] {{0}})
        %y = broadcast(%zeros, %g)
        return %y
      }})",
                                   gathers));
  };
  EXPECT_EQ(follow("%i = constant(value=i64[2] {-1, 0}) %g = gather(%s, %i)"), "f32[m,n]");
  EXPECT_EQ(follow("%i = constant(value=i64[] {0}) %d = gather(%s, %i) %g = unsqueeze(%d, axes=[0])"),
            "f32[n]");
  EXPECT_EQ(follow("%i = constant(value=i64[2] {1, 2}) %g = gather_elements(%s, %i)"), "f32[3,m]");
  EXPECT_EQ(follow("%i = constant(value=i64[2,1] {2, 2}) %g = gather_nd(%s, %i)"), "f32[m,m]");
  // Out of range: running will say so, if it ever gets there.
  EXPECT_EQ(follow("%i = constant(value=i64[1] {3}) %g = gather(%s, %i)"), "f32[d0]");
}

}  // namespace
}  // namespace tenon
