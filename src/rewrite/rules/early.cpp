// early.cpp — slices taken before computing instead of after: what is cut away need not be computed.
#include <algorithm>

#include "ops/shapes.h"
#include "rewrite/cut.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
// What to cut off each operand, by its name, so that the result has the cuts. Operands left out stay whole.
using OperandCuts = std::map<std::string_view, Cuts>;

// Cuts along one axis of a result, off an operand that broadcasts to it. False where it is not clear that it
// has the size or broadcasts.
bool add_broadcast(Value operand, Value result, const Cut& cut, Cuts& cuts) {
  const int64_t axis = cut.axis - (result.rank() - operand.rank());
  if (axis < 0 || operand.dim(axis) == Dim(1))
    return true;
  cuts.push_back({axis, cut.start, cut.end, cut.step});
  return provably_equal(operand.dim(axis), result.dim(cut.axis));
}

std::optional<OperandCuts> for_elementwise(const Node& node, const Cuts& cuts) {
  OperandCuts wanted;
  for (const OperandDecl& operand : node.op().operands)
    for (const Cut& cut : cuts)
      if (const Value value = node.in(operand.name))
        if (!is_ranked(value) || !add_broadcast(value, node.result(), cut, wanted[operand.name]))
          return std::nullopt;
  return wanted;
}

// Of ops that compute along some axes of x: any others may be cut.
std::optional<OperandCuts> for_lanes(const Cuts& cuts,
                                     const std::function<bool(int64_t)>& is_computed_along) {
  for (const Cut& cut : cuts)
    if (is_computed_along(cut.axis))
      return std::nullopt;
  return OperandCuts{{"x", cuts}};
}

std::optional<OperandCuts> for_matmul(const Node& node, const Cuts& cuts) {
  const Value a = node.in("a"), b = node.in("b"), y = node.result();
  if (a.rank() < 2 || b.rank() < 2)
    return std::nullopt;
  OperandCuts wanted;
  for (Cut cut : cuts) {
    if (cut.axis == y.rank() - 2) {
      cut.axis = a.rank() - (node.attr("transpose_a").as<bool>() ? 1 : 2);
      wanted["a"].push_back(cut);
    } else if (cut.axis == y.rank() - 1) {
      cut.axis = b.rank() - (node.attr("transpose_b").as<bool>() ? 2 : 1);
      wanted["b"].push_back(cut);
    } else if (!add_broadcast(a, y, cut, wanted["a"]) || !add_broadcast(b, y, cut, wanted["b"])) {
      return std::nullopt;
    }
  }
  return wanted;
}

std::optional<OperandCuts> for_linear(const Node& node, const Cuts& cuts) {
  OperandCuts wanted;
  for (const Cut& cut : cuts) {
    if (cut.axis < node.result().rank() - 1) {
      wanted["x"].push_back(cut);
      continue;
    }
    wanted["weight"].push_back({0, cut.start, cut.end, cut.step});
    if (node.has("bias"))
      wanted["bias"].push_back({0, cut.start, cut.end, cut.step});
  }
  return wanted;
}

// Each query stands for itself, unless it is told where it stands.
std::optional<OperandCuts> for_attention(const Node& node, const Cuts& cuts) {
  if (cuts.size() != 1 || cuts.front().axis != 2 || node.result().rank() != 4 || node.has("offset") ||
      node.has("lengths") || node.attr("window_before").as<int64_t>() != -1 ||
      node.attr("window_after").as<int64_t>() != -1)
    return std::nullopt;
  OperandCuts wanted = {{"q", cuts}};
  if (const Value mask = node.in("mask"))
    if (!is_ranked(mask) || !add_broadcast(mask, node.result(), cuts.front(), wanted["mask"]))
      return std::nullopt;
  return wanted;
}

std::optional<OperandCuts> for_transpose(const Node& node, Cuts cuts) {
  const Ints& permutation = node.attr("permutation");
  for (Cut& cut : cuts)
    cut.axis = permutation[static_cast<size_t>(cut.axis)];
  return OperandCuts{{"x", cuts}};
}

