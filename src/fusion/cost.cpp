#include "fusion/cost.h"

#include <functional>

#include "loops/contraction.h"

namespace tenon::fusion {

using loops::Function;
using loops::Scalar;
using lowering::Stage;

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
    case Function::RoundDownToBf16:
    case Function::Bf16Remainder:
      return 1;
    case Function::Equal:  // asking whether an index is in range, and the like, costs next to nothing
    case Function::Less:
    case Function::LessEqual:
    case Function::And:
    case Function::Or:
    case Function::Not:
    case Function::Select:
    case Function::Cast:
    case Function::Require:
    case Function::PackBf16x2:
    case Function::PackI8x4:  // contiguous wherever it matters
      return 0;
    case Function::Xor:
    case Function::ShiftLeft:
    case Function::ShiftRight:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
      return 2;
    case Function::DotI8x4:
      return 7;
    case Function::DotBf16x2:
      return 3;
    case Function::Divide:
    case Function::Sqrt:
      return 8;
    case Function::Philox:
    case Function::PhiloxHigh:
      return 80;  // ten rounds of two multiplications
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

namespace {

Dim iterations_of(const std::vector<loops::Axis>& axes,
                  const std::function<bool(const loops::Axis&)>& counts) {
  Dim iterations = 1;
  for (const loops::Axis& axis : axes)
    if (counts(axis))
      iterations = iterations * axis.size;
  return iterations;
}

// The operands of a contraction are computed once and reused for all that they are multiplied by.
Dim operations_of(const loops::Definition& definition, const Scalar& value) {
  std::vector<loops::Axis> axes = definition.axes;
  axes.insert(axes.end(), definition.reduced.begin(), definition.reduced.end());
  const Dim iterations = iterations_of(axes, [](const loops::Axis&) { return true; });
  if (!definition.reduces())
    return iterations * cost_of(value).operations;
  const std::optional<loops::Product> product = loops::match_product(value);
  if (!product || !product->multiplies())
    return iterations * (cost_of(value).operations + 1);
  Dim operations = 2 * iterations;
  for (const Scalar& factor : {product->lhs, product->rhs})
    if (const int64_t own = cost_of(factor).operations; own > 0)
      operations = operations + own * iterations_of(axes, [&](const loops::Axis& axis) {
                                  return loops::mentions(factor, axis.variable);
                                });
  return operations;
}

}  // namespace

KernelCost cost_of(const std::vector<Stage>& stages, const std::set<std::string>& outputs,
                   const lowering::BufferTable& buffers) {
  KernelCost cost;
  std::set<std::string> inputs = {}, made = {};
  for (const Stage& stage : stages) {
    const loops::Definition& definition = stage.definition;
    const loops::Definition& counted = stage.as_written ? *stage.as_written : definition;
    for (const Scalar& value : counted.values)
      cost.operations = cost.operations + operations_of(counted, value);
    for (const std::string& buffer : buffers_read(stage))
      if (!made.contains(buffer))
        inputs.insert(buffer);
    for (const loops::Buffer& result : definition.results)
      made.insert(result.name);
  }
  for (const std::string& input : inputs)
    cost.bytes = cost.bytes + size_of(buffers.at(input));
  for (const std::string& output : outputs)
    cost.bytes = cost.bytes + size_of(buffers.at(output));
  return cost;
}

Dim size_of(const loops::Buffer& buffer) {
  Dim bytes = info(buffer.dtype).bytes;
  for (const Dim& size : buffer.sizes)
    bytes = bytes * size;
  return bytes;
}

Rates rates_of(const Target& target) {
  if (const std::optional<Gpu>& gpu = target.gpu)
    return {.bytes_from_memory = gpu->bytes_per_nanosecond,
            .bytes_from_cache = gpu->bytes_per_nanosecond * 3,
            .operations = gpu->multiprocessors * 128 * 1.5};
  // Two instructions in a cycle, at 2.5 GHz. A core moves about 10 GB/s from memory, four times that from
  // its caches.
  return {.bytes_from_memory = 10,
          .bytes_from_cache = 40,
          .operations = static_cast<double>(target.vector_bytes) / 4 * 5};
}

}  // namespace tenon::fusion
