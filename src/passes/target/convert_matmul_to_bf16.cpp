#include "passes/target/convert_matmul_to_bf16.h"

#include <map>

#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/widening_matmul.h"
#include "passes/target/constant_pieces.h"

namespace tenon {
namespace {

bool is_product_in_f32(const Node& node) {
  if (!node.is("matmul") || node.attr("transpose_a"))
    return false;
  const Value x = node.in("a"), w = node.in("b");
  const int64_t summed = node.attr("transpose_b") ? 1 : 0;
  return x.dtype() == DType::F32 && w.dtype() == DType::F32 && x.rank() > 0 && w.rank() == 2 &&
         is_constant(w) && w.dim(summed) == x.dim(-1) && x.dim(-1).constant().value_or(1) % 2 == 0;
}

}  // namespace

void convert_matmul_to_bf16(Graph& graph, Journal& journal) {
  std::map<Value, Value> rounded;  // factors that several products have
  for (Node* node : graph.nodes()) {
    if (!is_product_in_f32(*node))
      continue;
    if (!journal.is_open())
      return;
    const InsertBefore here(node);
    const WithSources sources(*node);
    Value& x = rounded[node->in("a")];
    if (!x)
      x = cast(node->in("a"), DType::BF16);
    const Value w = cast(node->in("b"), DType::BF16);
    const Value product =
        widening_matmul(x, node->attr("transpose_b") ? transpose(w, {1, 0}) : w, DType::F32);
    journal.applied("convert-matmul-to-bf16", {node}, Numerics::ChangesPrecision);
    graph.replace(node, {product});
  }
}

}  // namespace tenon
