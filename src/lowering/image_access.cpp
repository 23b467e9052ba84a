#include "lowering/image_access.h"

#include <algorithm>

namespace tenon::lowering {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;

namespace {

// Whether the condition is only the bounds check of the load.
bool asks_for_place(const Scalar& condition, const Scalar& load, const std::vector<Dim>& sizes) {
  if (applies(condition, Function::And))
    return asks_for_place(condition.operands()[0], load, sizes) &&
           asks_for_place(condition.operands()[1], load, sizes);
  for (size_t dim = kFirstSpatial; dim < sizes.size(); ++dim) {
    const Scalar& index = load.operands()[dim];
    if (applies(condition, Function::LessEqual) && is_zero(condition.operands()[0]) &&
        condition.operands()[1] == index)
      return true;
    if (applies(condition, Function::Less) && condition.operands()[0] == index &&
        condition.operands()[1] == Scalar::index(sizes[dim]))
      return true;
  }
  return false;
}

}  // namespace

bool mentions_any(const Scalar& index, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const Axis& axis) { return loops::mentions(index, axis.variable); });
}

std::vector<Scalar> loads_of(const Definition& definition) {
  std::vector<Scalar> loads;
  for (const Scalar& value : definition.values)
    loops::for_each_load(value, [&](const Scalar& load) { loads.push_back(load); });
  return loads;
}

bool reads_image(const Definition& definition, const Scalar& load) {
  const std::vector<Scalar>&from = load.operands(), &to = definition.at;
  if (to.size() <= kFirstSpatial || from.size() != to.size() || from[0] != to[0])
    return false;
  for (size_t dim = 1; dim < to.size(); ++dim) {
    if (from[dim].kind() != Scalar::Kind::Index)
      return false;
    for (size_t other = 0; other < to.size(); ++other)
      if (const auto axis = loops::axis_of(definition.axes, to[other])) {
        const bool found = loops::mentions(from[dim], definition.axes[*axis].variable);
        if (dim != other ? found : dim >= kFirstSpatial && !found)
          return false;
      }
  }
  return true;
}

// A bound may be far off, and padding would waste as much memory.
constexpr int64_t kMostUnsure = 64;

std::optional<Excess> excess_of(const Dim& index, const Definition& definition, const Dim& size) {
  std::map<std::string, Dim> least, most;
  for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduced})
    for (const Axis& axis : *axes) {
      const auto with = [&](const Dim& value) { return index.substitute({{axis.variable, value}}); };
      const Dim step = with(1) - with(0);
      if (step.constant().value_or(-1) < 0 || with(axis.size - 1) != with(0) + step * (axis.size - 1))
        return std::nullopt;
      least.emplace(axis.variable, 0);
      most.emplace(axis.variable, axis.size - 1);
    }
  const Dim beyond = index.substitute(most) - (size - 1);
  const std::optional<int64_t> first = index.substitute(least).constant(), past = beyond.upper_bound();
  if (!first || !past || (!beyond.is_constant() && *past > kMostUnsure))
    return std::nullopt;
  return Excess{std::max<int64_t>(-*first, 0), std::max<int64_t>(*past, 0)};
}

bool is_zero(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Index)
    return scalar.index() == Dim(0);
  return scalar.kind() == Scalar::Kind::Number && scalar == Scalar::zero(scalar.dtype());
}

bool applies(const Scalar& scalar, Function function) {
  return scalar.kind() == Scalar::Kind::Apply && scalar.function() == function;
}

std::optional<PaddedLoad> padded_load(const Scalar& scalar, const BufferTable& buffers) {
  if (!applies(scalar, Function::Select))
    return std::nullopt;
  const Scalar& border = scalar.operands()[2];
  Scalar load = scalar.operands()[1];
  if (border.kind() != Scalar::Kind::Number || (load.kind() != Scalar::Kind::Load && !is_zero(border)))
    return std::nullopt;
  while (applies(load, Function::Cast))
    load = Scalar(load.operands()[0]);
  if (load.kind() != Scalar::Kind::Load ||
      !asks_for_place(scalar.operands()[0], load, buffers.at(load.name()).sizes))
    return std::nullopt;
  return PaddedLoad{load, load.dtype() == border.dtype() ? border : Scalar::zero(load.dtype())};
}

}  // namespace tenon::lowering
