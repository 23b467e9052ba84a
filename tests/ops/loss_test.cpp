#include "ops/loss.h"

#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

// Three samples of two classes; the last target is no class.
Data loss(ClassLoss options, bool weighted, const std::vector<double>& targets = {1, 0, -1}) {
  register_ops();
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("n"), 2}), "x");
  const Value target = graph.add_input(Type::tensor(DType::I32, {Dim::symbol("n")}), "target");
  const Value weight = graph.add_input(Type::tensor(DType::F32, {2}), "weight");
  if (weighted)
    options.weight = weight;
  graph.set_outputs({negative_log_likelihood(x, target, options)});
  EXPECT_EQ(lint(graph), std::vector<std::string>());
  return evaluate(graph, {f32({3, 2}, {-1, -2, -4, -8, -16, std::nan("")}), tensor(DType::I32, {3}, targets),
                          f32({2}, {3, 5})});
}

TEST(NegativeLogLikelihood, IgnoresATargetThatIsNoClass) {
  using Reduction = ClassLoss::Reduction;
  expect_tensor(loss({.ignored = -1, .reduction = Reduction::None}, false)[0], f32({3}, {2, 4, 0}));
  expect_tensor(loss({.ignored = -1, .reduction = Reduction::None}, true)[0], f32({3}, {10, 12, 0}));
  expect_tensor(loss({.ignored = -1, .reduction = Reduction::Sum}, true)[0], f32({}, {22}));
}

TEST(NegativeLogLikelihood, MeansAreWeighted) {
  expect_tensor(loss({.ignored = -1}, false)[0], f32({}, {3}));
  expect_tensor(loss({.ignored = -1}, true)[0], f32({}, {2.75}));
  expect_tensor(loss({}, false, {1, 0, 0})[0], f32({}, {22 / 3.0}));
  expect_tensor(loss({}, true, {0, 0, 0})[0], f32({}, {7}));
  expect_tensor(loss({.ignored = 7}, false, {7, 7, 7})[0], f32({}, {std::nan("")}));
}

}  // namespace
}  // namespace tenon
