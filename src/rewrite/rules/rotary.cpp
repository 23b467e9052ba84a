// rotary.cpp — rotary position embedding, written out: numbers along the last dimension of x are turned in
// pairs. A pair is a number of the first half and the one in its place in the second, or two neighbours.
#include "ops/rotary.h"

#include <algorithm>

#include "ops/reshape.h"
#include "ops/shapes.h"
#include "rewrite/cut.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

enum class Pairs : uint8_t { Halves, Neighbours };

bool has_dimensions(Value value) { return is_ranked(value) && value.rank() > 0; }

bool is_along_last(const Node& node, int64_t rank) {
  const int64_t axis = node.attr("axis");
  return axis == -1 || axis == rank - 1;
}

// Whether the values have the same sizes but in their last dimensions, as many of them as are said.
bool have_same_front(Value a, int64_t last_of_a, Value b, int64_t last_of_b) {
  if (a.rank() - last_of_a != b.rank() - last_of_b)
    return false;
  for (int64_t axis = 0; axis < a.rank() - last_of_a; ++axis)
    if (!provably_equal(a.dim(axis), b.dim(axis)))
      return false;
  return true;
}

// --- which numbers of a tensor ---

// Numbers along the last dimension of a tensor: start, start + step, and so on.
struct Lanes {
  Value of;
  int64_t start, step, count;

  friend bool operator==(const Lanes&, const Lanes&) = default;
};

std::optional<Lanes> lanes_of_part(Value value) {
  const auto count = value.dim(-1).constant();
  const Value x = value.node()->in("x");
  if (!count || !has_dimensions(x) || !x.dim(-1).is_constant())
    return std::nullopt;
  if (value.node()->is("slice")) {
    const auto cuts = known_cuts(*value.node());
    if (!cuts || cuts->size() != 1 || cuts->front().axis != x.rank() - 1 || cuts->front().step < 1)
      return std::nullopt;
    return Lanes{x, cuts->front().start, cuts->front().step, *count};
  }
  const auto sizes = value.node()->in("sizes").known_ints();
  if (!sizes || !is_along_last(*value.node(), x.rank()))
    return std::nullopt;
  int64_t start = 0;
  for (int64_t i = 0; i < value.index(); ++i)
    start += (*sizes)[static_cast<size_t>(i)];
  return Lanes{x, start, 1, *count};
}

// The first or second of each pair of neighbours: [n, 6] seen as [n, 3, 2], of which one column is taken.
std::optional<Lanes> lanes_of_column(Value value) {
  const Value column = value.node()->in("x");
  if (!has_dimensions(column) || (!maker(column, "slice") && !maker(column, "split")) ||
      column.dim(-1) != Dim(1))
    return std::nullopt;
  const auto lanes = lanes_of_part(column);
  if (!lanes || lanes->of.dim(-1) != Dim(2) || lanes->of.is_input() || !is_view(*lanes->of.node()))
    return std::nullopt;
  const Value x = lanes->of.node()->in("x");
  const auto count = value.dim(-1).constant();
  if (!count || !has_dimensions(x) || x.dim(-1) != Dim(2 * *count) || !have_same_front(x, 1, lanes->of, 2) ||
      !have_same_front(x, 1, value, 1))
    return std::nullopt;
  return Lanes{x, lanes->start, 2, *count};
}

// The same of what the value is part of.
std::optional<Lanes> lanes_of_operand(Value value) {
  if (maker(value, "slice") || maker(value, "split"))
    return lanes_of_part(value);
  return !value.is_input() && is_view(*value.node()) ? lanes_of_column(value) : std::nullopt;
}

// The numbers that a value is, of all that it is part of: from itself on.
std::vector<std::pair<Value, Lanes>> lanes_of(Value value) {
  if (!has_dimensions(value) || !value.dim(-1).is_constant())
    return {};
  std::vector<std::pair<Value, Lanes>> all = {{value, {value, 0, 1, *value.dim(-1).constant()}}};
  for (auto inner = lanes_of_operand(value); inner; inner = lanes_of_operand(inner->of)) {
    for (auto& [part, lanes] : all)
      lanes = {inner->of, inner->start + inner->step * lanes.start, inner->step * lanes.step, lanes.count};
    all.emplace_back(inner->of, Lanes{inner->of, 0, 1, *inner->of.dim(-1).constant()});
  }
  return all;
}

