#include "fusion/cost.h"

namespace tenon {

using loops::Function;
using loops::Scalar;

namespace {

int64_t operations_of(Function function) {
  switch (function) {
    case Function::Add:
    case Function::Subtract:
    case Function::Multiply:
    case Function::Minimum:
    case Function::Maximum:
    case Function::Negate:
    case Function::Absolute:
    case Function::And:
    case Function::Or:
    case Function::Not:
    case Function::Equal:
    case Function::Less:
    case Function::LessEqual:
      return 1;
    case Function::Select:
    case Function::Cast:
    case Function::Require:
      return 0;
    case Function::Xor:
    case Function::ShiftLeft:
    case Function::ShiftRight:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
      return 2;
    case Function::Divide:
    case Function::Sqrt:
      return 8;
    default:
      return 20;  // a polynomial
  }
}

void add_cost(const Scalar& scalar, FormulaCost& cost) {
  if (++cost.parts > kLargestFormula)
    return;
  if (scalar.kind() == Scalar::Kind::Load) {
    ++cost.loads;
    cost.bytes += info(scalar.dtype()).bytes;
  } else if (scalar.kind() == Scalar::Kind::Apply) {
    cost.operations += operations_of(scalar.function());
  }
  for (const Scalar& operand : scalar.operands())
    add_cost(operand, cost);
}

}  // namespace

FormulaCost cost_of(const Scalar& formula) {
  FormulaCost cost;
  add_cost(formula, cost);
  return cost;
}

Rates rates_of(const Target& target) {
  // Two instructions in a cycle, at 2.5 GHz. A core moves about 10 GB/s from memory, four times that from
  // its caches.
  return {.bytes_from_memory = 10,
          .bytes_from_cache = 40,
          .operations = static_cast<double>(target.vector_bytes) / 4 * 5};
}

}  // namespace tenon
