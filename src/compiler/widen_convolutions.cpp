#include "compiler/widen_convolutions.h"

#include "ops/data.h"
#include "ops/select.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// Constants are converted here, for they take more memory so than what is computed ahead may.
Value widened(Value value) {
  const Literal* literal = literal_of(value);
  if (literal == nullptr)
    return cast(value, DType::F32);
  return constant(value.graph(),
                  narrow<double>(DType::F32, literal->extents(), widen<double>(literal->tensor())));
}

}  // namespace

void widen_convolutions(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (!node->is("conv") && !node->is("conv_transpose"))
      continue;
    const Value x = node->in("x"), w = node->in("w");
    if (x.dtype() != DType::F16 && x.dtype() != DType::BF16)
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    const Value sums =
        graph.create(node->op().name, {{"x", widened(x)}, {"w", widened(w)}}, node->attributes())->result();
    graph.replace(node, {cast(sums, x.dtype())});
  }
}

}  // namespace tenon
