// axiom.cpp — equalities that make nothing better by themselves, but what stands beside it: for equality
// saturation alone, which weighs what comes of them. Most are among those that TASO and tensat take for
// granted.
#include <algorithm>

#include "ops/binary.h"
#include "ops/layer.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "rewrite/rules/applied.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// What a kind of product calls its factors, and the axis of each along which the results of several products
// of one factor lie beside each other; from the end where it is negative.
struct Factors {
  std::string_view x, w;
  int64_t x_axis, w_axis;            // of the factors
  int64_t axis_of_x, axis_of_w;      // of the result
  int64_t summed_of_x, summed_of_w;  // the axes that are summed over
};

// Nothing for a node that is no product, or for one of vectors, of groups or with a bias.
std::optional<Factors> factors_of(Value product) {
  if (product.is_input() || !product.node()->late_names().empty())
    return std::nullopt;
  const Node& node = *product.node();
  if (node.is("matmul") && is_ranked(node.in("a")) && is_ranked(node.in("b")) && node.in("a").rank() > 1 &&
      node.in("b").rank() > 1) {
    const int64_t a = node.attr("transpose_a").as<bool>() ? 1 : 0,
                  b = node.attr("transpose_b").as<bool>() ? 1 : 0;
    return Factors{"a", "b", -2 + a, -1 - b, -2, -1, -1 - a, -2 + b};
  }
  if (node.is("linear") && !node.has("bias") && is_ranked(node.in("x")) && node.in("x").rank() > 1)
    return Factors{"x", "weight", -2, 0, -2, -1, -1, 1};
  if (node.is("conv") && node.attr("groups").as<int64_t>() == 1 && is_ranked(node.in("x")))
    return Factors{"x", "w", 0, 0, 0, 1, 1, 1};
  return std::nullopt;
}

bool are_alike(Value first, Value second) {
  return factors_of(first) && factors_of(second) && &first.node()->op() == &second.node()->op() &&
         first.node()->attributes() == second.node()->attributes() && first.dtype() == second.dtype() &&
         first.rank() == second.rank();
}

Value factor(Value product, std::string_view name) { return product.node()->in(name); }

// Whether two values can be put together along an axis.
bool fit_along(Value a, Value b, int64_t axis) {
  if (!is_ranked(a) || !is_ranked(b) || a.rank() != b.rank() || a.dtype() != b.dtype())
    return false;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != axis && i - a.rank() != axis && !provably_equal(a.dim(i), b.dim(i)))
      return false;
  return true;
}

Value with_factors(Value product, Value x, Value w) {
  const Factors factors = *factors_of(product);
  const Node& node = *product.node();
  return x.graph().create(node.op(), {{factors.x, x}, {factors.w, w}}, node.attributes())->result();
}

int64_t axis_from_start(const Node& concat) {
  return checked_axis("concat", concat.attr("axis"), concat.result().rank());
}

// Whether all parts of a concat are products that share the factor of one name, put together along the axis
// on which the other lies.
bool share(const Node& concat, bool is_x) {
  const std::vector<Value> parts = concat.ins("x");
  if (!is_ranked(concat.result()) || parts.size() < 2)
    return false;
  for (Value part : parts) {
    if (!are_alike(parts.front(), part))
      return false;
    const Factors factors = *factors_of(part);
    const std::string_view shared = is_x ? factors.x : factors.w, other = is_x ? factors.w : factors.x;
    const int64_t along = is_x ? factors.axis_of_w : factors.axis_of_x;
    if (factor(part, shared) != factor(parts.front(), shared) ||
        axis_from_start(concat) != (along < 0 ? along + part.rank() : along) ||
        !fit_along(factor(part, other), factor(parts.front(), other), is_x ? factors.w_axis : factors.x_axis))
      return false;
  }
  return true;
}

Value product_of_concat(const Node& concat, bool shares_x) {
  const std::vector<Value> parts = concat.ins("x");
  const Factors factors = *factors_of(parts.front());
  std::vector<Value> others;
  for (Value part : parts)
    others.push_back(factor(part, shares_x ? factors.w : factors.x));
  const Value together = tenon::concat(others, shares_x ? factors.w_axis : factors.x_axis);
  return shares_x ? with_factors(parts.front(), factor(parts.front(), factors.x), together)
                  : with_factors(parts.front(), together, factor(parts.front(), factors.w));
}

