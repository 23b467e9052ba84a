#include "compiler/fold_scales.h"

#include <algorithm>
#include <cmath>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/quantise.h"

namespace tenon {
namespace {

// Whether a value follows from constants alone.
bool is_known(Value value) {
  if (value.is_input())
    return false;
  const std::vector<Value> operands = value.node()->operands();
  return literal_of(value) != nullptr ||
         (!operands.empty() && value.node()->regions().empty() && !value.node()->op().traits.random &&
          std::all_of(operands.begin(), operands.end(), is_known));
}

// x times a factor, by way of the constants that x is made with.
Value scaled(Value x, Value factor) {
  if (!x.is_input() && x.use_count() == 1 && (x.node()->is("add") || x.node()->is("mul"))) {
    const Value a = x.node()->operand(0), b = x.node()->operand(1);
    for (const auto& [other, known] : {std::pair(a, b), std::pair(b, a)})
      if (is_known(known))
        return x.node()->is("mul") ? other * (known * factor) : scaled(other, factor) + known * factor;
  }
  return x * factor;
}

// The reciprocal of a scale that is one number; nothing where it is none that can be told.
std::optional<Value> reciprocal_of(Value scale) {
  const Literal* literal = literal_of(scale);
  if (literal == nullptr || literal->dtype() != DType::F32 || literal->count() != 1)
    return std::nullopt;
  const float number = literal->tensor().data<float>().front();
  if (!std::isnormal(number) || !std::isnormal(1 / number))
    return std::nullopt;
  return constant(scale.graph(), Tensor::scalar<float>(1 / number));
}

}  // namespace

void fold_scales(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (!node->is("quantize") || node->in("x").dtype() != DType::F32 ||
        info(node->result().dtype()).bits != 8 || !is_integer(node->result().dtype()))
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    if (const std::optional<Value> factor = reciprocal_of(node->in("scale")))
      graph.replace(node, {quantize(scaled(node->in("x"), *factor), constant(graph, Tensor::scalar<float>(1)),
                                    node->in("zero_point"), node->result().dtype())});
  }
}

}  // namespace tenon
