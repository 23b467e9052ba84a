// shape.cpp — the same elements under another shape, in one spelling; broadcasts that nothing needs; and
// shapes that are known, or that a simpler value has too.
#include <algorithm>

#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

Condition has_rank(const Pattern& x) {
  return {x.to_string() + " has a known rank", [=](const Match& m) { return is_ranked(m[x]); }};
}

// The shape operand with which x broadcasts to `shape`: constant, with a 1 wherever x has the size already
// and that is no number.
std::optional<std::vector<int64_t>> constant_broadcast(const Shape& x, const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const int64_t from = i - (shape.rank() - x.rank());
    if (shape[i].is_constant())
      sizes.push_back(*shape[i].constant());
    else if (from >= 0 && provably_equal(x[from], shape[i]))
      sizes.push_back(1);
    else
      return std::nullopt;
  }
  return sizes;
}

Value broadcast_constantly(Value x, const Shape& shape) {
  if (x.shape() == shape)
    return x;
  if (!shape.ranked())
    return {};
  const auto sizes = constant_broadcast(x.shape(), shape);
  return sizes ? broadcast_to(x, int_vector(x.graph(), *sizes)) : Value();
}

bool is_constant(Value value) { return !value.is_input() && value.node()->is("constant"); }

std::set<std::string, std::less<>> elementwise_ops(size_t least_operands) {
  std::set<std::string, std::less<>> names;
  for (const OpDef* op : registered_ops())
    if (op->traits.elementwise && op->results.size() == 1 && op->operands.size() >= least_operands)
      names.emplace(op->name);
  return names;
}

std::set<std::string, std::less<>> broadcasting_ops() {
  std::set<std::string, std::less<>> names = elementwise_ops(2);
  names.emplace("matmul");
  return names;
}

// Whether an op that broadcasts takes what `broadcast` takes as well as what it gives.
bool broadcasts_by_itself(const Node& node, const Node& broadcast) {
  const Value x = broadcast.in("x"), wide = broadcast.result();
  if (!is_ranked(x) || !is_ranked(wide))
    return false;
  if (!node.is("matmul"))
    return true;
  return x.rank() >= 2 && provably_equal(x.dim(-1), wide.dim(-1)) && provably_equal(x.dim(-2), wide.dim(-2));
}

// The node with operands that it broadcasts itself; nothing where that changes what it gives.
Value without_broadcasts(const Node& node) {
  const auto narrow = [&](Value operand) {
    const Node* maker = operand.node();
    return maker != nullptr && maker->is("broadcast") && broadcasts_by_itself(node, *maker) ? maker->in("x")
                                                                                            : operand;
  };
  const std::vector<Value> operands = node.operands();
  for (size_t skipped = 0; skipped <= operands.size(); ++skipped) {
    // All of them; and where those are too many, all but one.
    const Value kept = skipped == 0 ? Value() : operands[skipped - 1];
    const auto map = [&](Value operand) { return operand == kept ? operand : narrow(operand); };
    if (std::all_of(operands.begin(), operands.end(), [&](Value operand) { return map(operand) == operand; }))
      continue;
    Node* made = node.graph().copy_node(node, map);
    if (made->result().type() == node.result().type())
      return made->result();
    node.graph().erase(made);
  }
  return {};
}

// An operand of what makes the value that has the same shape, whatever the op.
Value operand_of_same_shape(Value value) {
  if (value.is_input() || !is_ranked(value))
    return {};
  const auto has_the_same = [&](Value operand) {
    if (!is_ranked(operand) || operand.rank() != value.rank())
      return false;
    for (int64_t i = 0; i < value.rank(); ++i)
      if (!provably_equal(operand.dim(i), value.dim(i)))
        return false;
    return true;
  };
  const std::vector<Value> operands = value.node()->operands();
  const auto it = std::find_if(operands.begin(), operands.end(), has_the_same);
  return it == operands.end() ? Value() : *it;
}

// Those dimensions of an operand which are such dimensions of the result that an elementwise op gives.
std::vector<int64_t> own_axes(Value operand, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> own;
  for (int64_t axis : axes)
    if (const int64_t at = axis - (rank - operand.rank()); at >= 0)
      own.push_back(at);
  return own;
}

// Whether the value was given these dimensions, of all that it has, by an unsqueeze.
bool was_unsqueezed(Value value, const std::vector<int64_t>& axes) {
  const Node* maker = value.node();
  if (maker == nullptr || !maker->is("unsqueeze"))
    return false;
  const std::vector<int64_t>& added = maker->attr("axes");
  return std::all_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return std::count(added.begin(), added.end(), axis) > 0; });
}

