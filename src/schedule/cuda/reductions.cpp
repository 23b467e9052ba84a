#include "schedule/cuda/reductions.h"

#include <algorithm>
#include <limits>

namespace tenon::schedule::cuda {

using loops::Definition;
using loops::Function;
using loops::Scalar;

namespace {

bool is_neutral(Function combine, const Scalar& initial) {
  if (initial.kind() != Scalar::Kind::Number)
    return false;
  const auto is = [&](double number) {
    return std::visit([&](auto value) { return static_cast<double>(value) == number; }, initial.value());
  };
  switch (combine) {
    case Function::Add:
      return is(0);
    case Function::Multiply:
      return is(1);
    case Function::Maximum:
      return is_float(initial.dtype()) && is(-std::numeric_limits<double>::infinity());
    case Function::Minimum:
      return is_float(initial.dtype()) && is(std::numeric_limits<double>::infinity());
    default:
      return false;
  }
}

}  // namespace

bool is_divisible(const Definition& reduction) {
  const std::optional<Function> combine = loops::built_in_combine(reduction.combine);
  return combine && !reduction.reduced.empty() && reduction.results.size() == 1 &&
         is_neutral(*combine, reduction.initial.front());
}

bool reduces_consecutive(const Definition& reduction) {
  bool consecutive = reduction.axes.empty();
  for (const Scalar& value : reduction.values)
    loops::for_each_load(value, [&](const Scalar& load) {
      if (!load.operands().empty())
        consecutive |= loops::mentions(load.operands().back(), reduction.reduced.back().variable);
    });
  return consecutive;
}

}  // namespace tenon::schedule::cuda
