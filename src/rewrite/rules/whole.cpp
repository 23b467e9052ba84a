// whole.cpp — what is done to each part of a tensor, done once to all of it.
#include <algorithm>
#include <map>
#include <numeric>

#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "rewrite/cut.h"
#include "rewrite/rules/applied.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

// Whether its elements are computed by a node of their own, which a function of them can become part of.
bool is_computed(Value value) {
  return !value.is_input() && value.node()->op().category == Category::Compute;
}

// What the parts of a concat are one function of, each for the concat alone; empty where they are not.
std::vector<Value> operands_of_one_function(const Node& concat) {
  const std::vector<Value> parts = concat.ins("x");
  std::vector<Value> operands;
  for (Value part : parts) {
    if (part.is_input() || !part.has_one_use() || !is_same_function(*parts.front().node(), *part.node()))
      return {};
    operands.push_back(applied_to(*part.node()));
  }
  return operands;
}

// --- every so-many-th element ---

using Ints = std::vector<int64_t>;

// Parts of a tensor that take every so-many-th element of it along some axes, so that each element is in one
// of them: the channels of a picture's even rows and columns, those of its odd rows and even columns, and so
// on.
struct Phases {
  Value of;
  std::map<int64_t, int64_t> steps;  // by axis
  std::vector<Ints> starts;          // of each part, by axis
};

std::optional<Phases> phases_of(const Node& concat) {
  Phases phases;
  for (Value part : concat.ins("x")) {
    if (part.is_input() || !part.node()->is("slice") || !part.has_one_use())
      return std::nullopt;
    const Value x = part.node()->in("x");
    const auto cuts = known_cuts(*part.node());
    if (!cuts || (phases.of && x != phases.of))
      return std::nullopt;
    phases.of = x;
    Ints starts;
    std::map<int64_t, int64_t> steps;
    for (const Cut& cut : *cuts) {
      const auto size = x.dim(cut.axis).constant();
      if (!size || cut.step < 2 || *size % cut.step != 0 || cut.start >= cut.step ||
          part.dim(cut.axis) != Dim(*size / cut.step))
        return std::nullopt;
      steps[cut.axis] = cut.step;
      starts.push_back(cut.start);
    }
    if (!phases.starts.empty() && steps != phases.steps)
      return std::nullopt;
    phases.steps = steps;
    phases.starts.push_back(starts);
  }
  return phases;
}

// The order of the axes, from that whose start changes least, in which the starts of the parts are counted
// up; nothing where they are in no such order, or some are missing.
std::optional<Ints> counting_order(const Phases& phases) {
  Ints axes, steps;
  for (const auto& [axis, step] : phases.steps) {
    axes.push_back(static_cast<int64_t>(axes.size()));
    steps.push_back(step);
  }
  const auto is_counted = [&] {
    for (size_t i = 0; i < phases.starts.size(); ++i) {
      auto rest = static_cast<int64_t>(i);
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const auto at = static_cast<size_t>(*axis);
        if (phases.starts[i][at] != rest % steps[at])
          return false;
        rest /= steps[at];
      }
      if (rest != 0)
        return false;
    }
    return true;
  };
  const int64_t count = std::accumulate(steps.begin(), steps.end(), int64_t{1}, std::multiplies<>());
  if (count != static_cast<int64_t>(phases.starts.size()))
    return std::nullopt;
  do {
    if (is_counted())
      return axes;
  } while (std::next_permutation(axes.begin(), axes.end()));
  return std::nullopt;
}

bool puts_phases_together(const Node& concat) {
  const auto phases = phases_of(concat);
  return phases && phases->starts.size() >= 3 && counting_order(*phases);
}

