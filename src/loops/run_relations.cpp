#include "loops/run_relations.h"

#include <algorithm>

namespace tenon::loops {

Relation RunRelations::time(const Run& run, size_t depth) {
  std::vector<std::string> all = steps(run, run.around.size());
  all.push_back(std::to_string(run.place));
  all.resize(2 * depth + 1, "0");
  return built(run, fmt::format("T[{}]", fmt::join(all, ", ")));
}

Relation RunRelations::iteration(const Run& run, size_t loop) {
  return built(run, fmt::format("T[{}]", words_.name(run.around[loop].loop->variable)));
}

Relation RunRelations::time_around(const Run& run, size_t loop) {
  return built(run, fmt::format("T[{}]", fmt::join(steps(run, loop), ", ")));
}

std::vector<Element> RunRelations::elements(const Run& run, const std::set<std::string>& buffers) {
  std::vector<Element> elements;
  std::vector<Use> done;
  for_each_use(*run.statement, [&](const Use& use) {
    const bool again = use.access == Access::Read && std::ranges::any_of(done, [&](const Use& other) {
                         return other.access == Access::Read && other.place == use.place;
                       });
    if (again || !buffers.contains(use.place.buffer))
      return;
    done.push_back(use);
    const std::string image = element(run, use.place), conditions = box(run, use.place);
    const bool writes = use.access == Access::Combine && minds_order(run);
    elements.push_back({.buffer = use.place.buffer,
                        .access = writes ? Access::Write : use.access,
                        .is_known = is_known(run, use.place),
                        .image = image + conditions,
                        .of_run = built(run, image, conditions)});
  });
  return elements;
}

std::vector<std::string> RunRelations::steps(const Run& run, size_t loops) {
  std::vector<std::string> steps;
  for (size_t i = 0; i < loops; ++i) {
    steps.push_back(std::to_string(run.around[i].place));
    steps.push_back(words_.name(run.around[i].loop->variable));
  }
  return steps;
}

// Nothing where it depends on data, or there are no words for it.
std::optional<std::string> RunRelations::index(const Scalar& scalar) {
  return scalar.kind() == Scalar::Kind::Index ? words_.find_expression(scalar.index()) : std::nullopt;
}

// From its place on, a routine uses whatever it likes.
bool RunRelations::is_known(const Run& run, const Place& place) {
  return !std::holds_alternative<Call>(*run.statement) &&
         std::ranges::all_of(place.at, [&](const Scalar& each) { return index(each).has_value(); });
}

// Whether a run combines in a way that minds the order: as values of several places depend on each other, it
// must be known which those are.
bool RunRelations::minds_order(const Run& run) {
  const auto& assign = std::get<Assign>(*run.statement);
  const Combine* combine = kernel_.find_combine(assign.combine);
  if (combine == nullptr)
    return false;
  return !combine->unordered ||
         (assign.places.size() > 1 &&
          !std::ranges::all_of(assign.places, [&](const Place& place) { return is_known(run, place); }));
}

// The element, with the loops around the declaration of a local buffer: each of their iterations has its own.
std::string RunRelations::element(const Run& run, const Place& place) {
  std::vector<std::string> at;
  if (const auto it = run.in_sight.find(place.buffer); it != run.in_sight.end())
    for (size_t i = 0; i < it->second; ++i)
      at.push_back(words_.name(run.around[i].loop->variable));
  for (size_t axis = 0; axis < place.at.size(); ++axis) {
    const std::optional<std::string> text =
        std::holds_alternative<Assign>(*run.statement) ? index(place.at[axis]) : std::nullopt;
    at.push_back(text.value_or(any(axis)));
  }
  return fmt::format("{}[{}]", words_.name(place.buffer), fmt::join(at, ", "));
}

// What of all elements a copy uses: those from the first one on.
std::string RunRelations::box(const Run& run, const Place& place) {
  const auto* copy = std::get_if<Copy>(run.statement);
  if (copy == nullptr)
    return "";
  std::string conditions;
  const size_t whole = place.at.size() - copy->sizes.size();  // dimensions of which it uses one element
  for (size_t axis = 0; axis < place.at.size(); ++axis) {
    const std::optional<std::string> first = index(place.at[axis]);
    if (!first)
      continue;
    const std::string size = axis < whole ? "1" : words_.expression(copy->sizes[axis - whole]);
    conditions += fmt::format(" and 0 <= {0} - ({1}) < {2}", any(axis), *first, size);
  }
  return conditions;
}

// From each run to the image. The library wants expressions behind the variables that they speak of, so the
// loops come first, and go later.
Relation RunRelations::built(const Run& run, const std::string& image, const std::string& conditions) {
  std::vector<std::string> names, origin;
  for (const auto& [loop, place] : run.around)
    names.push_back(words_.name(loop->variable));
  for (const Dim& dim : origin_of(run).at)
    origin.push_back(words_.expression(dim));
  const std::string piece = fmt::format("[L[{}] -> S[{}]] -> {} : {}{}", fmt::join(names, ", "),
                                        fmt::join(origin, ", "), image, words_.domain(run), conditions);
  return Relation(context_, words_.relation({piece})).of_second();
}

}  // namespace tenon::loops
