// fold_norms.cpp — a scale and a shift for each feature, by themselves or at the end of a normalisation,
// become part of the linear layers that follow, and batch normalisation part of the linear layer before it,
// even if transposes and reshapes stand between:
//
//   linear(layer_norm(x, s, t), w, b)              →  linear(layer_norm(x), w · s, w t + b)
//   batch_norm(transpose(linear(x, w, b)), s, …)   →  transpose(linear(x, w · factor, b · factor + shift))
#include <algorithm>
#include <unordered_set>

#include "ops/binary.h"
#include "ops/layer.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "passes/attempt.h"
#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/match.h"
#include "rewrite/quantised.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Gone = std::unordered_set<Node*>;  // nodes that were erased

constexpr std::string_view kIntoNext = "into-next-linear", kIntoLast = "batch-norm-into-linear",
                           kLinearBefore = "linear-into-layer-norm";

// --- into the linear layers after it ---

// y = plain · scale + shift, along the last dimension; either may be empty.
struct Affine {
  Value scale, shift;
};

// Weights in narrower floats saturate or have no sign.
bool has_room(DType dtype) { return is_float(dtype) && info(dtype).bits >= 16; }

// Whether `c` has one number for each feature (the last dimension) of `y`.
bool is_per_feature(Value c, Value y) {
  if (!is_fixed(c) || !c.shape().ranked() || c.rank() == 0 || c.rank() > y.rank() ||
      !provably_equal(c.dim(-1), y.dim(-1)))
    return false;
  return provably_equal(c.shape().element_count(), c.dim(-1));
}

// The same, or one number for all.
bool is_factor(Value c, Value y) {
  return is_per_feature(c, y) ||
         (is_fixed(c) && c.shape().ranked() && c.rank() <= y.rank() && c.shape().element_count() == Dim(1));
}

bool has_fixed_statistics(const Node& norm) {
  for (std::string_view name : {"scale", "bias", "mean", "variance"})
    if (!is_fixed(norm.in(name)) || norm.in(name).dtype() != norm.in("x").dtype())
      return false;
  return true;
}

// The operand of a sum or product that is a shift or a scale; empty when neither is.
Value affine_operand(const Node& node) {
  const Value y = node.result(), a = node.in("a"), b = node.in("b");
  const auto fits = node.is("mul") ? is_factor : is_per_feature;
  if (fits(b, y) && a.type() == y.type())
    return b;
  return fits(a, y) && b.type() == y.type() ? a : Value();
}

bool has_affine(const Node& node) {
  if (node.result_count() != 1 || !node.result().type().is_tensor() || !node.result().shape().ranked() ||
      !has_room(node.result().dtype()))
    return false;
  if (node.is("layer_norm") || node.is("rms_norm")) {
    const Value y = node.result(), scale = node.in("scale"),
                shift = node.is("layer_norm") ? node.in("bias") : Value();
    return (scale || shift) && (!scale || is_factor(scale, y)) && (!shift || is_per_feature(shift, y));
  }
  if (node.is("batch_norm"))
    return node.in("x").rank() == 2 && has_fixed_statistics(node);
  return (node.is("mul") || node.is("add")) && bool(affine_operand(node));
}

// What batch normalisation does to each channel.
Affine channel_affine(const Node& norm) {
  const double epsilon = norm.attr("epsilon");
  const Value factor = norm.in("scale") / sqrt(norm.in("variance") + epsilon);
  return {factor, norm.in("bias") - norm.in("mean") * factor};
}

Affine make_affine(const Node& node) {
  if (node.is("batch_norm"))
    return channel_affine(node);
  if (node.is("mul"))
    return {affine_operand(node), {}};
  if (node.is("add"))
    return {{}, affine_operand(node)};
  return {node.in("scale"), node.is("layer_norm") ? node.in("bias") : Value()};
}

// The node's result without the scale and shift.
Value make_plain(const Node& node) {
  if (node.is("layer_norm") || node.is("rms_norm"))
    return node.graph().create(node.op(), {{"x", node.in("x")}}, node.attributes())->result();
  if (node.is("batch_norm"))
    return node.in("x");
  return affine_operand(node) == node.in("b") ? node.in("a") : node.in("b");
}

