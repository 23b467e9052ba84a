// trace.cpp — a graph written in plain C++, printed, walked, and run by the reference evaluator.
#include "ops/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/print.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/registry.h"
#include "ops/unary.h"

using namespace tenon;

void run(const Graph& graph, const Tensor& x) {
  const Tensor y = evaluate(graph, {x}).front().tensor();
  fmt::print("{} {}\n", describe(y.dtype(), y.extents()), y.data<float>());
}

int main() {
  register_ops();  // once, before the first graph

  // The function runs once, on values without numbers, and what it does becomes the graph.
  const Tensor weight = Tensor::of<float>({1, 0, 2, 0, 1, -1}).reshaped({2, 3});
  const std::unique_ptr<Graph> graph = trace({f32({Dim::symbol("n"), 2})}, [&](Value x) {
    const Value w = parameter(x.graph(), "w", weight);
    return relu(matmul(x, w) - 1.0);
  });
  fmt::print("{}", print(*graph));
  run(*graph, Tensor::of<float>({1, 2, 3, 4}).reshaped({2, 2}));

  // A node knows its op, its operands by name, its results with their types, and who uses them.
  for (const Node* node : graph->nodes())
    fmt::print("{} gives {}\n", node->op().name, node->result(0).type());

  // What does not fit is an error that says what was got and what was wanted.
  try {
    run(*graph, Tensor::of<float>({1, 2, 3}));
  } catch (const UserError& error) {
    fmt::print("{}\n", error.what());
  }
}
