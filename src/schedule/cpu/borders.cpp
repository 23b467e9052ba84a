#include "schedule/cpu/borders.h"

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Loop;
using loops::Scalar;
using loops::Statement;
using lowering::Stage;

namespace {

// The range of elements along a dimension.
std::pair<Dim, Dim> filled_part(const Definition& definition, size_t dim) {
  std::map<std::string, Dim> first, last;
  for (const Axis& axis : definition.axes) {
    first.emplace(axis.variable, 0);
    last.emplace(axis.variable, axis.size - 1);
  }
  const Dim& at = definition.at[dim].index();
  return {at.substitute(first), at.substitute(last) + 1};
}

// A part of a buffer along one dimension, and all of it along the others.
Statement fill(const Buffer& buffer, const Scalar& with, size_t dim, const Dim& begin, const Dim& end) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < buffer.sizes.size(); ++i)
    axes.push_back({fmt::format("b{}", i), buffer.sizes[i]});
  std::vector<Statement> loops = nested(
      axes,
      {loops::Assign{.places = {{buffer.name, loops::variables_of(axes)}}, .combine = "", .values = {with}}});
  Statement* at = &loops.front();
  for (size_t i = 0; i < dim; ++i)
    at = &std::get<Loop>(*at).body.front();
  std::get<Loop>(*at).begin = begin;
  std::get<Loop>(*at).end = end;
  return std::move(loops.front());
}

}  // namespace

std::vector<Statement> fill_border(const Buffer& result, const Stage& stage, size_t dim, const Dim& begin,
                                   const Dim& end) {
  std::vector<Statement> borders;
  const Scalar with = stage.border.value_or(Scalar::zero(result.dtype));
  if (begin != Dim(0))
    borders.push_back(fill(result, with, dim, 0, begin));
  if (end != result.sizes[dim])
    borders.push_back(fill(result, with, dim, end, result.sizes[dim]));
  return borders;
}

std::vector<Statement> fill_borders(const std::vector<Stage>& stages, const std::set<std::string>& outputs) {
  std::vector<Statement> borders;
  for (const Stage& stage : stages)
    for (const Buffer& result : stage.definition.results) {
      if (!outputs.contains(result.name))
        continue;
      for (size_t dim = 0; dim < result.sizes.size(); ++dim) {
        const auto [begin, end] = filled_part(stage.definition, dim);
        append(borders, fill_border(result, stage, dim, begin, end));
      }
    }
  return borders;
}

}  // namespace tenon::schedule
