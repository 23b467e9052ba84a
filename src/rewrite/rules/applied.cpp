#include "rewrite/rules/applied.h"

#include <algorithm>

#include "rewrite/match.h"

namespace tenon {
namespace {

bool is_single_number(Value value, int64_t most_rank) {
  return is_ranked(value) && value.rank() <= most_rank && value.shape().element_count() == Dim(1) &&
         is_fixed(value);
}

bool have_same_shape(Value a, Value b) {
  if (!is_ranked(a) || !is_ranked(b) || a.rank() != b.rank())
    return false;
  for (int64_t axis = 0; axis < a.rank(); ++axis)
    if (!provably_equal(a.dim(axis), b.dim(axis)))
      return false;
  return true;
}

}  // namespace

Value applied_to(const Node& node) {
  const Traits& traits = node.op().traits;
  if (!traits.elementwise || traits.random || node.result_count() != 1 || !node.late_names().empty() ||
      !is_ranked(node.result()))
    return {};
  Value x;
  for (Value operand : node.operands()) {
    if (is_single_number(operand, node.result().rank()))
      continue;
    if (x || !have_same_shape(operand, node.result()))
      return {};
    x = operand;
  }
  return x;
}

bool is_same_function(const Node& a, const Node& b) {
  const Value x = applied_to(a), y = applied_to(b);
  if (!x || !y || &a.op() != &b.op() || x.dtype() != y.dtype() || a.attributes() != b.attributes() ||
      a.operand_count() != b.operand_count())
    return false;
  for (int64_t i = 0; i < a.operand_count(); ++i)
    if (a.operand(i) == x ? b.operand(i) != y : a.operand(i) != b.operand(i))
      return false;
  for (const OperandDecl& operand : a.op().operands)
    if (a.ins(operand.name).size() != b.ins(operand.name).size())
      return false;
  return true;
}

Value apply_to(const Node& function, Value x) {
  const Value old = applied_to(function);
  return x.graph().copy_node(function, [&](Value operand) { return operand == old ? x : operand; })->result();
}

}  // namespace tenon
