#include "passes/target/fold_requantize.h"

#include <algorithm>
#include <cmath>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/quantise.h"
#include "ops/select.h"
#include "passes/target/quantized_operands.h"
#include "tensor/wide.h"

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

// Whether it adds up products of bytes, and so few that floats hold the sums exactly.
bool is_small_sum_of_bytes(Value value) {
  if (value.is_input())
    return false;
  const Node& node = *value.node();
  if (node.is("widening_matmul"))
    return node.result().dtype() == DType::I32 && node.in("b").dim(0).is_constant() &&
           sums_fit_floats(*node.in("b").dim(0).constant());
  if (!node.is("widening_conv"))
    return false;
  const std::optional<Extents> w = node.in("w").shape().extents();
  return w && w->front() > 0 && sums_fit_floats(element_count(*w) / w->front());
}

// Whether a factor is made of constants of which products of a few neither overflow nor vanish.
bool is_moderate(Value value, int steps = kMostSteps) {
  if (const Literal* literal = literal_of(value))
    return !is_float(literal->dtype()) ||
           std::ranges::all_of(widen<double>(literal->tensor()),
                               [](double each) { return std::fabs(each) >= 1e-8 && std::fabs(each) <= 1e8; });
  if (value.is_input() || steps == 0 ||
      (value.node()->op().name != "mul" && value.node()->op().name != "reshape"))
    return false;
  const std::vector<Value> operands = value.node()->operands();
  return std::all_of(operands.begin(), operands.end(),
                     [&](Value operand) { return is_moderate(operand, steps - 1); });
}

// Whether x is a sum with a constant, but for factors.
bool adds_constant(Value x) {
  if (x.is_input() || (!x.node()->is("add") && !x.node()->is("mul")))
    return false;
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(1, 0)})
    if (is_known(x.node()->operand(i)) && (x.node()->is("add") || adds_constant(x.node()->operand(j))))
      return true;
  return false;
}

// x times a factor, by way of the constants that x is made with. Several sequential additions are
// there to round x.
Line line_of(Value x, Value factor) {
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(1, 0)}) {
    if (is_used_once(x, "mul") && is_moderate(x.node()->operand(i)))
      return line_of(x.node()->operand(j), x.node()->operand(i) * factor);
    if (is_used_once(x, "add") && is_known(x.node()->operand(i)) && !adds_constant(x.node()->operand(j))) {
      Line line = line_of(x.node()->operand(j), factor);
      line.add(x.node()->operand(i) * factor);
      return line;
    }
  }
  // What the zero points come to is subtracted from a sum of products.
  const Value before = is_used_once(x, "cast") ? x.node()->in("x") : x;
  if (!is_used_once(before, "sub") || !is_small_sum_of_bytes(before.node()->operand(0)) ||
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

void fold_requantize(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("quantize") || node->in("x").is_input() || node->in("x").dtype() != DType::F32 ||
        info(node->result().dtype()).bits != 8 || !is_integer(node->result().dtype()))
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    const std::optional<Value> factor = reciprocal_of(node->in("scale"));
    if (!factor)
      continue;
    if (!journal.is_open())
      return;
    const Value quantized =
        quantize(line_of(node->in("x"), *factor).result(), constant(graph, Tensor::scalar<float>(1)),
                 node->in("zero_point"), node->result().dtype());
    journal.applied("fold-requantize", {node}, Numerics::Reassociates);
    graph.replace(node, {quantized});
  }
}

}  // namespace tenon
