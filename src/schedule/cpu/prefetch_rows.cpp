#include "schedule/cpu/prefetch_rows.h"

#include <algorithm>

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Loop;
using loops::mentions;
using loops::Place;
using loops::Prefetch;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kLeastPasses = 2;  // over a row: a single pass streams anyway
constexpr int64_t kPartOfCache = 4;  // that a prefetched row may fill, beside the current one

// The axes within a row over which a definition goes.
std::vector<Axis> inner_axes(const Definition& definition, size_t shared) {
  if (definition.reduces())
    return definition.reduced;
  return {definition.axes.begin() + static_cast<int64_t>(shared), definition.axes.end()};
}

// The axes of loops within each other, and the body of the innermost.
std::vector<Axis> axes_of(Statement& statement, std::vector<Statement>*& body) {
  std::vector<Axis> axes;
  for (auto* loop = std::get_if<Loop>(&statement); loop != nullptr;
       loop = std::get_if<Loop>(&loop->body.front())) {
    axes.push_back({loop->variable, loop->end});
    body = &loop->body;
  }
  return axes;
}

bool have_same_sizes(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Axis& one, const Axis& other) { return one.size == other.size; });
}

// What a pass reads of the next row, element by element, at the same iteration of loops over `axes`.
void add_places(const Definition& definition, const Axis& rows, const std::vector<Axis>& from,
                const std::vector<Axis>& axes, const std::vector<Buffer>& inputs,
                std::vector<Place>& places) {
  std::map<std::string, Dim> names{{rows.variable, Dim::symbol(rows.variable) + 1}};
  for (size_t i = 0; i < axes.size(); ++i)
    names.emplace(from[i].variable, Dim::symbol(axes[i].variable));
  for (const Scalar& value : definition.values)
    loops::for_each_load(value, [&](const Scalar& load) {
      const std::vector<Scalar>& at = load.operands();
      const bool is_input = std::ranges::find(inputs, load.name(), &Buffer::name) != inputs.end();
      const auto is_index = [](const Scalar& each) { return each.kind() == Scalar::Kind::Index; };
      if (!is_input || !mentions(load, rows.variable) || !std::ranges::all_of(at, is_index) ||
          !mentions(at.back(), from.back().variable))
        return;
      Place place{load.name(), {}};
      for (const Scalar& index : at)
        place.at.push_back(index.substitute(names));
      if (std::ranges::find(places, place) == places.end())
        places.push_back(std::move(place));
    });
}

}  // namespace

void prefetch_next_row(std::vector<Statement>& row, const std::vector<Definition>& definitions, size_t shared,
                       const std::vector<Buffer>& inputs, const Target& target) {
  std::vector<Statement>* body = nullptr;
  const std::vector<Axis> axes = axes_of(row.back(), body);
  const auto passes =
      std::ranges::count_if(row, [](const Statement& each) { return std::holds_alternative<Loop>(each); });
  if (axes.empty() || passes < kLeastPasses)
    return;
  std::vector<Place> places;
  for (const Definition& definition : definitions)
    if (const std::vector<Axis> from = inner_axes(definition, shared); have_same_sizes(from, axes))
      add_places(definition, definition.axes[shared - 1], from, axes, inputs, places);
  Dim bytes = 0;
  for (const Place& place : places) {
    Dim each = info(std::ranges::find(inputs, place.buffer, &Buffer::name)->dtype).bytes;
    for (const Axis& axis : axes)
      each = each * axis.size;
    bytes = bytes + each;
  }
  if (bytes.constant().value_or(target.caches.level2) > target.caches.level2 / kPartOfCache)
    return;
  for (Place& place : places)
    body->emplace_back(Prefetch{std::move(place)});
}

}  // namespace tenon::schedule