// Why a linear layer cannot take in a scale or shift of its x; empty when it can.
std::string why_not(const Node& linear) {
  const Value weight = linear.in("weight");
  if (!is_fixed(weight) || (linear.has("bias") && !is_fixed(linear.in("bias"))))
    return "the weights of a linear layer after it are computed by the model";
  if (is_quantised(weight))
    return "the weights of a linear layer after it are quantised";
  if (!weight.has_one_use())
    return "the weights of a linear layer after it are used elsewhere too";
  return "";
}

// How many numbers a model has more when the layers that lack a bias get one, and the scale and shift go.
int64_t added_numbers(const Node& node) {
  const bool has_shift =
      node.is("add") || node.is("batch_norm") || (node.is("layer_norm") && node.has("bias"));
  int64_t added = 0;
  for (Value operand : node.operands())
    if (is_fixed(operand) && operand.has_one_use())
      added -= operand.shape().element_count().constant().value_or(0);
  for (const Node* user : node.result().users())
    if (has_shift && !user->has("bias"))
      added += user->in("weight").dim(0).constant().value_or(0);
  return added;
}

// Why not all of its users can take in its scale and shift: empty when they can, nothing when none is a
// linear layer.
std::optional<std::string> why_not_into_users(const Node& node) {
  const std::vector<Node*> users = node.result().users();
  const auto is_layer = [&](Node* user) {
    return user->is("linear") && user->in("x") == node.result() && user->in("weight") != node.result();
  };
  if (std::none_of(users.begin(), users.end(), is_layer))
    return std::nullopt;
  if (!std::all_of(users.begin(), users.end(), is_layer))
    return "not only linear layers use it, so it would still be computed";
  for (Node* user : users)
    if (std::string reason = why_not(*user); !reason.empty())
      return reason;
  if (const int64_t added = added_numbers(node); added > 0)
    return fmt::format("the biases of the linear layers after it would be {} numbers more", added);
  return "";
}

Value as_vector(Value c) { return c.rank() == 1 ? c : reshape(c, {-1}); }

// The layer with the scale and shift in it.
Value folded(Node* layer, Value plain, const Affine& affine) {
  const InsertBefore here(layer);
  const Value w = layer->in("weight");
  Value weight = w, bias = layer->in("bias");
  if (affine.scale)
    weight = w * as_vector(affine.scale);
  if (affine.shift) {
    const Value shift = matmul(w, as_vector(affine.shift));
    bias = bias ? shift + bias : shift;
  }
  return linear(plain, weight, bias);
}

std::vector<Value> folded_users(Node* node, const std::vector<Node*>& users) {
  Value plain;
  Affine affine;
  {
    const WithSources sources(*node);
    plain = make_plain(*node);
    affine = make_affine(*node);
  }
  std::vector<Value> layers;
  for (Node* user : users)
    layers.push_back(folded(user, plain, affine));
  return layers;
}

void fold_into_users(Node* node, Journal& journal, Gone& gone) {
  const std::optional<std::string> reason = why_not_into_users(*node);
  if (!reason)
    return;
  if (!reason->empty()) {
    journal.declined(kIntoNext, *node, *reason);
    return;
  }
  const std::vector<Node*> users = node->result().users();
  const Attempt attempt = make_before(node, [&] { return folded_users(node, users); });
  if (!attempt.values) {
    journal.declined(kIntoNext, *node, attempt.error);
    return;
  }
  std::vector<Node*> replaced = {node};
  replaced.insert(replaced.end(), users.begin(), users.end());
  journal.applied(kIntoNext, replaced, Numerics::Reassociates);
  for (size_t i = 0; i < users.size(); ++i)
    node->graph().replace(users[i], {(*attempt.values)[i]});
  gone.insert(users.begin(), users.end());
  erase_unused(node, [&](Node* erased) { gone.insert(erased); });
}

// --- batch normalisation into the linear layer before it ---

