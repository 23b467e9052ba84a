#include "schedule/cuda/loads.h"

namespace tenon::schedule::cuda {

using loops::Scalar;

void for_each_certain_load(const Scalar& formula, const std::function<void(const Scalar&)>& f) {
  if (formula.kind() == Scalar::Kind::Load)
    f(formula);
  if (formula.kind() != Scalar::Kind::Load && formula.kind() != Scalar::Kind::Apply)
    return;
  if (formula.kind() == Scalar::Kind::Apply && loops::takes_condition(formula.function()))
    return for_each_certain_load(formula.operands().front(), f);
  for (const Scalar& operand : formula.operands())
    for_each_certain_load(operand, f);
}

}  // namespace tenon::schedule::cuda
