// rotary.cpp — rotary position embedding, written out: each number of the first half of x's last dimension is
// turned together with the one in its place in the second half.
#include "ops/rotary.h"

#include <algorithm>

#include "ops/reshape.h"
#include "rewrite/cut.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// x, if the value is the first or the second half of it along its last dimension.
Value whole_of(Value half, int64_t which) {
  if (half.is_input() || !half.shape().ranked())
    return {};
  const Node& node = *half.node();
  if (!node.is("slice") && !node.is("split"))
    return {};
  const Value x = node.in("x");
  const auto size = x.shape().ranked() && x.rank() > 0 ? x.dim(-1).constant() : std::nullopt;
  if (!size || half.rank() != x.rank() || half.dim(-1) * 2 != Dim(*size))
    return {};
  if (node.is("split")) {
    const int64_t axis = node.attr("axis");
    return (axis == -1 || axis == x.rank() - 1) && half.index() == which ? x : Value();
  }
  const auto cuts = known_cuts(node);
  const Cut wanted = {x.rank() - 1, which * *size / 2, (which + 1) * *size / 2};
  return cuts && *cuts == Cuts{wanted} ? x : Value();
}

bool are_halves(Value first, Value second) {
  const Value x = whole_of(first, 0);
  return x && x == whole_of(second, 1) && x.rank() == 4;
}

bool is_along_last(const Node& concat) {
  const int64_t axis = concat.attr("axis");
  return axis == -1 || axis == concat.result().rank() - 1;
}

// Whether it is [-second half of x, first half of x].
bool is_turned_by_90_degrees(Value turned, Value x) {
  const std::vector<Value> parts = turned.node()->ins("x");
  if (parts.size() != 2 || !is_along_last(*turned.node()) || parts[0].is_input() ||
      !parts[0].node()->is("neg"))
    return false;
  const Value second = parts[0].node()->in("x");
  return are_halves(parts[1], second) && whole_of(parts[1], 0) == x;
}

bool has_equal_halves(const Tensor& tensor) {
  if (tensor.rank() == 0 || tensor.extents().back() % 2 != 0)
    return false;
  const auto half = static_cast<size_t>(tensor.extents().back() / 2 * tensor.element_size());
  const std::span<const std::byte> bytes = tensor.bytes();
  for (size_t row = 0; row < bytes.size(); row += 2 * half)
    if (!std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(row),
                    bytes.begin() + static_cast<std::ptrdiff_t>(row + half),
                    bytes.begin() + static_cast<std::ptrdiff_t>(row + half)))
      return false;
  return true;
}

// Whether the second half of the last dimension is the first again: the value is a constant, or computed
// element by element of [f, f], or rows of such a value.
bool has_equal_halves(Value value) {
  while (!value.is_input()) {
    const Node& node = *value.node();
    if (node.is("constant"))
      return has_equal_halves(node.attr("value").as<Literal>().tensor());
    if (node.is("concat")) {
      const std::vector<Value> parts = node.ins("x");
      return parts.size() == 2 && parts[0] == parts[1] && is_along_last(node);
    }
    const bool scales = node.is("mul") && uniform_number(node.in("b"));
    const bool takes_rows =
        node.is("gather") && node.in("x").rank() == 2 && node.attr("axis").as<int64_t>() == 0;
    const bool adds_axes = node.is("unsqueeze") && provably_equal(value.dim(-1), node.in("x").dim(-1));
    if (node.is("cos") || node.is("sin") || node.is("cast") || takes_rows || adds_axes)
      value = node.in("x");
    else if (scales)
      value = node.in("a");
    else
      return false;
  }
  return false;
}

// Whether it broadcasts to x: [batch, heads, sequence, size] with as many angles, the same for all heads.
bool fits_to(Value angles, Value x, const Dim& count) {
  const int64_t rank = angles.shape().ranked() ? angles.rank() : 0;
  if (rank < 2 || rank > 4 || !provably_equal(angles.dim(-1), count) ||
      (angles.dim(-2) != Dim(1) && !provably_equal(angles.dim(-2), x.dim(-2))))
    return false;
  return (rank < 3 || angles.dim(-3) == Dim(1)) &&
         (rank < 4 || angles.dim(0) == Dim(1) || provably_equal(angles.dim(0), x.dim(0)));
}

// As the op takes them: [batch, sequence, half the size].
Value as_angles(Value value, int64_t half) {
  Value four = value;
  if (value.rank() == 2)
    four = unsqueeze(value, {0, 1});
  else if (value.rank() == 3)
    four = unsqueeze(value, {0});
  if (four.dim(3) != Dim(half))
    four = cut(four, {{3, 0, half}});
  return squeeze(four, {1});
}

