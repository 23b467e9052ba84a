// norm.cpp — layer_norm and rms_norm that are written out in reductions and arithmetic, and their scales and
// biases, wherever these were multiplied and added.
#include <cmath>
#include <numeric>

#include "ops/normalise.h"
#include "rewrite/rules/rules.h"
#include "rewrite/rules/written_out.h"

namespace tenon {
namespace {

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
std::vector<int64_t> reduced_axes(const Region& region) {
  const int64_t rank = region.x.rank();
  int64_t first = rank;
  for (const Node* node : region.nodes)
    first = std::min(first, first_axis(*node, rank).value_or(rank));
  std::vector<int64_t> axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// A row [a, -a, 0, …] that is normalised becomes a / sqrt(2a²/n + epsilon), …
std::optional<double> epsilon_of(const Region& region, const RowProbe& row) {
  const double a = row.x.front(), y = row.y.front();
  const double variance = 2 * a * a / static_cast<double>(row.x.size());
  const double epsilon = nearest_number(region, (a / y) * (a / y) - variance);
  if (!(y > 0) || !(epsilon > -1e-9 * variance))
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

std::optional<Function> solve_with(const Region& region, const Roles& roles, MakeNorm make) {
  const std::vector<int64_t> axes = reduced_axes(region);
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

Solver norm_solver(MakeNorm make, bool takes_bias) {
  return [=](const Region& region) -> std::optional<Function> {
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
  };
}

}  // namespace

const Rules& norm_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
