// norm.cpp — layer_norm and rms_norm that are written out in reductions and arithmetic, and their scales and
// biases, wherever these were multiplied and added; group_norm and instance_norm made of them.
#include <cmath>
#include <numeric>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "rewrite/rules/rules.h"
#include "rewrite/rules/written_out.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// With a greater one all is next to 0, whatever it is.
constexpr double kGreatestEpsilon = 1;

constexpr std::string_view kReductions[] = {"reduce_mean", "reduce_sum", "layer_norm", "rms_norm"};

// The first axis that a node reduces, from the front; nothing for other nodes.
std::optional<int64_t> first_axis(const Node& node, int64_t rank) {
  if (std::find(std::begin(kReductions), std::end(kReductions), node.op().name) == std::end(kReductions))
    return std::nullopt;
  if (node.op().find_attribute("axis") != nullptr) {
    const int64_t axis = node.attr("axis");
    return axis < 0 ? axis + rank : axis;
  }
  int64_t first = rank;
  for (int64_t axis : node.attr("axes").as<std::vector<int64_t>>())
    first = std::min(first, axis < 0 ? axis + rank : axis);
  return first;
}

// The last axes of x, from the first that the region reduces on.
std::vector<int64_t> reduced_axes(const UnaryRegion& region) {
  const int64_t rank = region.x.rank();
  int64_t first = rank;
  for (const Node* node : region.nodes)
    first = std::min(first, first_axis(*node, rank).value_or(rank));
  std::vector<int64_t> axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// A row [x, -x, 0, …] that is normalised becomes x / sqrt(2x²/n + epsilon), …
std::optional<double> epsilon_of(const UnaryRegion& region, const RowProbe& row) {
  const double variance = 2 * row.x * row.x / static_cast<double>(row.length);
  const double squared = (row.x / row.y) * (row.x / row.y);
  const double epsilon = nearest_number(region, squared - variance);
  if (!(row.y > 0) || !(epsilon > -1e-9 * variance) || epsilon > kGreatestEpsilon)
    return std::nullopt;
  return std::fabs(epsilon) < 1e-9 * variance ? 0 : epsilon;
}

// Which of the fixed values is what; none has one without.
struct Roles {
  std::optional<size_t> scale, bias;
};

// Those that fixed values can have in a norm that takes a scale and, perhaps, a bias.
std::vector<Roles> possible_roles(size_t fixed, bool takes_bias) {
  if (fixed == 0)
    return {{}};
  if (fixed == 1 && takes_bias)
    return {{.scale = 0, .bias = {}}, {.scale = {}, .bias = 0}};
  if (fixed == 1)
    return {{.scale = 0, .bias = {}}};
  if (fixed == 2 && takes_bias)
    return {{.scale = 0, .bias = 1}, {.scale = 1, .bias = 0}};
  return {};
}

using MakeNorm = Value (*)(Value x, Value scale, Value bias, int64_t axis, double epsilon);

Value make_rms_norm(Value x, Value scale, Value, int64_t axis, double epsilon) {
  return rms_norm(x, scale, axis, epsilon);
}

std::optional<Function> solve_with(const UnaryRegion& region, const Roles& roles, MakeNorm make) {
  const std::vector<int64_t> axes = reduced_axes(region);
  if (axes.empty())
    return std::nullopt;
  std::vector<double> neutral(region.fixed.size(), 1);
  if (roles.bias)
    neutral[*roles.bias] = 0;
  const std::optional<RowProbe> row = probe_row(region, axes, neutral);
  const std::optional<double> epsilon = row ? epsilon_of(region, *row) : std::nullopt;
  if (!epsilon)
    return std::nullopt;
  const int64_t axis = axes.front() - region.x.rank();
  const Function norm = [=](Value x, const std::vector<Value>& fixed) {
    return make(x, roles.scale ? fixed[*roles.scale] : Value(), roles.bias ? fixed[*roles.bias] : Value(),
                axis, *epsilon);
  };
  return computes_along(region, axes, norm) ? std::optional(norm) : std::nullopt;
}

// (x - mean) / sqrt(variance + epsilon) over the channels of an image, which are not its last dimension.
std::optional<Function> solve_across_channels(const UnaryRegion& region) {
  if (region.x.type() != region.root.type() || !region.x.shape().ranked() || region.x.rank() < 3 ||
      !region.fixed.empty() || reduced_axes(region).empty() || reduced_axes(region).front() != 1)
    return std::nullopt;
  const std::optional<RowProbe> row = probe_row(region, {1}, {});
  const std::optional<double> epsilon = row ? epsilon_of(region, *row) : std::nullopt;
  if (!epsilon)
    return std::nullopt;
  const Function norm = [=](Value x, const std::vector<Value>&) {
    std::vector<int64_t> to_last = {0}, back = {0, x.rank() - 1};
    for (int64_t axis = 2; axis < x.rank(); ++axis) {
      to_last.push_back(axis);
      back.push_back(axis - 1);
    }
    to_last.push_back(1);
    return transpose(layer_norm(transpose(x, to_last), Value(), Value(), -1, *epsilon), back);
  };
  return computes_along(region, {1}, norm) ? std::optional(norm) : std::nullopt;
}

Solver norm_solver(MakeNorm make, bool takes_bias) {
  return [=](const UnaryRegion& region) -> std::optional<Function> {
    const bool fits = region.x.type() == region.root.type() && region.x.shape().ranked() &&
                      std::all_of(region.fixed.begin(), region.fixed.end(),
                                  [&](Value fixed) { return fixed.dtype() == region.x.dtype(); });
    if (!fits)
      return std::nullopt;
    for (const Roles& roles : possible_roles(region.fixed.size(), takes_bias))
      if (std::optional<Function> function = solve_with(region, roles, make))
        return function;
    return std::nullopt;
  };
}

// --- norms of channels ---

Value per_channel(Value x, double number) {
  const Tensor element = filled(x.dtype(), {}, number);
  return constant(x.graph(), Literal::splat(element, {*x.dim(1).constant()}));
}

// Whether c has one number for each channel of x, and none besides.
bool is_per_channel(Value c, Value x) {
  if (!c.shape().ranked() || !x.shape().ranked() || x.rank() < 3 || c.rank() > x.rank() ||
      !x.dim(1).is_constant() || c.dtype() != x.dtype())
    return false;
  for (int64_t i = 0; i < c.rank(); ++i)
    if (c.dim(i) != (x.rank() - c.rank() + i == 1 ? x.dim(1) : Dim(1)))
      return false;
  return c.rank() >= x.rank() - 1;
}

Value as_vector(Value c) { return reshape(c, std::vector<int64_t>{-1}); }

// The same norm, but with another scale and bias. A layer_norm of all that a channel has is an instance_norm.
Value with_scale_and_bias(const Node& norm, Value scale, Value bias) {
  const double epsilon = norm.attr("epsilon");
  if (norm.is("group_norm"))
    return group_norm(norm.in("x"), scale, bias, norm.attr("groups"), epsilon);
  return instance_norm(norm.in("x"), scale, bias, epsilon);
}

bool is_unscaled_norm_of_channels(const Node& norm) {
  const int64_t axis = norm.attr("axis"), rank = norm.in("x").rank();
  return (axis < 0 ? axis + rank : axis) == 2 && !norm.has("scale") && !norm.has("bias");
}

Value scale_of(const Node& norm) {
  return norm.is("layer_norm") ? per_channel(norm.in("x"), 1) : norm.in("scale");
}

Value bias_of(const Node& norm) {
  return norm.is("layer_norm") ? per_channel(norm.in("x"), 0) : norm.in("bias");
}

Value multiplied(Value a, Value c) {
  if (uniform_number(a) == 0)
    return a;
  return uniform_number(a) == 1 ? c : a * c;
}

Value scaled(const Node& norm, Value c) {
  const Value factor = as_vector(c), scale = multiplied(scale_of(norm), factor);
  return with_scale_and_bias(norm, scale, multiplied(bias_of(norm), factor));
}

Value shifted(const Node& norm, Value c) {
  const Value scale = scale_of(norm), bias = bias_of(norm), offset = as_vector(c);
  return with_scale_and_bias(norm, scale, uniform_number(bias) == 0 ? offset : bias + offset);
}

// norm(x) · c, or + c, with a number for each channel.
Rule per_channel_rule(std::string_view name, std::string_view op_name, std::string formula,
                      Value (*make)(const Node&, Value), std::string_view fires, std::string_view stays) {
  const Pattern norm = result_of("norm", {"layer_norm", "instance_norm", "group_norm"}).once();
  const Pattern c = constant("c");
  const Condition fits = {"c has one number for each channel", [=](const Match& m) {
                            const Node& node = m.node(norm);
                            return is_per_channel(m[c], node.in("x")) &&
                                   (!node.is("layer_norm") || is_unscaled_norm_of_channels(node));
                          }};
  return {.name = name,
          .match = op(op_name, {{"a", norm}, {"b", c}}),
          .replace = {std::move(formula), [=](const Match& m) { return make(m.node(norm), m[c]); }},
          .when = {is_ordinary_float(c), fits},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

// transpose(layer_norm(x)) · c, or + c, where c has one number for each element that x is normalised over.
Rule across_channels_rule(std::string_view name, std::string_view op_name, std::string formula,
                          std::string_view fires, std::string_view stays) {
  const Pattern norm = result_of("layer_norm").once(), c = constant("c");
  const Pattern moved = op("transpose", {{"x", norm}}).once();
  const bool scales = op_name == "mul";
  const Condition fits = {"c has one number for each channel", [=](const Match& m) {
                            const Node& node = m.node(norm);
                            const std::vector<int64_t>& permutation = m.node(moved).attr("permutation");
                            const int64_t axis = node.attr("axis"), last = node.in("x").rank() - 1;
                            return (axis == -1 || axis == last) && is_per_channel(m[c], m[moved]) &&
                                   permutation.at(1) == last && !node.has("bias") &&
                                   (!scales || !node.has("scale"));
                          }};
  const auto make = [=](const Match& m) {
    const Node& node = m.node(norm);
    const Value vector = as_vector(m[c]);
    const Value y = layer_norm(node.in("x"), scales ? vector : node.in("scale"), scales ? Value() : vector,
                               -1, node.attr("epsilon"));
    return transpose(y, m.node(moved).attr("permutation"));
  };
  return {.name = name,
          .match = op(op_name, {{"a", moved}, {"b", c}}),
          .replace = {std::move(formula), make},
          .when = {is_ordinary_float(c), fits},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

// reshape(norm(reshape(x))), where the norm is of groups that the channels of x were gathered into.
Rule group_norm_rule() {
  const Pattern x = any("x");
  const Pattern groups = op("reshape", {{"x", x}, {"shape", any("to groups")}});
  const Pattern norm =
      either({op("layer_norm", {{"x", groups}}),
              op("instance_norm", {{"x", groups}, {"scale", Pattern(1.0)}, {"bias", Pattern(0.0)}})});
  const Condition fits = {
      "it normalises groups of the channels of x", [=](const Match& m) {
        const Value from = m[x], middle = m[groups];
        if (from.type() != m.root().type() || !from.shape().ranked() || from.rank() < 3 || middle.rank() < 3)
          return false;
        const auto channels = from.dim(1).constant(), count = middle.dim(1).constant();
        return provably_equal(from.dim(0), middle.dim(0)) && channels && count && *count > 0 &&
               *channels % *count == 0 &&
               (m.node(norm).is("instance_norm") || is_unscaled_norm_of_channels(m.node(norm)));
      }};
  const auto make = [=](const Match& m) {
    const Value from = m[x], scale = per_channel(from, 1), bias = per_channel(from, 0);
    const int64_t count = *m[groups].dim(1).constant();
    const double epsilon = m.node(norm).attr("epsilon");
    return Dim(count) == from.dim(1) ? instance_norm(from, scale, bias, epsilon)
                                     : group_norm(from, scale, bias, count, epsilon);
  };
  return {.name = "group-norm",
          .match = op("reshape", {{"x", norm}, {"shape", any("back")}}),
          .replace = {"group_norm(x, 1, 0)", make},
          .when = {is_ordinary_float(x), fits},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[2,4,3]) { %g = constant(value=i64[3] {2, 2, 6}) "
              "%b = constant(value=i64[3] {2, 4, 3}) %0 = reshape(%x, %g) "
              "%1 = layer_norm(%0, axis=2, epsilon=0.1) %y = reshape(%1, %b) return %y }",
          .stays =
              "(%x: T[2,4,3]) { %g = constant(value=i64[3] {4, 2, 3}) "
              "%b = constant(value=i64[3] {2, 4, 3}) %0 = reshape(%x, %g) "
              "%1 = layer_norm(%0, axis=2, epsilon=0.1) %y = reshape(%1, %b) return %y }"};
}

Rules make_rules() {
  const std::set<std::string, std::less<>> reductions(std::begin(kReductions), std::end(kReductions));
  return {
      written_out("layer-norm", reductions, "layer_norm(x, scale, bias)", norm_solver(layer_norm, true),
                  "(%x: T[n,8], %z: T[n,8]) { %e = constant(value=T[] {0.001}) "
                  "%g = parameter(name=\"g\", value=T[8] {1, 2, 3, 4, 1, 2, 3, 4}) "
                  "%b = parameter(name=\"b\", value=T[8] {1, 2, 3, 4, 1, 2, 3, 4}) "
                  "%m = reduce_mean(%x, axes=[-1], keep_dims=true) %c = sub(%x, %m) %0 = mul(%c, %c) "
                  "%v = reduce_mean(%0, axes=[1], keep_dims=true) %1 = add(%v, %e) %2 = sqrt(%1) "
                  "%3 = div(%c, %2) %4 = mul(%3, %g) %y = add(%4, %b) %w = add(%y, %z) return %w }",
                  "(%x: T[n,8]) { %e = constant(value=T[] {0.001}) "
                  "%m = reduce_mean(%x, axes=[-1], keep_dims=true) %c = sub(%x, %m) %0 = mul(%c, %c) "
                  "%v = reduce_mean(%0, axes=[-1], keep_dims=true) %1 = sqrt(%v) %2 = add(%1, %e) "
                  "%y = div(%c, %2) return %y }"),
      written_out("rms-norm", reductions, "rms_norm(x, scale)", norm_solver(make_rms_norm, false),
                  "(%x: T[n,8]) { %e = constant(value=T[] {0.001}) "
                  "%g = parameter(name=\"g\", value=T[8] {1, 2, 3, 4, 1, 2, 3, 4}) %0 = mul(%x, %x) "
                  "%1 = reduce_mean(%0, axes=[-1], keep_dims=true) %2 = add(%1, %e) %3 = sqrt(%2) "
                  "%4 = reciprocal(%3) %5 = mul(%x, %4) %y = mul(%g, %5) return %y }",
                  "(%x: T[n,8]) { %e = constant(value=T[] {0.001}) %0 = mul(%x, %x) "
                  "%1 = reduce_mean(%0, axes=[0], keep_dims=true) %2 = add(%1, %e) %3 = sqrt(%2) "
                  "%y = div(%x, %3) return %y }"),
      written_out("layer-norm-across-channels", {"reduce_mean", "reduce_sum"},
                  "transpose(layer_norm(transpose(x)))", solve_across_channels,
                  "(%x: T[n,8,m]) { %e = constant(value=T[] {0.001}) "
                  "%m = reduce_mean(%x, axes=[1], keep_dims=true) %c = sub(%x, %m) %0 = mul(%c, %c) "
                  "%v = reduce_mean(%0, axes=[1], keep_dims=true) %1 = add(%v, %e) %2 = sqrt(%1) "
                  "%y = div(%c, %2) return %y }",
                  "(%x: T[n,8,m]) { %e = constant(value=T[] {0.001}) "
                  "%m = reduce_mean(%x, axes=[0], keep_dims=true) %c = sub(%x, %m) %0 = mul(%c, %c) "
                  "%v = reduce_mean(%0, axes=[0], keep_dims=true) %1 = add(%v, %e) %2 = sqrt(%1) "
                  "%y = div(%c, %2) return %y }"),
      across_channels_rule("scale-across-channels", "mul", "transpose(layer_norm(x, c))",
                           "(%x: T[n,3,6]) { %c = parameter(name=\"c\", value=T[6,1] {1, 2, 3, 4, 5, 6}) "
                           "%0 = layer_norm(%x, epsilon=0.1) %1 = transpose(%0, permutation=[0, 2, 1]) "
                           "%y = mul(%1, %c) return %y }",
                           "(%x: T[n,3,6]) { %c = parameter(name=\"c\", value=T[3] {1, 2, 3}) "
                           "%0 = layer_norm(%x, epsilon=0.1) %1 = transpose(%0, permutation=[0, 2, 1]) "
                           "%y = mul(%1, %c) return %y }"),
      across_channels_rule("shift-across-channels", "add", "transpose(layer_norm(x, scale, c))",
                           "(%x: T[n,3,2], %s: T[2]) { %c = parameter(name=\"c\", value=T[2,1] {1, 2}) "
                           "%0 = layer_norm(%x, %s, epsilon=0.1) "
                           "%1 = transpose(%0, permutation=[0, 2, 1]) %y = add(%1, %c) return %y }",
                           "(%x: T[n,3,2], %s: T[2]) { %c = parameter(name=\"c\", value=T[2,1] {1, 2}) "
                           "%0 = layer_norm(%x, %s, %s, epsilon=0.1) "
                           "%1 = transpose(%0, permutation=[0, 2, 1]) %y = add(%1, %c) return %y }"),
      group_norm_rule(),
      per_channel_rule("scale-channels", "mul", "norm(x, scale * c, bias * c)", scaled,
                       "(%x: T[n,2,6]) { %c = parameter(name=\"c\", value=T[2,1] {3, 4}) "
                       "%0 = layer_norm(%x, axis=2, epsilon=0.1) %y = mul(%c, %0) return %y }",
                       "(%x: T[n,2,6]) { %c = parameter(name=\"c\", value=T[6] {3, 4, 3, 4, 3, 4}) "
                       "%0 = layer_norm(%x, axis=2, epsilon=0.1) %y = mul(%c, %0) return %y }"),
      per_channel_rule("shift-channels", "add", "norm(x, scale, bias + c)", shifted,
                       "(%x: T[n,2,6]) { %s = parameter(name=\"s\", value=T[2] {5, 6}) "
                       "%c = parameter(name=\"c\", value=T[1,2,1] {3, 4}) "
                       "%0 = instance_norm(%x, %s, %s, epsilon=0.1) %y = add(%0, %c) return %y }",
                       "(%x: T[n,2,6]) { %s = parameter(name=\"s\", value=T[2] {5, 6}) "
                       "%c = parameter(name=\"c\", value=T[1,2,1] {3, 4}) "
                       "%0 = instance_norm(%x, %s, %s, epsilon=0.1) %y = add(%0, %c) return %y, %0 }"),
  };
}

}  // namespace

const Rules& norm_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