std::optional<OperandCuts> operand_cuts(const Node& node, const Cuts& cuts) {
  if (node.op().traits.elementwise)
    return for_elementwise(node, cuts);
  if (node.is("transpose"))
    return for_transpose(node, cuts);
  if (node.is("matmul"))
    return for_matmul(node, cuts);
  if (node.is("linear"))
    return for_linear(node, cuts);
  if (node.is("attention"))
    return for_attention(node, cuts);
  const int64_t rank = node.result().rank();
  if (node.is("softmax") || node.is("log_softmax"))
    return for_lanes(
        cuts, [&](int64_t axis) { return axis == checked_axis(node.op().name, node.attr("axis"), rank); });
  if (node.is("layer_norm") || node.is("rms_norm"))
    return for_lanes(
        cuts, [&](int64_t axis) { return axis >= checked_axis(node.op().name, node.attr("axis"), rank); });
  return std::nullopt;
}

// The axis of x, which is seen under another shape, that is the same as an axis of the view: as large, and
// after as many elements.
std::optional<int64_t> axis_before_view(const Node& view, int64_t axis) {
  const Value x = view.in("x"), y = view.result();
  Dim before_y = 1, before_x = 1;
  for (int64_t i = 0; i < axis; ++i)
    before_y = before_y * y.dim(i);
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (provably_equal(before_x, before_y) && provably_equal(x.dim(i), y.dim(axis)))
      return i;
    before_x = before_x * x.dim(i);
  }
  return std::nullopt;
}

Value cut_before_view(const Node& slice, const Node& seen, Cuts cuts) {
  for (Cut& cut : cuts) {
    const auto axis = axis_before_view(seen, cut.axis);
    if (!axis)
      return {};
    cut.axis = *axis;
  }
  return view(cut(seen.in("x"), cuts), slice.result().shape());
}

bool drops_elements(const Node& slice, const Cuts& cuts) {
  return !cuts.empty() && std::all_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
    return cut.step > 0 && slice.in("x").dim(cut.axis).is_constant();
  });
}

Value cut_early(const Node& slice) {
  const Node* maker = slice.in("x").node();
  const std::optional<Cuts> cuts = known_cuts(slice);
  if (!cuts || !drops_elements(slice, *cuts) || maker == nullptr || maker->result_count() != 1 ||
      !maker->result().has_one_use() || maker->operand_count() == 0 || !maker->late_names().empty() ||
      !is_ranked(maker->operand(0)) || is_fixed(maker->result()))
    return {};
  if (is_view(*maker))
    return cut_before_view(slice, *maker, *cuts);
  const std::optional<OperandCuts> wanted = operand_cuts(*maker, *cuts);
  if (!wanted)
    return {};
  std::vector<Operand> operands;
  for (const OperandDecl& declared : maker->op().operands) {
    const auto it = wanted->find(declared.name);
    const Value operand = maker->in(declared.name);
    operands.emplace_back(declared.name, operand && it != wanted->end() ? cut(operand, it->second) : operand);
  }
  return maker->graph().create(maker->op(), std::move(operands), maker->attributes())->result();
}

Rule early(std::string_view name, std::set<std::string, std::less<>> makers, std::string_view fires,
           std::string_view stays) {
  return {.name = name,
          .match = result_of("slice"),
          .replace = {"f(slice(x))", [](const Match& m) { return cut_early(*m.root().node()); }},
          .when = {{"x is made for the slice alone",
                    [=](const Match& m) {
                      const Value x = m.root().node()->in("x");
                      return !x.is_input() && x.has_one_use() && makers.contains(x.node()->op().name);
                    }}},
          .numerics = Numerics::BitExact,
          .fires = fires,
          .stays = stays};
}

std::set<std::string, std::less<>> elementwise_ops() {
  std::set<std::string, std::less<>> names;
  for (const OpDef* op : registered_ops())
    if (op->traits.elementwise)
      names.emplace(op->name);
  return names;
}