// What a squeeze gives of an elementwise node, when its operands are squeezed instead.
Value squeeze_operands(const Node& squeeze) {
  const Node& node = *squeeze.in("x").node();
  const std::vector<int64_t>& axes = squeeze.attr("axes");
  const int64_t rank = node.result().rank();
  const std::vector<Value> operands = node.operands();
  const bool pays = std::any_of(operands.begin(), operands.end(), [&](Value operand) {
    return is_ranked(operand) && operand.rank() == rank && was_unsqueezed(operand, axes);
  });
  if (!pays || !std::all_of(operands.begin(), operands.end(), is_ranked))
    return {};  // where the result has size 1, so have they
  return node.graph()
      .copy_node(node,
                 [&](Value operand) {
                   const std::vector<int64_t> own = own_axes(operand, axes, rank);
                   return own.empty() ? operand : tenon::squeeze(operand, own);
                 })
      ->result();
}

Rules view_rules() {
  const Pattern root = result_of("view", {"reshape", "squeeze", "unsqueeze"});
  const Condition ranked = {"the ranks are known", [=](const Match& m) {
                              return is_ranked(m.root()) && is_ranked(m.node(root).in("x"));
                            }};
  const Pattern squeezed = unary("squeeze", result_of("f", elementwise_ops(1)).once());
  return {
      {.name = "squeeze-before-elementwise",
       .match = squeezed,
       .replace = {"f(squeeze(x), …)", [=](const Match& m) { return squeeze_operands(m.node(squeezed)); }},
       .when = {{"the axes are counted from the front",
                 [=](const Match& m) {
                   const std::vector<int64_t>& axes = m.node(squeezed).attr("axes");
                   return is_ranked(m.node(squeezed).in("x")) &&
                          std::all_of(axes.begin(), axes.end(), [](int64_t axis) { return axis >= 0; });
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m,2], %b: T[n,1,2]) { %0 = unsqueeze(%x, axes=[0]) %1 = unsqueeze(%b, axes=[0]) "
                "%2 = max(%0, %1) %y = squeeze(%2, axes=[0]) return %y }",
       .stays = "(%x: T[n,m,2], %b: T[1,n,1,2]) { %0 = unsqueeze(%x, axes=[0]) %2 = max(%0, %b) "
                "%y = squeeze(%2, axes=[0]) return %2, %y }"},
      {.name = "view-unchanged",
       .match = root,
       .replace = {"x", [=](const Match& m) { return m.node(root).in("x"); }},
       .when = {ranked,
                {"the shape stays",
                 [=](const Match& m) { return m.root().type() == m.node(root).in("x").type(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,3]) { %s = shape(%x) %y = reshape(%x, %s) return %y }",
       .stays = "(%x: T[n,3]) { %s = constant(value=i64[2] {3, -1}) %y = reshape(%x, %s) return %y }"},
      {.name = "view-of-view",
       .match = root,
       .replace = {"view(x)",
                   [=](const Match& m) {
                     return view(m.node(root).in("x").node()->in("x"), m.root().shape());
                   }},
       .when = {ranked,
                {"x is a view too",
                 [=](const Match& m) {
                   const Node* maker = m.node(root).in("x").node();
                   return maker != nullptr && is_view(*maker) && is_ranked(maker->in("x"));
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,4]) { %s = constant(value=i64[3] {-1, 2, 2}) %0 = reshape(%x, %s) "
                "%1 = unsqueeze(%0, axes=[0]) %2 = squeeze(%1, axes=[0]) "
                "%t = constant(value=i64[1] {-1}) %3 = reshape(%2, %t) return %3 }",
       .stays = "(%x: T[n,4]) { %0 = neg(%x) %1 = unsqueeze(%0, axes=[0]) return %1 }"},
      {.name = "one-spelling-of-view",
       .match = root,
       .replace = {"view(x)", [=](const Match& m) { return view(m.node(root).in("x"), m.root().shape()); }},
       .when = {ranked,
                {"it is written otherwise",
                 [=](const Match& m) { return !is_written_as_view(m.node(root)); }}},
       .numerics = Numerics::BitExact,
       .fires =
           "(%x: T[n,m,6]) { %s = shape(%x) %0 = constant(value=i64[1] {0}) %1 = constant(value=i64[1] {1}) "
           "%2 = constant(value=i64[1] {2}) %n = slice(%s, %0, %1, axes=[0]) "
           "%m = slice(%s, %1, %2, axes=[0]) %c = constant(value=i64[2] {2, 3}) "
           "%t = concat([%n, %m, %c], axis=0) %y = reshape(%x, %t) return %y }",
       .stays = "(%x: T[n,m,6]) { %y = unsqueeze(%x, axes=[1]) return %y }"},
  };
}

Rules broadcast_rules() {
  const Pattern x = any("x"), s = any("s"), t = any("t");
  const Pattern inner = op("broadcast", {{"x", x}, {"shape", s}});
  const Pattern root = op("broadcast", {{"x", x}, {"shape", s}});
  const Pattern broadcasting = result_of("f", broadcasting_ops());
  const Replacement constantly = {
      "broadcast(x)", [=](const Match& m) { return broadcast_constantly(m[x], m.root().shape()); }};
  return {
      {.name = "broadcast-unchanged",
       .match = root,
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,3]) { %s = constant(value=i64[2] {1, 3}) %y = broadcast(%x, %s) return %y }",
       .stays = "(%x: T[n,3]) { %s = constant(value=i64[3] {1, 1, 3}) %y = broadcast(%x, %s) return %y }"},
      {.name = "broadcast-of-broadcast",
       .match = op("broadcast", {{"x", inner}, {"shape", t}}),
       .replace = constantly,
       .when = {has_rank(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1]) { %s = constant(value=i64[2] {1, 3}) %0 = broadcast(%x, %s) "
                "%t = constant(value=i64[3] {2, 1, 1}) %y = broadcast(%0, %t) return %y }",
       .stays = "(%x: T[n,1], %s: i64[2]) { %0 = broadcast(%x, %s) "
                "%t = constant(value=i64[3] {2, 1, 1}) %y = broadcast(%0, %t) return %y }"},
      {.name = "constant-broadcast-shape",
       .match = root,
       .replace = constantly,
       .when = {has_rank(x), {"s is computed", [=](const Match& m) { return !is_constant(m[s]); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1]) { %s = shape(%x) %2 = constant(value=i64[1] {2}) %t = concat([%2, %s], axis=0) "
                "%y = broadcast(%x, %t) return %y }",
       .stays = "(%x: T[n,1], %t: i64[2]) { %y = broadcast(%x, %t) return %y }"},
      {.name = "broadcast-before-broadcasting",
       .match = broadcasting,
       .replace = {"f(x, …)", [=](const Match& m) { return without_broadcasts(m.node(broadcasting)); }},
       .numerics = Numerics::BitExact,
       .fires = "(%a: T[4,1], %x: T[3]) { %s = constant(value=i64[2] {4, 3}) %0 = broadcast(%x, %s) "
                "%b = broadcast(%a, %s) %y = max(%b, %0) return %y }",
       .stays = "(%a: T[4,1], %x: T[3]) { %s = constant(value=i64[3] {2, 1, 1}) %0 = broadcast(%x, %s) "
                "%y = max(%a, %0) return %y }"},
  };
}

Rules known_shape_rules() {
  const Pattern x = any("x"), shape = op("shape", {{"x", x}});
  return {
      {.name = "shape-of-known-sizes",
       .match = shape,
       .replace = {"constant",
                   [=](const Match& m) { return int_vector(m.root().graph(), *m[x].shape().extents()); }},
       .when = {has_rank(x),
                {"all sizes are numbers",
                 [=](const Match& m) { return m[x].shape().extents().has_value(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[2,3]) { %y = shape(%x) return %y }",
       .stays = "(%x: T[2,n]) { %y = shape(%x) return %y }"},
      {.name = "shape-of-same-shape",
       .match = shape,
       .replace = {"shape(operand of x)",
                   [=](const Match& m) {
                     const Value operand = operand_of_same_shape(m[x]);
                     return operand ? shape_of(operand) : Value();
                   }},
       .numerics = Numerics::BitExact,
       .fires = "(%a: T[n], %b: T[m,n]) { %0 = max(%a, %b) %1 = relu(%0) %y = shape(%1) return %y }",
       .stays = "(%a: T[n]) { %0 = unsqueeze(%a, axes=[0]) %y = shape(%0) return %y }"},
  };
}

Rules make_rules() {
  const Rules view = view_rules(), broadcast = broadcast_rules(), known = known_shape_rules();
  return joined({&known, &view, &broadcast});
}

}  // namespace

const Rules& shape_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
