#include "loops/definition.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::loops {

std::vector<Scalar> variables_of(const std::vector<Axis>& axes) {
  std::vector<Scalar> variables;
  for (const Axis& axis : axes)
    variables.push_back(Scalar::index(Dim::symbol(axis.variable)));
  return variables;
}

Definition without_unit_axes(Definition definition) {
  std::map<std::string, Scalar> zeros;
  for (std::vector<Axis>* axes : {&definition.axes, &definition.reduced}) {
    for (const Axis& axis : *axes)
      if (axis.size == Dim(1))
        zeros.emplace(axis.variable, Scalar::index(0));
    std::erase_if(*axes, [](const Axis& axis) { return axis.size == Dim(1); });
  }
  for (std::vector<Scalar>* scalars : {&definition.at, &definition.values})
    for (Scalar& scalar : *scalars)
      scalar = *substitute(scalar, zeros);
  return definition;
}

bool mentions(const Scalar& scalar, const std::string& variable) {
  bool found = false;
  for_each_index(scalar, [&](const Dim& index) { found = found || index.mentions(variable); });
  return found;
}

bool mentions_only_in_loads(const Scalar& scalar, const std::string& variable) {
  if (scalar.kind() == Scalar::Kind::Load)
    return true;
  if (scalar.kind() == Scalar::Kind::Index)
    return !mentions(scalar, variable);
  return std::all_of(scalar.operands().begin(), scalar.operands().end(),
                     [&](const Scalar& each) { return mentions_only_in_loads(each, variable); });
}

bool runs_on(const Scalar& scalar, const Axis& outer, const Axis& inner) {
  if (!mentions(scalar, outer.variable))
    return false;
  const Dim iteration = Dim::symbol("turn0"), iterations = floor_div(iteration, inner.size);
  return scalar.substitute(
             {{outer.variable, iterations}, {inner.variable, iteration - iterations * inner.size}}) ==
         scalar.substitute({{outer.variable, 0}, {inner.variable, iteration}});
}

std::optional<size_t> axis_of(const std::vector<Axis>& axes, const Scalar& index) {
  if (index.kind() == Scalar::Kind::Index)
    for (size_t i = 0; i < axes.size(); ++i)
      if (index.index() == Dim::symbol(axes[i].variable))
        return i;
  return std::nullopt;
}

std::optional<Scalar> substitute(const Scalar& scalar, const std::map<std::string, Scalar>& replacements) {
  std::map<std::string, Dim> indices;
  for (const auto& [variable, replacement] : replacements)
    if (replacement.kind() == Scalar::Kind::Index)
      indices.emplace(variable, replacement.index());
  bool possible = true;
  const Scalar result = replace_indices(scalar, [&](const Scalar& index) {
    if (index.index().is_symbol())
      if (const auto it = replacements.find(index.index().symbols().front()); it != replacements.end())
        return it->second;
    for (const std::string& symbol : index.index().symbols())
      possible &= !replacements.contains(symbol) || indices.contains(symbol);
    return Scalar::index(index.index().substitute(indices));
  });
  return possible ? std::optional(result) : std::nullopt;
}

}  // namespace tenon::loops
