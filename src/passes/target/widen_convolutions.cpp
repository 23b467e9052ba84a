#include "passes/target/widen_convolutions.h"

#include <algorithm>
#include <map>
#include <ranges>

#include "ops/data.h"
#include "ops/select.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// Constants are converted here, for they take more memory so than what is computed ahead may; `known` are
// those that were.
Value widened(Value value, std::map<Value, Value>& known) {
  const Literal* literal = literal_of(value);
  if (literal == nullptr)
    return cast(value, DType::F32);
  if (const auto it = known.find(value); it != known.end())
    return it->second;
  const InsertBefore first(value.graph().first());
  const Value wide = constant(
      value.graph(), narrow<double>(DType::F32, literal->extents(), widen<double>(literal->tensor())));
  return known.emplace(value, wide).first->second;
}

bool makes_one_pixel(const Node& node) {
  const Value y = node.result();
  return y.shape().ranked() && std::ranges::all_of(y.shape().dims() | std::views::drop(2),
                                                   [](const Dim& dim) { return dim == Dim(1); });
}

}  // namespace

void widen_convolutions(Graph& graph, Journal& journal) {
  std::map<Value, Value> known;
  for (Node* node : graph.nodes()) {
    if (!node->is("conv") && !node->is("conv_transpose"))
      continue;
    const Value x = node->in("x"), w = node->in("w");
    if ((x.dtype() != DType::F16 && x.dtype() != DType::BF16) || makes_one_pixel(*node))
      continue;
    if (!journal.is_open())
      return;
    const InsertBefore here(node);
    const WithSources sources(*node);
    const Value sums =
        graph
            .create(node->op().name, {{"x", widened(x, known)}, {"w", widened(w, known)}}, node->attributes())
            ->result();
    const Value rounded = cast(sums, x.dtype());
    journal.applied("widen-convolution", {node}, Numerics::Reassociates);
    graph.replace(node, {rounded});
  }
}

}  // namespace tenon
