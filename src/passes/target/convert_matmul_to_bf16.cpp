#include "passes/target/convert_matmul_to_bf16.h"

#include <map>

#include "ops/pairs.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/vnni_pack.h"
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

// Packs pairs of consecutive terms: rows of bf16x2.
Value pairs_of_columns(Value w, bool transposed) {
  const int64_t summed = *w.dim(transposed ? 1 : 0).constant(),
                columns = *w.dim(transposed ? 0 : 1).constant();
  const Value split = transposed ? transpose(reshape(w, {columns, summed / 2, 2}), {1, 0, 2})
                                 : transpose(reshape(w, {summed / 2, 2, columns}), {0, 2, 1});
  return reshape(words(cast(split, DType::BF16)), {summed / 2, columns});
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
      x = words(cast(node->in("a"), DType::BF16));
    const Value product = matmul_pairs(x, pairs_of_columns(node->in("b"), node->attr("transpose_b")));
    journal.applied("convert-matmul-to-bf16", {node}, Numerics::ChangesPrecision);
    graph.replace(node, {product});
  }
}

}  // namespace tenon
