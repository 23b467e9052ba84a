// slice.cpp — parts of tensors, and tensors put together: what is taken whole, taken again, put back
// together, or taken of what was just put together.
#include "ops/slice.h"

#include <algorithm>

#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "rewrite/cut.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

int64_t axis_of(const Node& node) {
  return checked_axis(node.op().name, node.attr("axis"), node.in("x").rank());
}

// --- parts of one tensor ---

// A stretch of a tensor along one axis: positions start … end - 1.
struct Stretch {
  Value of;
  int64_t axis, start, end;
};

Value take(const Stretch& stretch) {
  const auto size = stretch.of.dim(stretch.axis).constant();
  if (stretch.start == 0 && size == stretch.end)
    return stretch.of;
  return cut(stretch.of, {{stretch.axis, stretch.start, stretch.end}});
}

// What a slice along one axis or a result of a split is a stretch of.
std::optional<Stretch> stretch_of(Value part) {
  if (maker(part, "slice") != nullptr) {
    const auto cuts = known_cuts(*part.node());
    const Value x = part.node()->in("x");
    if (!cuts || cuts->size() != 1 || cuts->front().step != 1 || !x.dim(cuts->front().axis).is_constant())
      return std::nullopt;
    return Stretch{x, cuts->front().axis, cuts->front().start, cuts->front().end};
  }
  if (maker(part, "split") != nullptr && is_ranked(part.node()->in("x"))) {
    const auto sizes = part.node()->in("sizes").known_ints();
    if (!sizes)
      return std::nullopt;
    Stretch stretch{part.node()->in("x"), axis_of(*part.node()), 0, 0};
    for (int64_t i = 0; i <= part.index(); ++i) {
      stretch.start = stretch.end;
      stretch.end += (*sizes)[static_cast<size_t>(i)];
    }
    return stretch;
  }
  return std::nullopt;
}

// What a slice and the one before it leave together; nothing where it takes unknown sizes to tell.
std::optional<Cuts> cuts_of_both(const Node& slice) {
  if (maker(slice.in("x"), "slice") == nullptr)
    return std::nullopt;
  const std::optional<Cuts> first = known_cuts(*slice.in("x").node()), second = known_cuts(slice);
  if (!first || !second)
    return std::nullopt;
  Cuts both = *first;
  for (const Cut& again : *second) {
    const auto same =
        std::find_if(both.begin(), both.end(), [&](const Cut& cut) { return cut.axis == again.axis; });
    const auto merged = same == both.end() ? again : cut_again(*same, again);
    if (!merged)
      return std::nullopt;
    if (same == both.end())
      both.push_back(*merged);
    else
      *same = *merged;
  }
  return both;
}

// --- what is taken of a concat ---

// Parts of a concat that follow each other, and the stretch of them that is wanted.
struct PartsTaken {
  std::vector<Value> parts;
  int64_t axis, start, end;
};

// The parts that the stretch of a concat lies in; nothing where that is all of them, or where putting them
// together again would be done a second time.
std::optional<PartsTaken> parts_within(const Node& concat, int64_t start, int64_t end) {
  PartsTaken taken{{}, checked_axis("concat", concat.attr("axis"), concat.result().rank()), start, end};
  int64_t offset = 0;
  for (Value part : concat.ins("x")) {
    if (offset >= end)
      break;
    if (!is_ranked(part) || !part.dim(taken.axis).is_constant())
      return std::nullopt;
    const int64_t size = *part.dim(taken.axis).constant();
    if (offset + size > start && size > 0) {
      if (taken.parts.empty()) {
        taken.start -= offset;
        taken.end -= offset;
      }
      taken.parts.push_back(part);
    }
    offset += size;
  }
  const bool is_repeated = taken.parts.size() > 1 &&
                           (taken.parts.size() == concat.ins("x").size() || !concat.result().has_one_use());
  return taken.parts.empty() || offset < end || is_repeated ? std::nullopt : std::optional(taken);
}

Value take(const PartsTaken& taken) {
  const Value of = taken.parts.size() == 1 ? taken.parts.front() : concat(taken.parts, taken.axis);
  return take({of, taken.axis, taken.start, taken.end});
}