Rules make_rules() {
  return {
      early("slice-before-elementwise", elementwise_ops(),
            "(%x: T[n,5], %y: T[5], %z: T[3,1,1]) { %0 = max(%x, %y) %1 = min(%0, %z) "
            "%s = constant(value=i64[2] {1, 1}) %e = constant(value=i64[2] {2, 5}) "
            "%t = constant(value=i64[2] {1, 3}) %2 = slice(%1, %s, %e, %t, axes=[0, 2]) return %2 }",
            "(%x: T[n,5], %y: T[5]) { %0 = max(%x, %y) %s = constant(value=i64[1] {1}) "
            "%e = constant(value=i64[1] {3}) %1 = slice(%0, %s, %e, axes=[1]) return %0, %1 }"),
      early("slice-before-view", {"reshape", "squeeze", "unsqueeze"},
            "(%x: T[3,4,5]) { %c = constant(value=i64[4] {3, 2, 2, 5}) %0 = reshape(%x, %c) "
            "%s = constant(value=i64[2] {1, 2}) %e = constant(value=i64[2] {3, 4}) "
            "%y = slice(%0, %s, %e, axes=[0, 3]) return %y }",
            "(%x: T[3,4,5]) { %c = constant(value=i64[4] {3, 2, 2, 5}) %0 = reshape(%x, %c) "
            "%s = constant(value=i64[1] {1}) %e = constant(value=i64[1] {2}) "
            "%y = slice(%0, %s, %e, axes=[1]) return %y }"),
      early("slice-before-transpose", {"transpose"},
            "(%x: T[3,n,5]) { %0 = transpose(%x, permutation=[2, 0, 1]) %s = constant(value=i64[2] {1, 2}) "
            "%e = constant(value=i64[2] {3, 3}) %y = slice(%0, %s, %e, axes=[0, 1]) return %y }",
            "(%x: T[3,n,5]) { %0 = transpose(%x, permutation=[2, 0, 1]) %s = constant(value=i64[1] {4}) "
            "%e = constant(value=i64[1] {-9}) %t = constant(value=i64[1] {-1}) "
            "%y = slice(%0, %s, %e, %t, axes=[0]) return %y }"),
      early("slice-before-product", {"matmul", "linear", "attention"},
            "(%a: f32[2,4,3], %b: f32[5,3], %c: f32[5], %k: f32[2,1,4,3]) { "
            "%0 = matmul(%a, %b, transpose_b=true) %1 = constant(value=i64[2] {1, 2}) "
            "%2 = constant(value=i64[2] {3, 4}) %3 = slice(%0, %1, %2, axes=[1, 2]) %4 = linear(%a, %b, %c) "
            "%5 = slice(%4, %1, %2, axes=[1, 2]) %6 = constant(value=i64[1] {1}) "
            "%7 = constant(value=i64[1] {2}) %8 = attention(%k, %k, %k, scale=0.5) "
            "%9 = slice(%8, %6, %7, axes=[2]) return %3, %5, %9 }",
            "(%k: f32[2,1,4,3]) { %6 = constant(value=i64[1] {1}) %7 = constant(value=i64[1] {2}) "
            "%8 = attention(%k, %k, %k, scale=0.5, window_after=0) %9 = slice(%8, %6, %7, axes=[2]) return "
            "%9 }"),
      early("slice-before-normalising", {"softmax", "log_softmax", "layer_norm", "rms_norm"},
            "(%x: f32[4,5,6]) { %0 = softmax(%x, axis=1) %s = constant(value=i64[1] {1}) "
            "%e = constant(value=i64[1] {3}) %1 = slice(%0, %s, %e, axes=[2]) %2 = layer_norm(%x) "
            "%3 = slice(%2, %s, %e, axes=[1]) return %1, %3 }",
            "(%x: f32[4,5,6]) { %0 = layer_norm(%x, axis=1) %s = constant(value=i64[1] {1}) "
            "%e = constant(value=i64[1] {3}) %1 = slice(%0, %s, %e, axes=[1]) return %1 }"),
  };
}

}  // namespace

const Rules& early_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