// The dimension of x that becomes dimension `axis` of the view, and nothing else with it.
std::optional<int64_t> axis_before_view(const Node& node, int64_t axis) {
  const Shape &from = node.in("x").shape(), &to = node.result().shape();
  if (!from.ranked() || !to.ranked())
    return std::nullopt;
  const auto count_after = [](const Shape& shape, int64_t after) {
    Dim count = 1;
    for (int64_t i = after + 1; i < shape.rank(); ++i)
      count = count * shape[i];
    return count;
  };
  for (int64_t i = 0; i < from.rank(); ++i)
    if (provably_equal(from[i], to[axis]) && from[i] != Dim(1) &&
        provably_equal(count_after(from, i), count_after(to, axis)))
      return i;
  return std::nullopt;
}

// The nodes from the linear layer to the normalisation, both included; none when there is no such layer whose
// outputs become the channels.
std::vector<Node*> way_from_linear(Node* norm) {
  std::vector<Node*> way = {norm};
  int64_t axis = 1;
  for (Value y = norm->in("x"); y.has_one_use() && !y.is_input(); y = y.node()->in("x")) {
    Node* node = y.node();
    way.insert(way.begin(), node);
    if (node->is("linear"))
      return axis == y.rank() - 1 ? way : std::vector<Node*>();
    if (node->is("transpose")) {
      axis = node->attr("permutation").as<std::vector<int64_t>>()[static_cast<size_t>(axis)];
    } else if (is_view(*node)) {
      const std::optional<int64_t> before = axis_before_view(*node, axis);
      if (!before)
        return {};
      axis = *before;
    } else {
      return {};
    }
  }
  return {};
}

// What the last node of the way gives, with the normalisation in the layer that is its first.
Value folded_back(const Node& norm, const std::vector<Node*>& way) {
  const Node& layer = *way.front();
  const auto [factor, shift] = channel_affine(norm);
  Value y = linear(layer.in("x"), layer.in("weight") * reshape(factor, {-1, 1}),
                   layer.has("bias") ? layer.in("bias") * factor + shift : shift);
  for (size_t i = 1; i + 1 < way.size(); ++i)
    y = norm.graph()
            .copy_node(*way[i], [&](Value value) { return value == way[i]->in("x") ? y : value; })
            ->result();
  return y;
}

bool fold_into_last(Node* norm, Journal& journal, Gone& gone) {
  const Shape& shape = norm->in("x").shape();
  if (!shape.ranked() || shape.rank() < 2 || !has_room(norm->in("x").dtype()) || !has_fixed_statistics(*norm))
    return false;
  const std::vector<Node*> way = way_from_linear(norm);
  if (way.empty())
    return false;
  if (std::string reason = why_not(*way.front()); !reason.empty()) {
    journal.declined(kIntoLast, *norm, reason);
    return false;
  }
  const Attempt attempt = make_before(norm, [&] { return std::vector{folded_back(*norm, way)}; });
  if (!attempt.values) {
    journal.declined(kIntoLast, *norm, attempt.error);
    return false;
  }
  journal.applied(kIntoLast, way, Numerics::Reassociates);
  norm->graph().replace(norm, *attempt.values);
  gone.insert(norm);
  erase_unused(way[way.size() - 2], [&](Node* erased) { gone.insert(erased); });
  return true;
}

void remark_linear_before(const Node& norm, Journal& journal) {
  const Value x = norm.in("x");
  if (!x.is_input() && x.node()->is("linear"))
    journal.declined(kLinearBefore, norm,
                     "its mean and variance depend on the data; fuse the kernels instead");
}

// Batch normalisation first looks backwards: what it is folded into then serves all of its users.
void fold_in(Graph& graph, Journal& journal) {
  Gone gone;
  for (Node* node : graph.nodes()) {
    if (!journal.is_open())
      return;
    if (gone.contains(node) || (node->is("batch_norm") && fold_into_last(node, journal, gone)))
      continue;
    if (node->is("layer_norm"))
      remark_linear_before(*node, journal);
    if (has_affine(*node))
      fold_into_users(node, journal, gone);
  }
}

}  // namespace

void fold_norms(Graph& graph, Journal& journal) {
  if (!journal.allows(Numerics::Reassociates))
    return;
  for_each_graph(graph, [&](Graph& each) { fold_in(each, journal); });
}

}  // namespace tenon