// The two terms of a sum of products of one kind and type; nothing where they are not.
bool are_terms(const Match& m, const Pattern& a, const Pattern& b) {
  return are_alike(m[a], m[b]) && m[a].type() == m.root().type() && m[b].type() == m.root().type();
}

bool shares_factor(const Match& m, const Pattern& a, const Pattern& b, bool is_x) {
  if (!are_terms(m, a, b))
    return false;
  const Factors factors = *factors_of(m[a]);
  const std::string_view shared = is_x ? factors.x : factors.w, other = is_x ? factors.w : factors.x;
  return factor(m[a], shared) == factor(m[b], shared) &&
         factor(m[a], other).type() == factor(m[b], other).type();
}

bool can_join(const Match& m, const Pattern& a, const Pattern& b) {
  if (!are_terms(m, a, b))
    return false;
  const Factors factors = *factors_of(m[a]);
  return fit_along(factor(m[a], factors.x), factor(m[b], factors.x), factors.summed_of_x) &&
         fit_along(factor(m[a], factors.w), factor(m[b], factors.w), factors.summed_of_w);
}

Value joined_product(const Match& m, const Pattern& a, const Pattern& b) {
  const Factors factors = *factors_of(m[a]);
  const Value x = concat({factor(m[a], factors.x), factor(m[b], factors.x)}, factors.summed_of_x);
  const Value w = concat({factor(m[a], factors.w), factor(m[b], factors.w)}, factors.summed_of_w);
  return with_factors(m[a], x, w);
}

Value sum_of_factors(const Match& m, const Pattern& a, const Pattern& b, bool shares_x) {
  const Factors factors = *factors_of(m[a]);
  const Value x = factor(m[a], factors.x), w = factor(m[a], factors.w);
  return shares_x ? with_factors(m[a], x, w + factor(m[b], factors.w))
                  : with_factors(m[a], x + factor(m[b], factors.x), w);
}

bool are_one_function(const Node& concat) {
  const std::vector<Value> parts = concat.ins("x");
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [&](Value part) {
           return !part.is_input() && is_same_function(*parts.front().node(), *part.node());
         });
}

Value function_of_concat(const Node& concat) {
  std::vector<Value> operands;
  for (Value part : concat.ins("x"))
    operands.push_back(applied_to(*part.node()));
  return apply_to(*concat.ins("x").front().node(), tenon::concat(operands, concat.attr("axis")));
}

// Of a sum, product or difference of something and a fixed value that varies along an axis of the result as
// the result does: the axis of the fixed value. Nothing where it is not so.
std::optional<int64_t> axis_of_fixed(Value value, int64_t axis) {
  if (value.is_input() || !(value.node()->is("add") || value.node()->is("mul") || value.node()->is("sub")))
    return std::nullopt;
  const Value x = value.node()->in("a"), fixed = value.node()->in("b");
  if (!is_ranked(fixed) || !is_fixed(fixed) || is_fixed(x) || x.type() != value.type())
    return std::nullopt;
  const int64_t along = axis - (value.rank() - fixed.rank());
  return along >= 0 && provably_equal(fixed.dim(along), value.dim(axis)) ? std::optional(along)
                                                                         : std::nullopt;
}

bool have_fixed_beside(const Node& concat) {
  if (!is_ranked(concat.result()))
    return false;
  const std::vector<Value> parts = concat.ins("x");
  const int64_t axis = axis_from_start(concat);
  const auto along = axis_of_fixed(parts.front(), axis);
  return parts.size() > 1 && along && std::all_of(parts.begin(), parts.end(), [&](Value part) {
           return axis_of_fixed(part, axis) == along && &part.node()->op() == &parts.front().node()->op() &&
                  fit_along(part.node()->in("b"), parts.front().node()->in("b"), *along);
         });
}

Value concat_beside_fixed(const Node& concat) {
  const std::vector<Value> parts = concat.ins("x");
  const int64_t axis = axis_from_start(concat);
  std::vector<Value> values, fixed;
  for (Value part : parts) {
    values.push_back(part.node()->in("a"));
    fixed.push_back(part.node()->in("b"));
  }
  const Value all = tenon::concat(values, axis),
              beside = tenon::concat(fixed, *axis_of_fixed(parts.front(), axis));
  return all.graph().create(parts.front().node()->op(), {{"a", all}, {"b", beside}})->result();
}

// --- transposes ---

using Permutation = std::vector<int64_t>;