// x cos + [-x₂, x₁] sin, with the cosines and sines of each angle twice.
Rule whole_rule() {
  const Pattern x = any("x"), cos = any("cos"), sin = any("sin"), turned = result_of("concat");
  const Condition fits = {"x is turned half by half", [=](const Match& m) {
                            const Value from = m[x];
                            return from.shape().ranked() && from.rank() == 4 &&
                                   is_turned_by_90_degrees(m[turned], from) &&
                                   fits_to(m[cos], from, from.dim(3)) && fits_to(m[sin], from, from.dim(3));
                          }};
  const Condition twice = {"each cosine and sine stands there twice", [=](const Match& m) {
                             return has_equal_halves(m[cos]) && has_equal_halves(m[sin]);
                           }};
  const auto make = [=](const Match& m) {
    const int64_t half = *m[x].dim(3).constant() / 2;
    const Value cosines = as_angles(m[cos], half);
    return rotary(m[x], cosines, as_angles(m[sin], half), false);
  };
  return {.name = "rotary",
          .match = x * cos + turned * sin,
          .replace = {"rotary(x, cos, sin)", make},
          .when = {is_ordinary_float(x), fits, twice},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[n,2,m,4], %f: T[1,1,m,2]) { %a = concat([%f, %f], axis=-1) %cos = cos(%a) "
              "%sin = sin(%a) %s = constant(value=i64[2] {2, 2}) %1, %2 = split(%x, %s, axis=3) "
              "%3 = neg(%2) %4 = concat([%3, %1], axis=3) %5 = mul(%x, %cos) %6 = mul(%4, %sin) "
              "%y = add(%5, %6) return %y }",
          .stays =
              "(%x: T[n,2,m,4], %f: T[1,1,m,2], %g: T[1,1,m,2]) { %a = concat([%f, %g], axis=-1) "
              "%cos = cos(%a) %sin = sin(%a) %s = constant(value=i64[2] {2, 2}) "
              "%1, %2 = split(%x, %s, axis=3) %3 = neg(%2) %4 = concat([%3, %1], axis=3) "
              "%5 = mul(%x, %cos) %6 = mul(%4, %sin) %y = add(%5, %6) return %y }"};
}

// [x₁ cos - x₂ sin, x₂ cos + x₁ sin]
Rule halves_rule() {
  const Pattern first = any("x₁"), second = any("x₂"), cos = any("cos"), sin = any("sin");
  const Pattern turned = op("concat", {{"x", first * cos - second * sin}, {"x", second * cos + first * sin}});
  const Condition fits = {"x₁ and x₂ are the halves of x", [=](const Match& m) {
                            const Value a = m[first];
                            return is_along_last(m.node(turned)) && are_halves(a, m[second]) &&
                                   fits_to(m[cos], a, a.dim(3)) && fits_to(m[sin], a, a.dim(3));
                          }};
  const auto make = [=](const Match& m) {
    const int64_t half = *m[first].dim(3).constant();
    const Value cosines = as_angles(m[cos], half);
    return rotary(whole_of(m[first], 0), cosines, as_angles(m[sin], half), false);
  };
  return {.name = "rotary-of-halves",
          .match = turned,
          .replace = {"rotary(x, cos, sin)", make},
          .when = {is_ordinary_float(first), fits},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[n,2,m,4], %cos: T[m,2], %sin: T[m,2]) { %s = constant(value=i64[2] {2, 2}) "
              "%1, %2 = split(%x, %s, axis=3) %3 = mul(%1, %cos) %4 = mul(%2, %sin) %5 = sub(%3, %4) "
              "%6 = mul(%2, %cos) %7 = mul(%1, %sin) %8 = add(%6, %7) %y = concat([%5, %8], axis=3) "
              "return %y }",
          .stays =
              "(%x: T[n,2,m,4], %cos: T[m,2], %sin: T[m,2]) { %s = constant(value=i64[2] {2, 2}) "
              "%1, %2 = split(%x, %s, axis=3) %3 = mul(%1, %cos) %4 = mul(%2, %sin) %5 = sub(%3, %4) "
              "%6 = mul(%1, %cos) %7 = mul(%2, %sin) %8 = add(%6, %7) %y = concat([%5, %8], axis=3) "
              "return %y }"};
}

}  // namespace

const Rules& rotary_rules() {
  static const Rules rules = {whole_rule(), halves_rule()};
  return rules;
}

}  // namespace tenon