// Of a slice of a concat along its axis: which parts it takes, and what is left to do then.
struct SliceOfParts {
  PartsTaken taken;
  Cuts rest;
};

std::optional<SliceOfParts> parts_of_slice(const Node& slice) {
  auto cuts = known_cuts(slice);
  if (!cuts || maker(slice.in("x"), "concat") == nullptr)
    return std::nullopt;
  const Node& concat = *slice.in("x").node();
  const int64_t axis = checked_axis("concat", concat.attr("axis"), concat.result().rank());
  const auto along =
      std::find_if(cuts->begin(), cuts->end(), [&](const Cut& cut) { return cut.axis == axis; });
  if (along == cuts->end() || along->step < 1 || along->start < 0 || along->end <= along->start ||
      !concat.result().dim(axis).is_constant())
    return std::nullopt;
  const auto taken = parts_within(concat, along->start, along->end);
  if (!taken)
    return std::nullopt;
  // What is left to do: steps, and the other axes.
  if (along->step == 1)
    cuts->erase(along);
  else
    *along = {axis, 0, along->end - along->start, along->step};
  return SliceOfParts{*taken, *cuts};
}

std::optional<PartsTaken> parts_of_split(Value part) {
  const Value x = part.node()->in("x");
  const auto stretch = stretch_of(part);
  if (!stretch || maker(x, "concat") == nullptr || stretch->start == stretch->end ||
      checked_axis("concat", x.node()->attr("axis"), x.rank()) != stretch->axis)
    return std::nullopt;
  return parts_within(*x.node(), stretch->start, stretch->end);
}

// --- concat ---

// How many parts from the first on are small constants, which folding makes one.
size_t count_constants(const std::vector<Value>& parts, size_t first) {
  size_t end = first;
  while (end < parts.size() && known_elements(parts[end]) != nullptr)
    ++end;
  return end - first;
}

bool are_constants(const std::vector<Value>& parts) { return count_constants(parts, 0) == parts.size(); }

// The parts, those of concats along the same axis among them one by one, and without those that are empty.
std::vector<Value> flattened(const Node& concat, int64_t axis) {
  std::vector<Value> parts;
  for (Value part : concat.ins("x")) {
    if (maker(part, "concat") != nullptr && part.has_one_use() && is_ranked(part) && !is_fixed(part) &&
        !are_constants(part.node()->ins("x")) &&
        checked_axis("concat", part.node()->attr("axis"), part.rank()) == axis)
      for (Value inner : part.node()->ins("x"))
        parts.push_back(inner);
    else if (!is_ranked(part) || part.dim(axis) != Dim(0))
      parts.push_back(part);
  }
  return parts;
}

// How many parts from the first on are stretches of one tensor that follow each other.
size_t run_length(const std::vector<Value>& parts, size_t first, int64_t axis, Stretch& whole) {
  size_t length = 0;
  for (size_t i = first; i < parts.size(); ++i, ++length) {
    const auto next = stretch_of(parts[i]);
    if (!next || next->axis != axis || (length > 0 && (next->of != whole.of || next->start != whole.end)))
      break;
    whole = {next->of, axis, length == 0 ? next->start : whole.start, next->end};
  }
  return length;
}

// Whether it is worth taking the stretch at once: where it is all there is, or where its parts are slices
// that nothing else needs.
bool is_worth_joining(std::span<const Value> parts, const Stretch& whole) {
  if (parts.size() < 2)
    return false;
  return (whole.start == 0 && whole.of.dim(whole.axis) == Dim(whole.end)) ||
         std::all_of(parts.begin(), parts.end(),
                     [](Value part) { return part.has_one_use() && part.node()->is("slice"); });
}