// How all of these are transposed that are not single numbers; nothing where one is transposed otherwise.
std::optional<Permutation> permutation_of_all(const std::vector<Value>& values, int64_t rank) {
  std::optional<Permutation> permutation;
  for (Value value : values) {
    if (!is_ranked(value))
      return std::nullopt;
    if (value.shape().element_count() == Dim(1) && value.rank() <= 1 && is_fixed(value))
      continue;
    const Node* transpose = maker(value, "transpose");
    if (transpose == nullptr || value.rank() != rank)
      return std::nullopt;
    const Permutation& of_this = transpose->attr("permutation");
    if (permutation && *permutation != of_this)
      return std::nullopt;
    permutation = of_this;
  }
  return permutation;
}

std::optional<Permutation> permutation_of_operands(const Node& node) {
  const bool is_concat = node.is("concat");
  if ((!is_concat && !node.op().traits.elementwise) || node.op().traits.random || node.result_count() != 1 ||
      !node.late_names().empty() || !is_ranked(node.result()))
    return std::nullopt;
  return permutation_of_all(node.operands(), node.result().rank());
}

Value transpose_of(const Node& node) {
  const Permutation permutation = *permutation_of_operands(node);
  const auto before = [](Value value) {
    return maker(value, "transpose") != nullptr ? value.node()->in("x") : value;
  };
  if (!node.is("concat"))
    return transpose(node.graph().copy_node(node, before)->result(), permutation);
  std::vector<Value> parts;
  for (Value part : node.ins("x"))
    parts.push_back(before(part));
  return transpose(tenon::concat(parts, permutation[static_cast<size_t>(axis_from_start(node))]),
                   permutation);
}

std::set<std::string, std::less<>> elementwise_and_concat() {
  std::set<std::string, std::less<>> names = {"concat"};
  for (const OpDef* op : registered_ops())
    if (op->traits.elementwise)
      names.emplace(op->name);
  return names;
}

// The sum of two linear layers with biases, or of one without.
Value joined_layers(const Match& m, const Pattern& a, const Pattern& b) {
  const Node &first = m.node(a), &second = m.node(b);
  const Value x = concat({first.in("x"), second.in("x")}, -1);
  const Value w = concat({first.in("weight"), second.in("weight")}, 1);
  const Value p = first.in("bias"), q = second.in("bias");
  return linear(x, w, p && q ? p + q : p ? p : q);
}

