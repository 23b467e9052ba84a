#include "compiler/fold_scales.h"

#include <algorithm>
#include <cmath>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/quantise.h"
#include "ops/select.h"

namespace tenon {
namespace {

constexpr int kMostSteps = 6;  // from a constant to what is made of it

// Whether a value follows from constants alone, in few steps.
bool is_known(Value value, int steps = kMostSteps) {
  if (value.is_input() || steps == 0)
    return false;
  const std::vector<Value> operands = value.node()->operands();
  return literal_of(value) != nullptr ||
         (!operands.empty() && value.node()->regions().empty() && !value.node()->op().traits.random &&
          std::all_of(operands.begin(), operands.end(),
                      [&](Value operand) { return is_known(operand, steps - 1); }));
}

// x * factor + added.
struct Line {
  Value x, factor;
  std::optional<Value> added = std::nullopt;

  void add(Value more) { added = added ? *added + more : more; }
  Value result() const { return added ? x * factor + *added : x * factor; }
};

bool is_used_once(Value value, std::string_view op) {
  return !value.is_input() && value.use_count() == 1 && value.node()->is(op);
}

// Whether it adds up products of bytes, of which floats lose little; of other integers they may lose all.
bool is_sum_of_bytes(Value value) {
  return !value.is_input() && (value.node()->is("matmul_words") || value.node()->is("conv_words") ||
                               value.node()->is("conv_bytes"));
}

// x times a factor, by way of the constants that x is made with.
Line line_of(Value x, Value factor) {
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(1, 0)}) {
    if (is_used_once(x, "mul") && is_known(x.node()->operand(i)))
      return line_of(x.node()->operand(j), x.node()->operand(i) * factor);
    if (is_used_once(x, "add") && is_known(x.node()->operand(i))) {
      Line line = line_of(x.node()->operand(j), factor);
      line.add(x.node()->operand(i) * factor);
      return line;
    }
  }
  // What the zero points come to is subtracted from a sum of products.
  const Value before = is_used_once(x, "cast") ? x.node()->in("x") : x;
  if (!is_used_once(before, "sub") || !is_sum_of_bytes(before.node()->operand(0)) ||
      !is_known(before.node()->operand(1)))
    return {x, factor};
  Line line{cast(before.node()->operand(0), DType::F32), factor};
  line.add(cast(before.node()->operand(1), DType::F32) * (factor * -1.0));
  return line;
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
    if (!node->is("quantize") || node->in("x").is_input() || node->in("x").dtype() != DType::F32 ||
        info(node->result().dtype()).bits != 8 || !is_integer(node->result().dtype()))
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    if (const std::optional<Value> factor = reciprocal_of(node->in("scale")))
      graph.replace(
          node, {quantize(line_of(node->in("x"), *factor).result(), constant(graph, Tensor::scalar<float>(1)),
                          node->in("zero_point"), node->result().dtype())});
  }
}

}  // namespace tenon