Value simplified_concat(const Node& concat) {
  const int64_t axis = checked_axis("concat", concat.attr("axis"), concat.result().rank());
  const std::vector<Value> parts = flattened(concat, axis);
  if (parts.empty())
    return {};
  std::vector<Value> joined;
  for (size_t i = 0; i < parts.size();) {
    Stretch whole{};
    const size_t length = run_length(parts, i, axis, whole), constants = count_constants(parts, i);
    if (constants > 1 && !are_constants(parts)) {
      joined.push_back(tenon::concat({parts.begin() + static_cast<std::ptrdiff_t>(i),
                                      parts.begin() + static_cast<std::ptrdiff_t>(i + constants)},
                                     axis));
      i += constants;
    } else if (is_worth_joining(std::span(parts).subspan(i, length), whole)) {
      joined.push_back(take(whole));
      i += length;
    } else {
      joined.push_back(parts[i++]);
    }
  }
  if (joined.size() == 1)
    return joined.front();
  if (joined == concat.ins("x") && axis == concat.attr("axis").as<int64_t>())
    return {};
  return tenon::concat(joined, axis);
}

// --- gather ---

// What a gather takes if its indices are known and step evenly through an axis of known size: the cuts, none
// where it is all of it.
std::optional<Cuts> cuts_of_gather(const Node& gather) {
  const Value x = gather.in("x");
  const int64_t axis = checked_axis("gather", gather.attr("axis"), x.rank());
  const auto size = x.dim(axis).constant();
  const auto known = gather.in("indices").known_ints();
  if (!size || !known || known->empty())
    return std::nullopt;
  Ints places;
  for (int64_t index : *known)
    places.push_back(index < 0 ? index + *size : index);
  const int64_t step = places.size() == 1 ? 1 : places[1] - places[0];
  if (step < 1 || places.front() < 0 || places.back() >= *size)
    return std::nullopt;
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] != step)
      return std::nullopt;
  const bool is_all = places.front() == 0 && places.back() + 1 == *size && step == 1;
  return is_all ? Cuts{} : Cuts{{axis, places.front(), places.back() + 1, step}};
}

// --- elements that nothing is added to ---

bool adds_nothing(const Node& pad) {
  const auto pads = pad.in("pads").known_ints();
  return pads && std::all_of(pads->begin(), pads->end(), [](int64_t count) { return count == 0; });
}

bool repeats_only_ones(const Node& tile) {
  const Value x = tile.in("x");
  const auto repeats = tile.in("repeats").known_ints();
  if (!repeats || static_cast<int64_t>(repeats->size()) != x.rank())
    return false;
  for (int64_t i = 0; i < x.rank(); ++i)
    if ((*repeats)[static_cast<size_t>(i)] != 1 && x.dim(i) != Dim(1))
      return false;
  return true;
}

Value tile_as_broadcast(const Node& tile) {
  const Value x = tile.in("x");
  const Ints repeats = *tile.in("repeats").known_ints();
  const bool changes = std::any_of(repeats.begin(), repeats.end(), [](int64_t count) { return count != 1; });
  return changes ? broadcast_to(x, int_vector(x.graph(), repeats)) : x;
}