struct Turning {
  Lanes of;  // all the numbers that are turned
  Pairs pairs;
};

// What two values are the firsts and the seconds of.
std::optional<Turning> turning_of(Value first, Value second) {
  const auto firsts = lanes_of(first), seconds = lanes_of(second);
  if (firsts.empty() || seconds.empty())
    return std::nullopt;
  const Lanes &a = firsts.front().second, &b = seconds.front().second;
  if (a.of != b.of || a.step != b.step || a.count != b.count)
    return std::nullopt;
  const Lanes both = {a.of, a.start, 1, 2 * a.count};
  if (a.step == 1 && b.start == a.start + a.count)
    return Turning{both, Pairs::Halves};
  if (a.step == 2 && b.start == a.start + 1)
    return Turning{both, Pairs::Neighbours};
  return std::nullopt;
}

// The value that is all these numbers: one that `part` is taken of, or else a slice.
Value whole_of(Value part, const Lanes& lanes) {
  for (const auto& [value, seen] : lanes_of(part))
    if (seen == lanes)
      return value;
  return cut(lanes.of, {{lanes.of.rank() - 1, lanes.start, lanes.start + lanes.count}});
}

// --- two values put together ---

// a and b of unsqueeze(a) and unsqueeze(b), put together along the last dimension, seen as if they took
// turns.
bool makes_neighbours(const Node& view, const Node& concat) {
  const Value all = concat.result(), y = view.result();
  return has_dimensions(all) && has_dimensions(y) && all.rank() > 1 && all.dim(-1) == Dim(2) &&
         is_along_last(concat, all.rank()) && have_same_front(all, 2, y, 1) &&
         provably_equal(y.dim(-1), all.dim(-2) * 2);
}

struct PutTogether {
  Value first, second;
  Pairs pairs;
};

std::optional<PutTogether> put_together(Value value) {
  if (const Node* concat = maker(value, "concat")) {
    const std::vector<Value> parts = concat->ins("x");
    return parts.size() == 2 && is_along_last(*concat, value.rank())
               ? std::optional(PutTogether{parts[0], parts[1], Pairs::Halves})
               : std::nullopt;
  }
  const Node* concat = is_view(*value.node()) ? maker(value.node()->in("x"), "concat") : nullptr;
  if (concat == nullptr || concat->ins("x").size() != 2 || !makes_neighbours(*value.node(), *concat))
    return std::nullopt;
  const Node *first = maker(concat->ins("x")[0], "unsqueeze"),
             *second = maker(concat->ins("x")[1], "unsqueeze");
  if (first == nullptr || second == nullptr)
    return std::nullopt;
  const Value a = first->in("x"), b = second->in("x");
  return has_dimensions(a) && has_dimensions(b) && have_same_front(a, 1, value, 1) &&
                 have_same_front(b, 1, value, 1)
             ? std::optional(PutTogether{a, b, Pairs::Neighbours})
             : std::nullopt;
}

// Whether `turned` is x turned by 90 degrees: the seconds of its pairs, negated, and the firsts.
std::optional<Pairs> pairs_turned_by_90_degrees(Value turned, Value x) {
  const auto parts = put_together(turned);
  const Node* negated = parts ? maker(parts->first, "neg") : nullptr;
  const auto turning = negated != nullptr ? turning_of(parts->second, negated->in("x")) : std::nullopt;
  const auto lanes = lanes_of(x);
  if (!turning || lanes.empty() || turning->pairs != parts->pairs || turning->of != lanes.front().second)
    return std::nullopt;
  return turning->pairs;
}

// --- angles ---

bool repeats(const Tensor& tensor, Pairs pairs) {
  if (tensor.rank() == 0 || tensor.extents().back() % 2 != 0)
    return false;
  const int64_t size = tensor.element_size() * (pairs == Pairs::Halves ? tensor.extents().back() / 2 : 1);
  const std::span<const std::byte> bytes = tensor.bytes();
  const auto count = static_cast<size_t>(size);
  for (size_t at = 0; at < bytes.size(); at += 2 * count)
    if (!std::ranges::equal(bytes.subspan(at, count), bytes.subspan(at + count, count)))
      return false;
  return true;
}

