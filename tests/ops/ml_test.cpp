#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

const double kNaN = std::nan("");

Data map_labels(const Tensor& x, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}) {{ %y = map_labels(%x, {}) return %y }}", type_of(x), attributes), {x});
}

TEST(MapLabels, LooksUpEveryElement) {
  expect_tensor(map_labels(Tensor::strings({"b", "?", "a"}, {3}),
                           "keys=str[2] {\"a\", \"b\"}, values=i64[2] {5, 6}, otherwise=i64[] {-1}")[0],
                i64({3}, {6, -1, 5}));
  expect_tensor(map_labels(i64({1, 2}, {3, 4}),
                           "keys=i64[1] {4}, values=str[1] {\"four\"}, otherwise=str[1] {\"other\"}")[0],
                Tensor::strings({"other", "four"}, {1, 2}));
  // Of equal keys the last counts; NaN is a key like any other.
  expect_tensor(map_labels(f32({3}, {kNaN, 1, -0.0}),
                           "keys=f32[4] {1, 1, nan, 0}, values=f32[4] {1, 2, 3, 4}, otherwise=f32[] {9}")[0],
                f32({3}, {3, 2, 4}));
}

TEST(MapLabels, RefusesTablesThatDoNotFit) {
  const auto refuse = [](std::string_view attributes, const std::string& message) {
    expect_error<UserError>([&] { map_labels(i64({1}, {1}), attributes); },
                            "line 1, column 26: map_labels: " + message);
  };
  refuse("keys=f32[1] {1}, values=i64[1] {1}, otherwise=i64[] {0}", "x is of i64, but the keys are of f32");
  refuse("keys=i64[1] {1}, values=i64[2] {1, 2}, otherwise=i64[] {0}", "there are 1 keys for 2 values");
  refuse("keys=i64[1] {1}, values=i64[1] {1}, otherwise=f32[] {0}",
         "otherwise is f32[], but one element of i64 was wanted");
}

// One tree: x0 ≤ 1 ? leaf 0 : (x1 in {5, 7} ? leaf 1 : leaf 2), and one that is only leaf 3. Leaves 0 and 3
// are for target 0, leaf 1 for both, leaf 2 for target 1.
constexpr std::string_view kTrees =
    "roots=[0, -4], features=[0, 1], modes=[0, 6], splits=[1.0, 0.0], members=[5.0, 7.0, nan], on_true=[-1, "
    "-2], "
    "on_false=[1, -3], leaf_starts=[0, 1, 3, 4, 5], leaf_targets=[0, 0, 1, 1, 0], "
    "leaf_weights=[1.0, 2.0, 3.0, 4.0, 10.0], targets=2, dtype=f32";

Data decide(const Tensor& x, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}) {{ %y = tree_ensemble(%x, {}) return %y }}", type_of(x), attributes), {x});
}

TEST(TreeEnsemble, LeadsEveryRowToALeaf) {
  const Tensor x = f32({4, 2}, {1, 5, 2, 7, 2, 6, kNaN, 5});
  const auto decide_by = [&](std::string_view more) {
    return decide(x, fmt::format("{}{}", kTrees, more))[0];
  };
  expect_tensor(decide_by(""), f32({4, 2}, {11, 0, 12, 3, 10, 4, 12, 3}));
  expect_tensor(decide_by(", aggregate=\"average\""), f32({4, 2}, {5.5, 0, 6, 1.5, 5, 2, 6, 1.5}));
  expect_tensor(decide_by(", aggregate=\"min\""), f32({4, 2}, {1, 0, 2, 3, 10, 4, 2, 3}));
  expect_tensor(decide_by(", aggregate=\"max\""), f32({4, 2}, {10, 0, 10, 3, 10, 4, 10, 3}));
  expect_tensor(decide_by(", missing_is_true=[1, 0]"), f32({4, 2}, {11, 0, 12, 3, 10, 4, 11, 0}));
}

TEST(TreeEnsemble, ComparesInEveryMode) {
  const std::vector<std::vector<double>> expected = {{1, 1, 0}, {1, 0, 0}, {0, 1, 1},
                                                     {0, 0, 1}, {0, 1, 0}, {1, 0, 1}};
  for (size_t mode = 0; mode < expected.size(); ++mode)
    expect_tensor(
        decide(i64({3, 1}, {1, 2, 3}),
               fmt::format("roots=[0], features=[0], modes=[{}], splits=[2.0], on_true=[-1], on_false=[-2], "
                           "leaf_starts=[0, 1, 1], leaf_targets=[0], leaf_weights=[1.0], targets=1, "
                           "dtype=f64",
                           mode))[0],
        tensor(DType::F64, {3, 1}, expected[mode]));
}

TEST(TreeEnsemble, RefusesTreesThatMakeNoSense) {
  struct Case {
    std::string_view from, to;
    std::string message;
  };
  for (const auto& [from, to, message] : std::vector<Case>{
           {"modes=[0, 6]", "modes=[0]", "the lists that describe nodes differ in length"},
           {"modes=[0, 6]", "modes=[7, 6]", "modes must be from 0 to 6"},
           {"modes=[0, 6]", "modes=[6, 6]", "2 nodes test for membership, but there are 1 sets"},
           {"on_true=[-1", "on_true=[2", "there is no node 2"},
           {"roots=[0", "roots=[-5", "there is no leaf 4"},
           {"leaf_starts=[0, 1", "leaf_starts=[0, 4",
            "leaf_starts do not divide the targets and weights of leaves"},
           {"targets=2", "targets=1", "a leaf is for a target that is not among the 1"},
           {"features=[0", "features=[2", "feature 2 is tested, but x has 2 features"},
           {"dtype=f32", "dtype=f32, aggregate=\"mean\"",
            "aggregate is \"mean\", but must be sum, average, min or max"}}) {
    std::string trees(kTrees);
    trees.replace(trees.find(from), from.size(), to);
    expect_error<UserError>(
        [&] {
          decide(f32({1, 2}, {0, 0}), trees);
        },
        "line 1, column 28: tree_ensemble: " + message);
  }
}

TEST(TreeEnsemble, RefusesCircles) {
  expect_error<UserError>(
      [] {
        decide(
            f32({1, 1}, {0}),
            "roots=[0], features=[0, 0], modes=[0, 0], splits=[1.0, 1.0], on_true=[1, 0], on_false=[1, 0], "
            "leaf_starts=[0], leaf_targets=[], leaf_weights=[], targets=1, dtype=f32");
      },
      "node %y: tree_ensemble: the tree of node 0 has a circle");
}

TEST(TreeEnsemble, ChecksAgainWhenItRuns) {
  expect_error<UserError>(
      [] {
        run_text(fmt::format("graph(%x: f32[*]) {{ %y = tree_ensemble(%x, {}) return %y }}", kTrees),
                 {f32({1, 1}, {0})});
      },
      "node %y: tree_ensemble: feature 1 is tested, but x has 1 features");
}

}  // namespace
}  // namespace tenon