Rules part_rules() {
  const Pattern slice = result_of("slice"), split = result_of("split"), gather = result_of("gather");
  const Condition known = {"the bounds are known",
                           [=](const Match& m) { return known_cuts(*m.root().node()).has_value(); }};
  const Condition ranked = {"the ranks are known", [](const Match& m) {
                              return is_ranked(m.root()) && is_ranked(m.root().node()->in("x"));
                            }};
  return {
      {.name = "slice-of-slice",
       .match = slice,
       .replace = {"slice(x)",
                   [=](const Match& m) {
                     return cut(m.node(slice).in("x").node()->in("x"), *cuts_of_both(m.node(slice)));
                   }},
       .when = {{"x is a slice, and it is known what both leave",
                 [=](const Match& m) { return cuts_of_both(m.node(slice)).has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,9]) { %1 = constant(value=i64[1] {1}) %8 = constant(value=i64[1] {8}) "
                "%2 = constant(value=i64[1] {2}) %0 = slice(%x, %1, %8, %2, axes=[1]) "
                "%s = constant(value=i64[2] {-2, 0}) %e = constant(value=i64[2] {4, 2}) "
                "%y = slice(%0, %s, %e, axes=[1, 0]) return %y }",
       .stays = "(%x: T[n,9], %s: i64[1]) { %1 = constant(value=i64[1] {1}) %8 = constant(value=i64[1] {8}) "
                "%0 = slice(%x, %s, %8, axes=[1]) %y = slice(%0, %1, %8, axes=[1]) return %y }"},
      {.name = "slice-of-concat",
       .match = slice,
       .replace = {"slice(parts)",
                   [=](const Match& m) {
                     const auto [taken, rest] = *parts_of_slice(m.node(slice));
                     return cut(take(taken), rest);
                   }},
       .when = {{"x is a concat, and it is known which of its parts are taken, not all",
                 [=](const Match& m) { return parts_of_slice(m.node(slice)).has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%a: T[2,n], %b: T[3,n], %c: T[4,n]) { %0 = concat([%a, %b, %c], axis=0) "
           "%1 = constant(value=i64[1] {3}) %2 = constant(value=i64[1] {9}) %3 = constant(value=i64[1] {2}) "
           "%y = slice(%0, %1, %2, %3, axes=[0]) return %y }",
       .stays = "(%a: T[2,n], %b: T[3,n]) { %0 = concat([%a, %b], axis=0) %1 = constant(value=i64[1] {1}) "
                "%2 = constant(value=i64[1] {4}) %y = slice(%0, %1, %2, axes=[0]) return %y }"},
      {.name = "one-spelling-of-slice",
       .match = slice,
       .replace = {"slice(x)",
                   [=](const Match& m) { return cut(m.node(slice).in("x"), *known_cuts(m.node(slice))); }},
       .when = {known,
                {"it is written otherwise",
                 [=](const Match& m) {
                   return !is_written_as_cut(m.node(slice), *known_cuts(m.node(slice)));
                 }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%x: T[n,9,4]) { %s = constant(value=i64[3] {-4, 0, 3}) %e = constant(value=i64[3] {100, 9, -9}) "
           "%t = constant(value=i64[3] {3, 1, -1}) %y = slice(%x, %s, %e, %t, axes=[1, 0, -1]) return %y }",
       .stays = "(%x: T[n,9]) { %s = constant(value=i64[1] {1}) %e = constant(value=i64[1] {5}) "
                "%y = slice(%x, %s, %e, axes=[1]) return %y }"},
      {.name = "split-of-concat",
       .match = split,
       .replace = {"part", [=](const Match& m) { return take(*parts_of_split(m.root())); }},
       .when = {ranked,
                {"x is a concat, and it is known which of its parts are taken, not all",
                 [=](const Match& m) { return parts_of_split(m.root()).has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%a: T[2,n], %b: T[3,n]) { %0 = concat([%a, %b], axis=0) %s = constant(value=i64[3] {2, 2, 1}) "
           "%1, %2, %3 = split(%0, %s, axis=0) return %1, %2, %3 }",
       .stays = "(%a: T[2,n], %b: T[3,n]) { %0 = concat([%a, %b], axis=0) %s = constant(value=i64[2] {3, 2}) "
                "%1, %2 = split(%0, %s, axis=0) return %1 }"},
      {.name = "split-for-one-part",
       .match = split,
       .replace = {"slice(x)", [=](const Match& m) { return take(*stretch_of(m.root())); }},
       .when = {ranked,
                {"the sizes are known",
                 [=](const Match& m) {
                   const auto stretch = stretch_of(m.root());
                   return stretch && stretch->of.dim(stretch->axis).is_constant();
                 }},
                {"no other part is used",
                 [=](const Match& m) {
                   const std::vector<Value> parts = m.node(split).results();
                   return std::all_of(parts.begin(), parts.end(),
                                      [&](Value part) { return part == m.root() || part.use_count() == 0; });
                 }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%x: T[n,5]) { %s = constant(value=i64[2] {2, 3}) %0, %y = split(%x, %s, axis=-1) return %y }",
       .stays = "(%x: T[n,5]) { %s = constant(value=i64[2] {2, 3}) %0, %1 = split(%x, %s, axis=1) "
                "return %0, %1 }"},
      {.name = "gather-in-steps",
       .match = gather,
       .replace = {"slice(x)",
                   [=](const Match& m) {
                     const Node& node = m.node(gather);
                     return view(cut(node.in("x"), *cuts_of_gather(node)), node.result().shape());
                   }},
       .when = {ranked,
                {"x is no vector", [=](const Match& m) { return m.node(gather).in("x").rank() > 1; }},
                {"the indices are known, and step evenly",
                 [=](const Match& m) { return cuts_of_gather(m.node(gather)).has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,9]) { %i = constant(value=i64[2,2] {1, 3, 5, -2}) %y = gather(%x, %i, axis=1) "
                "%j = constant(value=i64[] {-1}) %z = gather(%x, %j, axis=-1) return %y, %z }",
       .stays =
           "(%x: T[n,9]) { %i = constant(value=i64[3] {1, 2, 4}) %y = gather(%x, %i, axis=1) return %y }"},
  };
}

Rules whole_rules() {
  const Pattern concat = result_of("concat"), pad = result_of("pad"), tile = result_of("tile");
  const Condition ranked = {"the ranks are known", [](const Match& m) {
                              return is_ranked(m.root()) && is_ranked(m.root().node()->ins("x").front());
                            }};
  return {
      {.name = "simpler-concat",
       .match = concat,
       .replace = {"concat(parts)", [=](const Match& m) { return simplified_concat(m.node(concat)); }},
       .when = {ranked},
       .numerics = Numerics::BitExact,
       .fires =
           "(%x: T[6,n], %y: T[0,n], %z: T[2,n], %w: T[n]) { %s = constant(value=i64[2] {2, 4}) "
           "%0, %1 = split(%x, %s, axis=0) %2 = concat([%y, %0, %1], axis=0) "
           "%a = constant(value=i64[1] {0}) %b = constant(value=i64[1] {3}) %c = constant(value=i64[1] {5}) "
           "%3 = slice(%x, %a, %b, axes=[0]) %4 = slice(%x, %b, %c, axes=[0]) "
           "%5 = concat([%3, %4], axis=0) %6 = concat([%z, %5, %z], axis=0) "
           "%d = constant(value=T[1] {1}) %e = constant(value=T[2] {2, 3}) "
           "%7 = concat([%w, %d, %e, %w, %d], axis=0) return %2, %6, %7 }",
       .stays = "(%x: T[6,n]) { %s = constant(value=i64[2] {2, 4}) %0, %1 = split(%x, %s, axis=0) "
                "%2 = concat([%1, %0], axis=0) %c = constant(value=T[2] {1, 2}) "
                "%3 = concat([%c, %c, %c], axis=0) return %2, %3 }"},
      {.name = "pad-nothing",
       .match = pad,
       .replace = {"x", [=](const Match& m) { return m.node(pad).in("x"); }},
       .when = {{"all pads are 0", [=](const Match& m) { return adds_nothing(m.node(pad)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %p = constant(value=i64[2] {0, 0}) %y = pad(%x, %p, axes=[1]) return %y }",
       .stays = "(%x: T[n,m]) { %p = constant(value=i64[2] {1, -1}) %y = pad(%x, %p, axes=[1]) return %y }"},
      {.name = "tile-of-size-one",
       .match = tile,
       .replace = {"broadcast(x)", [=](const Match& m) { return tile_as_broadcast(m.node(tile)); }},
       .when = {ranked,
                {"only dimensions of size 1 are repeated",
                 [=](const Match& m) { return repeats_only_ones(m.node(tile)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1]) { %r = constant(value=i64[2] {1, 3}) %y = tile(%x, %r) "
                "%s = constant(value=i64[2] {1, 1}) %z = tile(%x, %s) return %y, %z }",
       .stays = "(%x: T[n,2]) { %r = constant(value=i64[2] {1, 3}) %y = tile(%x, %r) return %y }"},
  };
}

Rules make_rules() {
  const Rules parts = part_rules(), wholes = whole_rules();
  return joined({&parts, &wholes});
}

}  // namespace

const Rules& slice_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