// Whether the two numbers along the last dimension are equal.
bool is_twice_the_same(Value value) {
  if (value.dim(-1) != Dim(2) || value.is_input())
    return false;
  if (const Node* broadcast = maker(value, "broadcast"))
    return has_dimensions(broadcast->in("x")) && broadcast->in("x").dim(-1) == Dim(1);
  const Node* concat = maker(value, "concat");
  return concat != nullptr && is_along_last(*concat, value.rank()) && concat->ins("x").size() == 2 &&
         concat->ins("x")[0] == concat->ins("x")[1];
}

// Where a node computes or moves numbers without regard to where they stand along the last dimension: what it
// takes them of.
Value before_last_dimension_matters(const Node& node) {
  if (node.is("cos") || node.is("sin") || node.is("cast"))
    return node.in("x");
  if (node.is("mul"))
    return uniform_number(node.in("b")) ? node.in("a") : Value();
  if (node.op().find_operand("x") == nullptr || node.ins("x").size() != 1 || !has_dimensions(node.in("x")))
    return {};
  const Value x = node.in("x"), y = node.result();
  if (node.is("gather"))
    return x.rank() > 1 && node.attr("axis").as<int64_t>() == 0 ? x : Value();
  if (node.is("slice") && !node.is_late("axes")) {
    const std::vector<int64_t>& axes = node.attr("axes");
    return std::none_of(axes.begin(), axes.end(),
                        [&](int64_t axis) { return axis == -1 || axis == x.rank() - 1; })
               ? x
               : Value();
  }
  const bool adds_axes = node.is("unsqueeze") || node.is("squeeze") || node.is("broadcast");
  return adds_axes && has_dimensions(y) && provably_equal(y.dim(-1), x.dim(-1)) ? x : Value();
}

// Whether each number along the last dimension stands there twice, as the pairs have it.
bool repeats(Value value, Pairs pairs) {
  while (has_dimensions(value) && !value.is_input()) {
    const Node& node = *value.node();
    if (node.is("constant"))
      return repeats(node.attr("value").as<Literal>().tensor(), pairs);
    if (node.is("concat") && is_along_last(node, value.rank()) && pairs == Pairs::Halves)
      return node.ins("x").size() == 2 && node.ins("x")[0] == node.ins("x")[1];
    if (node.is("concat")) {
      const std::vector<Value> parts = node.ins("x");
      return std::all_of(parts.begin(), parts.end(), [&](Value part) { return repeats(part, pairs); });
    }
    if (pairs == Pairs::Neighbours && is_twice_the_same(value))
      return true;
    if (pairs == Pairs::Neighbours && node.is("reshape") && has_dimensions(node.in("x")) &&
        node.in("x").rank() > 1 && is_twice_the_same(node.in("x")) &&
        provably_equal(value.dim(-1), node.in("x").dim(-2) * 2))
      return true;
    value = before_last_dimension_matters(node);
    if (!value)
      return false;
  }
  return false;
}

// Which dimension of x holds the heads: the other of the second and third is the sequence.
enum class Heads : int64_t { Second = 1, Third = 2 };

// Whether it broadcasts to x: [batch, heads, sequence, size] or [batch, sequence, heads, size] with as many
// angles, the same for all heads.
bool fits_to(Value angles, Value x, const Dim& count, Heads heads) {
  if (!has_dimensions(angles) || angles.rank() < 2 || angles.rank() > 4 ||
      !provably_equal(angles.dim(-1), count))
    return false;
  const int64_t skipped = 4 - angles.rank();
  for (int64_t axis = skipped; axis < 3; ++axis) {
    const Dim dim = angles.dim(axis - skipped);
    const bool may_vary = axis != static_cast<int64_t>(heads);
    if (dim != Dim(1) && (!may_vary || provably_different(dim, x.dim(axis))))
      return false;
  }
  return true;
}

