// merge_siblings.cpp — several products of one value with different weights become one product with all of
// the weights, whose result is split. That reads the value once, and one large product keeps a machine busier
// than several small ones:
//
//   linear(x, wq, bq), linear(x, wk, bk)  →  split(linear(x, concat(wq, wk), concat(bq, bk)), axis=-1)
#include <algorithm>
#include <unordered_set>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/layer.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/match.h"
#include "rewrite/quantised.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "siblings";

// What a kind of product calls its operands, and where its outputs stand in the weights and in the result.
struct Form {
  std::string_view input, weights;
  int64_t weight_axis, result_axis;
};

std::optional<Form> form_of(const Node& node) {
  if (node.is("linear"))
    return Form{"x", "weight", 0, -1};
  if (node.is("matmul"))
    return Form{"a", "b", node.attr("transpose_b").as<bool>() ? -2 : -1, -1};
  // With several groups the filters of two convolutions would have to take turns.
  if ((node.is("conv") || node.is("conv_transpose")) && node.attr("groups").as<int64_t>() == 1)
    return Form{"x", "w", node.is("conv") ? 0 : 1, 1};
  return std::nullopt;
}

struct Sibling {
  Node* product;
  int64_t outputs;
  Value bias = {};  // [outputs], or for convolutions [outputs, 1, …]; empty for none
  Node* last;       // the product, or the sum with its bias
};

// The bias that is added to a convolution and to nothing else, with one number for each channel.
void take_bias(Sibling& sibling) {
  const Value y = sibling.product->result();
  if (!y.has_one_use() || !y.users().front()->is("add"))
    return;
  Node* sum = y.users().front();
  const Value bias = sum->in("a") == y ? sum->in("b") : sum->in("a");
  if (!is_fixed(bias) || !bias.shape().ranked() || bias.rank() > y.rank() ||
      bias.shape().element_count() != Dim(sibling.outputs) || bias.rank() < y.rank() - 1 ||
      bias.dim(1 - y.rank()) != Dim(sibling.outputs))
    return;
  sibling.bias = bias;
  sibling.last = sum;
}

std::optional<Sibling> sibling_of(Node* node) {
  const std::optional<Form> form = form_of(*node);
  if (!form)
    return std::nullopt;
  const Value x = node->in(form->input), w = node->in(form->weights);
  if (!x.shape().ranked() || !w.shape().ranked() || w.rank() < 2 || !is_fixed(w) || is_quantised(w) ||
      is_fixed(x))
    return std::nullopt;
  const std::optional<int64_t> outputs = w.dim(form->weight_axis).constant();
  if (!outputs || *outputs == 0)
    return std::nullopt;
  Sibling sibling{.product = node, .outputs = *outputs, .last = node};
  if (node->is("linear") && node->has("bias")) {
    if (!is_fixed(node->in("bias")))
      return std::nullopt;
    sibling.bias = node->in("bias");
  } else if (form->result_axis == 1) {
    take_bias(sibling);
  }
  return sibling;
}

// Whether the two differ in nothing but their weights, and those in nothing but the number of outputs. Where
// only one has a bias, zeros for the other would be numbers that the model did not have.
bool are_alike(const Sibling& first, const Sibling& second) {
  const Node &a = *first.product, &b = *second.product;
  if (&a.op() != &b.op() || a.attributes() != b.attributes() || !a.late_names().empty() ||
      !b.late_names().empty() || bool(first.bias) != bool(second.bias))
    return false;
  const Form form = *form_of(a);
  const Value v = a.in(form.weights), w = b.in(form.weights);
  if (a.in(form.input) != b.in(form.input) || v.rank() != w.rank())
    return false;
  for (int64_t axis = 0; axis < v.rank(); ++axis)
    if (axis != form.weight_axis && axis - v.rank() != form.weight_axis &&
        !provably_equal(v.dim(axis), w.dim(axis)))
      return false;
  return true;
}

// Whether the weights, and what they are made of, serve nothing else: then the joined ones take their place.
bool is_only_use(Value weights) {
  while (weights.has_one_use() && !weights.is_input() &&
         (weights.node()->operand_count() == 1 || weights.node()->is("sub")))
    weights = weights.node()->operand(0);
  return weights.has_one_use();
}

std::vector<Sibling> siblings_of(const Sibling& first, Journal& journal) {
  std::vector<Sibling> siblings;
  std::vector<const Node*> tied;
  for (Node* user : first.product->in(form_of(*first.product)->input).users()) {
    const std::optional<Sibling> sibling = sibling_of(user);
    if (!sibling || !are_alike(first, *sibling))
      continue;
    if (is_only_use(user->in(form_of(*user)->weights)))
      siblings.push_back(*sibling);
    else
      tied.push_back(user);
  }
  if (siblings.size() + tied.size() > 1)
    for (const Node* each : tied)
      journal.declined(kRule, *each, "its weights are used elsewhere too, and would be there twice");
  return siblings;
}

// Moves what makes a fixed value in front of `node`.
void move_up(Value fixed, Node* node) {
  if (fixed.node()->comes_before(*node))
    return;
  for (Value operand : fixed.node()->operands())
    move_up(operand, node);
  node->graph().move_before(fixed.node(), node);
}