// Each axis with steps as two, and those of the steps moved to where the parts are put together. Nothing
// where no constant says a shape.
Value phases_by_transpose(const Node& concat) {
  const auto phases = phases_of(concat);
  const auto order = counting_order(*phases);
  const Value x = phases->of;
  const int64_t put_together = checked_axis("concat", concat.attr("axis"), x.rank());
  std::vector<Dim> apart;
  Ints places, step_places;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto step = phases->steps.find(axis);
    places.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(step == phases->steps.end() ? x.dim(axis) : Dim(*x.dim(axis).constant() / step->second));
    if (step != phases->steps.end()) {
      step_places.push_back(static_cast<int64_t>(apart.size()));
      apart.emplace_back(step->second);
    }
  }
  Ints permutation;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (axis == put_together)
      for (int64_t each : *order)
        permutation.push_back(step_places[static_cast<size_t>(each)]);
    permutation.push_back(places[static_cast<size_t>(axis)]);
  }
  const Value split = view(x, Shape(apart));
  return split ? view(transpose(split, permutation), concat.result().shape()) : Value();
}

Rules make_rules() {
  const Pattern concat = result_of("concat");
  return {
      {.name = "concat-before-elementwise",
       .match = concat,
       .replace = {"f(concat(x))",
                   [=](const Match& m) {
                     const Node& node = m.node(concat);
                     const Value all = tenon::concat(operands_of_one_function(node), node.attr("axis"));
                     return apply_to(*node.ins("x").front().node(), all);
                   }},
       .when = {is_not_fixed(concat),
                {"all parts are one function of something",
                 [=](const Match& m) { return operands_of_one_function(m.node(concat)).size() > 1; }},
                {"no part is computed by a node that could compute the function too",
                 [=](const Match& m) {
                   const std::vector<Value> operands = operands_of_one_function(m.node(concat));
                   return std::none_of(operands.begin(), operands.end(), is_computed);
                 },
                 true}},
       .numerics = Numerics::BitExact,
       .fires = "(%a: T[n,2], %b: T[n,3]) { %c = constant(value=T[] {1}) %0 = max(%a, %c) %1 = max(%b, %c) "
                "%y = concat([%0, %1], axis=-1) return %y }",
       .stays = "(%a: T[n,2], %b: T[n,3]) { %c = constant(value=T[] {1}) %0 = max(%a, %c) %1 = min(%b, %c) "
                "%y = concat([%0, %1], axis=-1) %2 = max(%b, %c) %z = concat([%0, %2, %2], axis=-1) "
                "return %y, %z }"},
      {.name = "phases-by-transpose",
       .match = concat,
       .replace = {"view(transpose(view(x)))",
                   [=](const Match& m) { return phases_by_transpose(m.node(concat)); }},
       .when = {{"the rank is known",
                 [](const Match& m) { return m.root().type().is_tensor() && m.root().shape().ranked(); }},
                {"the parts are all phases of one tensor, counted up",
                 [=](const Match& m) { return puts_phases_together(m.node(concat)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,3,4,6]) { %0 = constant(value=i64[2] {0, 0}) %1 = constant(value=i64[2] {1, 0}) "
                "%2 = constant(value=i64[2] {0, 1}) %3 = constant(value=i64[2] {1, 1}) "
                "%e = constant(value=i64[2] {4, 6}) %s = constant(value=i64[2] {2, 2}) "
                "%a = slice(%x, %0, %e, %s, axes=[2, 3]) %b = slice(%x, %1, %e, %s, axes=[2, 3]) "
                "%c = slice(%x, %2, %e, %s, axes=[2, 3]) %d = slice(%x, %3, %e, %s, axes=[2, 3]) "
                "%y = concat([%a, %b, %c, %d], axis=1) return %y }",
       .stays = "(%x: T[n,3,4,6]) { %0 = constant(value=i64[2] {0, 0}) %1 = constant(value=i64[2] {1, 0}) "
                "%2 = constant(value=i64[2] {0, 1}) %3 = constant(value=i64[2] {1, 1}) "
                "%e = constant(value=i64[2] {4, 6}) %s = constant(value=i64[2] {2, 2}) "
                "%a = slice(%x, %0, %e, %s, axes=[2, 3]) %b = slice(%x, %1, %e, %s, axes=[2, 3]) "
                "%c = slice(%x, %2, %e, %s, axes=[2, 3]) %d = slice(%x, %3, %e, %s, axes=[2, 3]) "
                "%y = concat([%a, %b, %d, %c], axis=1) return %y }"},
  };
}

}  // namespace

const Rules& whole_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