std::optional<Heads> heads_of(Value cos, Value sin, Value x, const Dim& count) {
  for (Heads heads : {Heads::Second, Heads::Third})
    if (fits_to(cos, x, count, heads) && fits_to(sin, x, count, heads))
      return heads;
  return std::nullopt;
}

// As the op takes them: [batch, sequence, half the size].
Value as_angles(Value value, int64_t half, Pairs pairs, Heads heads) {
  Value four = value;
  if (value.rank() < 4)
    four = unsqueeze(value, value.rank() == 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  if (four.dim(3) != Dim(half))
    four = cut(four, {pairs == Pairs::Halves ? Cut{3, 0, half} : Cut{3, 0, 2 * half, 2}});
  return squeeze(four, {static_cast<int64_t>(heads)});
}

Value turn(Value x, Value cos, Value sin, Pairs pairs, Heads heads) {
  const int64_t half = *x.dim(3).constant() / 2;
  const Value cosines = as_angles(cos, half, pairs, heads), sines = as_angles(sin, half, pairs, heads);
  const bool interleaved = pairs == Pairs::Neighbours;
  if (heads == Heads::Second)
    return rotary(x, cosines, sines, interleaved);
  return transpose(rotary(transpose(x, {0, 2, 1, 3}), cosines, sines, interleaved), {0, 2, 1, 3});
}

// --- rules ---

// x cos + x′ sin, with x′ turned by 90 degrees, and the cosines and sines of each angle twice.
Rule whole_rule(std::string_view name, std::string_view makes_pairs, std::string_view fires,
                std::string_view stays) {
  const Pattern x = any("x"), cos = any("cos"), sin = any("sin"), turned = result_of(makes_pairs);
  const auto pairs_of = [=](const Match& m) { return pairs_turned_by_90_degrees(m[turned], m[x]); };
  const auto heads_in = [=](const Match& m) { return heads_of(m[cos], m[sin], m[x], m[x].dim(3)); };
  return {.name = name,
          .match = x * cos + turned * sin,
          .replace = {"rotary(x, cos, sin)",
                      [=](const Match& m) { return turn(m[x], m[cos], m[sin], *pairs_of(m), *heads_in(m)); }},
          .when = {is_ordinary_float(x),
                   {"x is turned by 90 degrees",
                    [=](const Match& m) {
                      return has_dimensions(m[x]) && m[x].rank() == 4 && pairs_of(m) && heads_in(m);
                    }},
                   {"each cosine and sine stands there twice",
                    [=](const Match& m) {
                      return repeats(m[cos], *pairs_of(m)) && repeats(m[sin], *pairs_of(m));
                    }}},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

Rules whole_rules() {
  return {
      whole_rule("rotary", "concat",
                 "(%x: T[n,2,m,4], %f: T[1,1,m,2]) { %a = concat([%f, %f], axis=-1) %cos = cos(%a) "
                 "%sin = sin(%a) %s = constant(value=i64[2] {2, 2}) %1, %2 = split(%x, %s, axis=3) "
                 "%3 = neg(%2) %4 = concat([%3, %1], axis=3) %5 = mul(%x, %cos) %6 = mul(%4, %sin) "
                 "%y = add(%5, %6) return %y }",
                 "(%x: T[n,2,m,4], %f: T[1,1,m,2], %g: T[1,1,m,2]) { %a = concat([%f, %g], axis=-1) "
                 "%cos = cos(%a) %sin = sin(%a) %s = constant(value=i64[2] {2, 2}) "
                 "%1, %2 = split(%x, %s, axis=3) %3 = neg(%2) %4 = concat([%3, %1], axis=3) "
                 "%5 = mul(%x, %cos) %6 = mul(%4, %sin) %y = add(%5, %6) return %y }"),
      whole_rule(
          "rotary-interleaved", "reshape",
          "(%x: T[n,m,2,4], %f: T[1,m,1,2]) { %u = unsqueeze(%f, axes=[4]) %t = constant(value=i64[1] {2}) "
          "%v = broadcast(%u, %t) %r = constant(value=i64[4] {1, -1, 1, 4}) %a = reshape(%v, %r) %cos = "
          "cos(%a) "
          "%sin = sin(%a) %0 = constant(value=i64[1] {0}) %1 = constant(value=i64[1] {1}) "
          "%4 = constant(value=i64[1] {4}) %even = slice(%x, %0, %4, %t, axes=[3]) "
          "%odd = slice(%x, %1, %4, %t, axes=[3]) %2 = neg(%odd) %b = unsqueeze(%2, axes=[4]) "
          "%c = unsqueeze(%even, axes=[4]) %d = concat([%b, %c], axis=4) %s = shape(%x) %e = reshape(%d, %s) "
          "%5 = mul(%x, %cos) %6 = mul(%e, %sin) %y = add(%5, %6) return %y }",
          "(%x: T[n,m,2,4], %f: T[1,m,1,2]) { %a = concat([%f, %f], axis=-1) %cos = cos(%a) "
          "%t = constant(value=i64[1] {2}) "
          "%sin = sin(%a) %0 = constant(value=i64[1] {0}) %1 = constant(value=i64[1] {1}) "
          "%4 = constant(value=i64[1] {4}) %even = slice(%x, %0, %4, %t, axes=[3]) "
          "%odd = slice(%x, %1, %4, %t, axes=[3]) %2 = neg(%odd) %b = unsqueeze(%2, axes=[4]) "
          "%c = unsqueeze(%even, axes=[4]) %d = concat([%b, %c], axis=4) %s = shape(%x) %e = reshape(%d, %s) "
          "%5 = mul(%x, %cos) %6 = mul(%e, %sin) %y = add(%5, %6) return %y }")};
}

// The firsts and seconds of all pairs turned by themselves, and put together again.
Rule parts_rule(std::string_view name, const Pattern& root, const Pattern& first, const Pattern& second,
                const Pattern& cos, const Pattern& sin, std::string_view fires, std::string_view stays) {
  const auto turning_in = [=](const Match& m) { return turning_of(m[first], m[second]); };
  const auto heads_in = [=](const Match& m) { return heads_of(m[cos], m[sin], m[first], m[first].dim(3)); };
  return {.name = name,
          .match = root,
          .replace = {"rotary(x, cos, sin)",
                      [=](const Match& m) {
                        const Turning turning = *turning_in(m);
                        return turn(whole_of(m[first], turning.of), m[cos], m[sin], turning.pairs,
                                    *heads_in(m));
                      }},
          .when = {is_ordinary_float(first),
                   {"x₁ and x₂ are the pairs of x",
                    [=](const Match& m) {
                      if (!has_dimensions(m[first]) || m[first].rank() != 4)
                        return false;
                      const auto turning = turning_in(m);
                      const auto together = put_together(m.root());
                      return turning && together && turning->pairs == together->pairs && heads_in(m);
                    }}},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

// [x₁ cos - x₂ sin, x₂ cos + x₁ sin]
Rules parts_rules() {
  const Pattern first = any("x₁"), second = any("x₂"), cos = any("cos"), sin = any("sin");
  const Pattern a = first * cos - second * sin, b = second * cos + first * sin;
  const Pattern halves = op("concat", {{"x", a}, {"x", b}});
  const Pattern neighbours =
      op("reshape", {{"x", op("concat", {{"x", unary("unsqueeze", a)}, {"x", unary("unsqueeze", b)}})},
                     {"shape", any("shape")}});
  return {parts_rule("rotary-of-halves", halves, first, second, cos, sin,
                     "(%x: T[n,2,m,4], %cos: T[m,2], %sin: T[m,2]) { %s = constant(value=i64[2] {2, 2}) "
                     "%1, %2 = split(%x, %s, axis=3) %3 = mul(%1, %cos) %4 = mul(%2, %sin) %5 = sub(%3, %4) "
                     "%6 = mul(%2, %cos) %7 = mul(%1, %sin) %8 = add(%6, %7) %y = concat([%5, %8], axis=3) "
                     "return %y }",
                     "(%x: T[n,2,m,4], %cos: T[m,2], %sin: T[m,2]) { %s = constant(value=i64[2] {2, 2}) "
                     "%1, %2 = split(%x, %s, axis=3) %3 = mul(%1, %cos) %4 = mul(%2, %sin) %5 = sub(%3, %4) "
                     "%6 = mul(%1, %cos) %7 = mul(%2, %sin) %8 = add(%6, %7) %y = concat([%5, %8], axis=3) "
                     "return %y }"),
          parts_rule("rotary-of-neighbours", neighbours, first, second, cos, sin,
                     "(%x: T[n,m,2,4], %cos: T[m,1,2], %sin: T[m,1,2]) { "
                     "%r = constant(value=i64[5] {0, 0, 2, 2, 2}) %0 = reshape(%x, %r, allow_zero=false) "
                     "%s = constant(value=i64[2] {1, 1}) %a, %b = split(%0, %s, axis=4) "
                     "%1 = squeeze(%a, axes=[4]) %2 = squeeze(%b, axes=[4]) %3 = mul(%1, %cos) "
                     "%4 = mul(%2, %sin) %5 = sub(%3, %4) %6 = mul(%2, %cos) %7 = mul(%1, %sin) "
                     "%8 = add(%6, %7) %c = unsqueeze(%5, axes=[4]) %d = unsqueeze(%8, axes=[4]) "
                     "%e = concat([%c, %d], axis=4) %f = shape(%x) %y = reshape(%e, %f) return %y }",
                     "(%x: T[n,m,2,4], %cos: T[m,1,2], %sin: T[m,1,2]) { "
                     "%s = constant(value=i64[2] {2, 2}) %1, %2 = split(%x, %s, axis=3) %3 = mul(%1, %cos) "
                     "%4 = mul(%2, %sin) %5 = sub(%3, %4) %6 = mul(%2, %cos) %7 = mul(%1, %sin) "
                     "%8 = add(%6, %7) %c = unsqueeze(%5, axes=[4]) %d = unsqueeze(%8, axes=[4]) "
                     "%e = concat([%c, %d], axis=4) %f = shape(%x) %y = reshape(%e, %f) return %y }")};
}

// The first numbers of x turned, and the others as they are: the op leaves them by itself.
Rule partial_rule() {
  const Pattern first = any("x₁"), rest = any("x₂"), cos = any("cos"), sin = any("sin");
  const Pattern turned = op("rotary", {{"x", first}, {"cos", cos}, {"sin", sin}}).once();
  const Pattern all = op("concat", {{"x", turned}, {"x", rest}});
  return {.name = "rotary-of-first",
          .match = all,
          .replace = {"rotary(x, cos, sin)",
                      [=](const Match& m) {
                        return rotary(lanes_of(m[first]).front().second.of, m[cos], m[sin],
                                      m.node(turned).attr("interleaved"));
                      }},
          .when = {{"x₁ is all that is turned, and x₂ the rest of x",
                    [=](const Match& m) {
                      const auto turns = lanes_of(m[first]), stays = lanes_of(m[rest]);
                      if (turns.empty() || stays.empty() || !is_along_last(m.node(all), m.root().rank()))
                        return false;
                      const Lanes &a = turns.front().second, &b = stays.front().second;
                      return a.of == b.of && a.start == 0 && a.step == 1 && b.step == 1 &&
                             b.start == a.count && a.of.dim(-1) == Dim(a.count + b.count) &&
                             m[cos].dim(2) * 2 == Dim(a.count);
                    }}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2,m,7], %cos: T[1,m,2], %sin: T[1,m,2]) { %s = constant(value=i64[2] {4, 3}) "
              "%1, %2 = split(%x, %s, axis=3) %3 = rotary(%1, %cos, %sin, interleaved=true) "
              "%y = concat([%3, %2], axis=-1) return %y }",
          .stays =
              "(%x: T[n,2,m,8], %cos: T[1,m,2], %sin: T[1,m,2]) { %s = constant(value=i64[2] {5, 3}) "
              "%1, %2 = split(%x, %s, axis=3) %3 = rotary(%1, %cos, %sin) "
              "%y = concat([%3, %2], axis=-1) return %y }"};
}

Rules make_rules() {
  const Rules wholes = whole_rules(), parts = parts_rules(), partial = {partial_rule()};
  return joined({&wholes, &parts, &partial});
}

}  // namespace

const Rules& rotary_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