// One bias for all outputs, where the products have any.
Value joined_biases(const std::vector<Sibling>& siblings) {
  if (!siblings.front().bias)
    return {};
  const Node& first = *siblings.front().product;
  Extents shape = {-1};
  if (!first.is("linear"))
    shape.resize(static_cast<size_t>(first.result().rank()) - 1, 1);
  std::vector<Value> parts;
  for (const Sibling& sibling : siblings)
    parts.push_back(sibling.bias.rank() == static_cast<int64_t>(shape.size()) ? sibling.bias
                                                                              : reshape(sibling.bias, shape));
  return concat(parts, 0);
}

// Integers that are cast to wider ones, as quantised weights are: less a zero point for all of them, or for
// each output.
struct Quantised {
  Value held, zero = {};  // empty for none
};

std::optional<Quantised> quantised_of(Value weights, int64_t axis) {
  if (weights.is_input())
    return std::nullopt;
  if (weights.node()->is("cast"))
    return Quantised{weights.node()->in("x")};
  if (!weights.node()->is("sub"))
    return std::nullopt;
  const Value wide = weights.node()->in("a"), zero = weights.node()->in("b");
  if (wide.is_input() || !wide.node()->is("cast") || !zero.shape().ranked() ||
      wide.shape() != weights.shape())
    return std::nullopt;
  const int64_t along = axis < 0 ? axis : axis - weights.rank();
  for (int64_t i = -1; i >= -zero.rank(); --i)
    if (i != along && zero.dim(i) != Dim(1))
      return std::nullopt;
  return Quantised{wide.node()->in("x"), zero};
}

// The zero points as one for each output, in a shape that broadcasts to the weights.
Value zeros_of_outputs(const Quantised& weights, int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(weights.held.rank()), 1);
  int64_t& outputs = shape[static_cast<size_t>(axis < 0 ? axis + weights.held.rank() : axis)];
  outputs = *weights.held.dim(axis).constant();
  return broadcast_to(weights.zero, int_vector(weights.held.graph(), shape));
}

// Where all are quantised, they are joined before, and stay as narrow as they are held.
Value joined_weights(const std::vector<Value>& weights, int64_t axis) {
  std::vector<Value> held, zeros;
  for (Value each : weights) {
    const std::optional<Quantised> quantised = quantised_of(each, axis);
    if (!quantised || (!held.empty() && held.front().dtype() != quantised->held.dtype()))
      return concat(weights, axis);
    held.push_back(quantised->held);
    if (quantised->zero)
      zeros.push_back(zeros_of_outputs(*quantised, axis));
  }
  if (!zeros.empty() && zeros.size() < held.size())
    return concat(weights, axis);
  const Value wide = cast(concat(held, axis), weights.front().dtype());
  return zeros.empty() ? wide : wide - concat(zeros, axis);
}

// All of the products as one, with the biases, before it is split.
Value joined_product(const std::vector<Sibling>& siblings) {
  const Node& first = *siblings.front().product;
  const Form form = *form_of(first);
  std::vector<Value> weights;
  for (const Sibling& sibling : siblings)
    weights.push_back(sibling.product->in(form.weights));
  const Value x = first.in(form.input), w = joined_weights(weights, form.weight_axis);
  const Value bias = joined_biases(siblings);
  if (first.is("linear"))
    return linear(x, w, bias);
  const Value product =
      first.graph().create(first.op(), {{form.input, x}, {form.weights, w}}, first.attributes())->result();
  return bias ? product + bias : product;
}

std::vector<Node*> nodes_of(const std::vector<Sibling>& siblings) {
  std::vector<Node*> nodes;
  for (const Sibling& sibling : siblings) {
    nodes.push_back(sibling.product);
    if (sibling.last != sibling.product)
      nodes.push_back(sibling.last);
  }
  return nodes;
}

void merge(const std::vector<Sibling>& siblings) {
  Node* first = siblings.front().product;
  std::vector<int64_t> sizes;
  for (const Sibling& sibling : siblings) {
    move_up(sibling.product->in(form_of(*first)->weights), first);
    if (sibling.bias)
      move_up(sibling.bias, first);
    sizes.push_back(sibling.outputs);
  }
  const InsertBefore here(first);
  const std::vector<Value> parts = split(joined_product(siblings), sizes, form_of(*first)->result_axis);
  for (size_t i = 0; i < siblings.size(); ++i) {
    siblings[i].last->result().replace_all_uses(parts[i]);
    parts[i].set_name(siblings[i].last->result().name());
  }
  for (const Sibling& sibling : siblings)
    erase_unused(sibling.last);
}

void merge_in(Graph& graph, Journal& journal) {
  std::unordered_set<Node*> gone;
  for (Node* node : graph.nodes()) {
    const std::optional<Sibling> first = gone.contains(node) ? std::nullopt : sibling_of(node);
    if (!first)
      continue;
    const std::vector<Sibling> siblings = siblings_of(*first, journal);
    if (siblings.size() < 2)
      continue;
    if (!journal.is_open())
      return;
    const std::vector<Node*> nodes = nodes_of(siblings);
    gone.insert(nodes.begin(), nodes.end());
    for (const Sibling& sibling : siblings) {  // what widened weights that are joined before goes, too
      Node* weights = sibling.product->in(form_of(*sibling.product)->weights).node();
      gone.insert(weights);
      for (Value operand : weights->operands())
        gone.insert(operand.node());
    }
    journal.applied(kRule, nodes, Numerics::BitExact);
    const WithSources sources(graph, sources_of(nodes));
    merge(siblings);
  }
}

}  // namespace

void merge_siblings(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) { merge_in(each, journal); });
}

}  // namespace tenon