Rules make_rules() {
  const Pattern concat = result_of("concat");
  const Pattern anything = result_of("elementwise or concat", elementwise_and_concat());
  const Pattern a = any("a"), b = any("b"), c = any("c"), x = any("x"), y = any("y"), sum = a + b;
  const Pattern layer = result_of("linear", {"linear"}), other = result_of("linear", {"linear"});
  const Pattern inner = op("matmul", {{"a", a}, {"b", b}}), left = op("matmul", {{"a", inner}, {"b", c}});
  const Pattern tail = op("matmul", {{"a", b}, {"b", c}}), right = op("matmul", {{"a", a}, {"b", tail}});
  const auto plain = [](const Pattern& outer, const Pattern& within) {
    return Condition{"nothing is transposed, and all are matrices or stacks of them", [=](const Match& m) {
                       for (const Pattern& each : {outer, within}) {
                         const Node& node = m.node(each);
                         if (!factors_of(m[each]) || node.attr("transpose_a").as<bool>() ||
                             node.attr("transpose_b").as<bool>())
                           return false;
                       }
                       return is_float(m.root().dtype());
                     }};
  };
  const Condition floats = {"they are floats",
                            [](const Match& m) { return is_ranked(m.root()) && is_float(m.root().dtype()); }};
  return {
      {.name = "concat-of-functions",
       .match = concat,
       .replace = {"f(concat(x))", [=](const Match& m) { return function_of_concat(m.node(concat)); }},
       .when = {is_not_fixed(concat),
                {"all parts are one function of something",
                 [=](const Match& m) { return are_one_function(m.node(concat)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%a: T[n,2], %b: T[n,3]) { %c = constant(value=T[] {1}) %0 = max(%a, %c) %1 = max(%b, %c) "
                "%y = concat([%0, %1], axis=-1) return %y, %0 }",
       .stays = "(%a: T[n,2], %b: T[n,3]) { %c = constant(value=T[] {1}) %0 = max(%a, %c) %1 = min(%b, %c) "
                "%y = concat([%0, %1], axis=-1) return %y, %0 }",
       .for_saturation = true},
      {.name = "concat-of-shifted",
       .match = concat,
       .replace = {"f(concat(x), concat(c))",
                   [=](const Match& m) { return concat_beside_fixed(m.node(concat)); }},
       .when = {{"all parts are sums, products or differences with fixed values that vary along the axis",
                 [=](const Match& m) { return have_fixed_beside(m.node(concat)); }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%a: T[n,2], %b: T[n,3]) { %c = constant(value=T[2] {1, 2}) %d = constant(value=T[3] {1, 2, 1}) "
           "%0 = add(%a, %c) %1 = add(%b, %d) %y = concat([%0, %1], axis=-1) return %y }",
       .stays =
           "(%a: T[n,2], %b: T[n,2]) { %c = constant(value=T[2] {1, 2}) %d = constant(value=T[2] {2, 1}) "
           "%0 = add(%a, %c) %1 = add(%b, %d) %y = concat([%0, %1], axis=0) return %y }",
       .for_saturation = true},
      {.name = "concat-of-products",
       .match = concat,
       .replace = {"product(x, concat(w))",
                   [=](const Match& m) { return product_of_concat(m.node(concat), true); }},
       .when = {{"all parts are products of one value, beside each other",
                 [=](const Match& m) { return share(m.node(concat), true); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: f32[2,3,4,4], %w: f32[5,3,1,1], %v: f32[2,3,1,1], %a: f32[n,3], %b: f32[3,2], %c: "
                "f32[3,4]) { "
                "%0 = conv(%x, %w, pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]) "
                "%1 = conv(%x, %v, pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]) "
                "%y = concat([%0, %1], axis=1) %2 = matmul(%a, %b) %3 = matmul(%a, %c) "
                "%z = concat([%2, %3], axis=-1) return %y, %z }",
       .stays = "(%a: f32[n,3], %b: f32[3,2], %c: f32[3,2]) { %2 = matmul(%a, %b) %3 = matmul(%a, %c) "
                "%z = concat([%2, %3], axis=0) return %z }",
       .for_saturation = true},
      {.name = "concat-of-products-by-one",
       .match = concat,
       .replace = {"product(concat(x), w)",
                   [=](const Match& m) { return product_of_concat(m.node(concat), false); }},
       .when = {{"all parts are products by one factor, one after the other",
                 [=](const Match& m) { return share(m.node(concat), false); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%a: f32[n,3], %b: f32[m,3], %w: f32[5,3]) { %0 = linear(%a, %w) %1 = linear(%b, %w) "
                "%y = concat([%0, %1], axis=0) return %y }",
       .stays = "(%a: f32[n,3], %b: f32[n,3], %w: f32[5,3]) { %0 = linear(%a, %w) %1 = linear(%b, %w) "
                "%y = concat([%0, %1], axis=1) return %y }",
       .for_saturation = true},
      {.name = "sum-of-products-of-one",
       .match = sum,
       .replace = {"product(x, v + w)", [=](const Match& m) { return sum_of_factors(m, a, b, true); }},
       .when = {floats,
                {"both are products of one value, by factors of one type",
                 [=](const Match& m) { return shares_factor(m, a, b, true); }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: f32[n,3], %v: f32[3,4], %w: f32[3,4]) { %0 = matmul(%x, %v) %1 = matmul(%x, %w) "
                "%y = add(%0, %1) return %y }",
       .stays = "(%x: f32[n,3], %z: f32[n,3], %v: f32[3,4], %w: f32[3,4]) { %0 = matmul(%x, %v) "
                "%1 = matmul(%z, %w) %y = add(%0, %1) return %y }",
       .for_saturation = true},
      {.name = "sum-of-products-by-one",
       .match = sum,
       .replace = {"product(x + y, w)", [=](const Match& m) { return sum_of_factors(m, a, b, false); }},
       .when = {floats,
                {"both are products by one factor, of values of one type",
                 [=](const Match& m) { return shares_factor(m, a, b, false); }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: f32[n,3], %z: f32[n,3], %w: f32[3,4]) { %0 = matmul(%x, %w) %1 = matmul(%z, %w) "
                "%y = add(%0, %1) return %y }",
       .stays = "(%x: f32[n,3], %z: f32[n,3], %v: f32[3,4], %w: f32[3,4]) { %0 = matmul(%x, %v) "
                "%1 = matmul(%z, %w) %y = add(%0, %1) return %y }",
       .for_saturation = true},
      {.name = "sum-of-products",
       .match = sum,
       .replace = {"product(concat(x, y), concat(v, w))",
                   [=](const Match& m) { return joined_product(m, a, b); }},
       .when = {floats,
                {"both are products whose factors fit beside each other",
                 [=](const Match& m) { return can_join(m, a, b); }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: f32[n,3], %z: f32[n,2], %v: f32[3,4], %w: f32[2,4]) { %0 = matmul(%x, %v) "
                "%1 = matmul(%z, %w) %y = add(%0, %1) return %y }",
       .stays = "(%x: f32[n,3], %z: f32[1,3], %v: f32[3,4], %w: f32[3,4]) { %0 = matmul(%x, %v) "
                "%1 = matmul(%z, %w) %y = add(%0, %1) return %y }",
       .for_saturation = true},
      {.name = "sum-of-layers",
       .match = layer + other,
       .replace = {"linear(concat(x, y), concat(v, w), p + q)",
                   [=](const Match& m) { return joined_layers(m, layer, other); }},
       .when = {floats,
                {"both are layers of one result type, one with a bias",
                 [=](const Match& m) {
                   const Node &p = m.node(layer), &q = m.node(other);
                   return m[layer].type() == m.root().type() && m[other].type() == m.root().type() &&
                          (p.has("bias") || q.has("bias")) && fit_along(p.in("x"), q.in("x"), -1) &&
                          fit_along(p.in("weight"), q.in("weight"), 1);
                 }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: f32[n,3], %z: f32[n,2], %v: f32[4,3], %w: f32[4,2], %p: f32[4], %q: f32[4]) { "
                "%0 = linear(%x, %v, %p) %1 = linear(%z, %w, %q) %y = add(%0, %1) %2 = linear(%z, %w) "
                "%3 = add(%0, %2) return %y, %3 }",
       .stays = "(%x: f32[n,3], %z: f32[1,2], %v: f32[4,3], %w: f32[4,2], %p: f32[4], %q: f32[4]) { "
                "%0 = linear(%x, %v, %p) %1 = linear(%z, %w, %q) %y = add(%0, %1) return %y }",
       .for_saturation = true},
      {.name = "function-of-transposes",
       .match = anything,
       .replace = {"transpose(f(x, y))", [=](const Match& m) { return transpose_of(m.node(anything)); }},
       .when = {is_not_fixed(anything),
                {"all operands are transposed alike, or single numbers",
                 [=](const Match& m) { return permutation_of_operands(m.node(anything)).has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m], %y: T[n,2]) { %0 = transpose(%x, permutation=[1, 0]) "
                "%1 = transpose(%y, permutation=[1, 0]) %c = constant(value=T[] {1}) %2 = max(%0, %c) "
                "%3 = concat([%0, %1], axis=0) return %2, %3 }",
       .stays = "(%x: T[n,n,n]) { %0 = transpose(%x, permutation=[1, 0, 2]) "
                "%1 = transpose(%x, permutation=[0, 2, 1]) %2 = max(%0, %1) return %2 }",
       .for_saturation = true},
      {.name = "products-from-the-right",
       .match = left,
       .replace = op("matmul", {{"a", a}, {"b", op("matmul", {{"a", b}, {"b", c}})}}),
       .when = {plain(left, inner)},
       .numerics = Numerics::AssumesFinite,
       .fires =
           "(%a: f32[n,3], %b: f32[3,4], %c: f32[4,2]) { %0 = matmul(%a, %b) %y = matmul(%0, %c) return %y }",
       .stays = "(%a: f32[n,3], %b: f32[3,4], %c: f32[2,4]) { %0 = matmul(%a, %b) "
                "%y = matmul(%0, %c, transpose_b=true) return %y }",
       .for_saturation = true},
      {.name = "products-from-the-left",
       .match = right,
       .replace = op("matmul", {{"a", op("matmul", {{"a", a}, {"b", b}})}, {"b", c}}),
       .when = {plain(right, tail)},
       .numerics = Numerics::AssumesFinite,
       .fires =
           "(%a: f32[n,3], %b: f32[3,4], %c: f32[4,2]) { %0 = matmul(%b, %c) %y = matmul(%a, %0) return %y }",
       .stays = "(%a: f32[n,3], %b: f32[4,3], %c: f32[4,2]) { %0 = matmul(%b, %c, transpose_a=true) "
                "%y = matmul(%a, %0) return %y }",
       .for_saturation = true},
  };
}

}  // namespace

const Rules& axiom_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
