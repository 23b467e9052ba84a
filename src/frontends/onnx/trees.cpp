// trees.cpp — ONNX ensembles of decision trees, in their older and newer form.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/scores.h"
#include "frontends/onnx/vectors.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/ml.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

std::vector<double> tensor_reals(const NodeView& n, std::string_view name) {
  return widen<double>(n.literal(name).tensor());
}

// Opset 3 lets a list of floats be given as a tensor of doubles instead. Empty where neither is there.
std::vector<double> list_or_tensor(const NodeView& n, const std::string& name) {
  if (n.has(name))
    return n.reals(name);
  return n.has(name + "_as_tensor") ? tensor_reals(n, name + "_as_tensor") : std::vector<double>();
}

// --- the older form: nodes and leaves in one list, by the numbers of their tree and of themselves ---

using NodeId = std::pair<int64_t, int64_t>;  // tree, node

// Leaves are negative, as in our trees.
std::map<NodeId, int64_t> number_nodes(const NodeView& n, const std::vector<int64_t>& tree_ids,
                                       const std::vector<std::string>& modes) {
  const std::vector<int64_t> ids = n.integers("nodes_nodeids");
  if (ids.size() != tree_ids.size() || modes.size() != tree_ids.size())
    throw user_error("{}: the lists that describe nodes differ in length", n.op_type());
  std::map<NodeId, int64_t> references;
  int64_t nodes = 0, leaves = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    if (!references.emplace(NodeId{tree_ids[i], ids[i]}, modes[i] == "LEAF" ? -1 - leaves++ : nodes++).second)
      throw user_error("{}: node {} of tree {} is there twice", n.op_type(), ids[i], tree_ids[i]);
  return references;
}

int64_t mode_number(const NodeView& n, std::string_view mode) {
  constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto it = std::ranges::find(modes, mode);
  if (it == std::end(modes))
    throw user_error("{}: a node has mode \"{}\", which has no meaning", n.op_type(), mode);
  return it - std::begin(modes);
}

// `votes` is what the attributes for the weights of leaves begin with; `target_ids` are the targets they are
// for.
Trees read_trees(const NodeView& n, const std::string& votes, const std::vector<int64_t>& target_ids) {
  const std::vector<int64_t> tree_ids = n.integers("nodes_treeids");
  const std::vector<std::string> modes = n.texts("nodes_modes");
  const std::map<NodeId, int64_t> references = number_nodes(n, tree_ids, modes);
  const auto find = [&](int64_t tree, int64_t node) {
    const auto it = references.find({tree, node});
    if (it == references.end())
      throw user_error("{}: there is no node {} in tree {}", n.op_type(), node, tree);
    return it->second;
  };
  const std::vector<int64_t> ids = n.integers("nodes_nodeids"), features = n.integers("nodes_featureids"),
                             on_true = n.integers("nodes_truenodeids"),
                             on_false = n.integers("nodes_falsenodeids"),
                             missing = n.integers("nodes_missing_value_tracks_true", {});
  const std::vector<double> values = list_or_tensor(n, "nodes_values");
  for (size_t size : {features.size(), on_true.size(), on_false.size(), values.size()})
    if (size != ids.size() || (!missing.empty() && missing.size() != ids.size()))
      throw user_error("{}: the lists that describe nodes differ in length", n.op_type());
  Trees trees;
  std::map<int64_t, bool> seen;
  size_t leaves = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!std::exchange(seen[tree_ids[i]], true))  // the first node of a tree is its root
      trees.roots.push_back(find(tree_ids[i], ids[i]));
    if (modes[i] == "LEAF") {
      ++leaves;
      continue;
    }
    trees.features.push_back(features[i]);
    trees.modes.push_back(mode_number(n, modes[i]));
    trees.splits.push_back(values[i]);
    trees.on_true.push_back(find(tree_ids[i], on_true[i]));
    trees.on_false.push_back(find(tree_ids[i], on_false[i]));
    if (!missing.empty())
      trees.missing_is_true.push_back(missing[i]);
  }
  const std::vector<int64_t> vote_trees = n.integers(votes + "_treeids"),
                             vote_nodes = n.integers(votes + "_nodeids");
  const std::vector<double> weights = list_or_tensor(n, votes + "_weights");
  if (vote_trees.size() != target_ids.size() || vote_nodes.size() != target_ids.size() ||
      weights.size() != target_ids.size())
    throw user_error("{}: the lists that describe leaves differ in length", n.op_type());
  std::vector<std::vector<size_t>> votes_of(leaves);
  for (size_t i = 0; i < target_ids.size(); ++i) {
    const int64_t leaf = find(vote_trees[i], vote_nodes[i]);
    if (leaf >= 0)
      throw user_error("{}: node {} of tree {} has a weight, but is no leaf", n.op_type(), vote_nodes[i],
                       vote_trees[i]);
    votes_of[static_cast<size_t>(-1 - leaf)].push_back(i);
  }
  trees.leaf_starts = {0};
  for (const std::vector<size_t>& leaf : votes_of) {
    for (size_t vote : leaf) {
      trees.leaf_targets.push_back(target_ids[vote]);
      trees.leaf_weights.push_back(weights[vote]);
    }
    trees.leaf_starts.push_back(static_cast<int64_t>(trees.leaf_targets.size()));
  }
  return trees;
}

Value add_base(const NodeView& n, Value scores, const std::vector<double>& base) {
  return base.empty() ? scores : scores + constant(n.graph(), float_vector(base));
}

std::vector<Value> regressed(const NodeView& n) {
  const std::vector<int64_t> targets = n.integers("target_ids");
  const std::string aggregate = n.translate<std::string>(
      "aggregate_function", "SUM", {{"SUM", "sum"}, {"AVERAGE", "average"}, {"MIN", "min"}, {"MAX", "max"}});
  const Value scores =
      tree_ensemble(n.in(0), read_trees(n, "target", targets), n.integer("n_targets"), aggregate, DType::F32);
  return {transform_scores(n, add_base(n, scores, list_or_tensor(n, "base_values")))};
}

// Two classes, but weights for one only: the score s of that one decides. Where no weight is negative it is a
// probability, and the other class has 1 - s; else the other has -s.
std::vector<Value> classified_by_one(const NodeView& n, Value score, const Tensor& labels, bool probability) {
  Graph& graph = n.graph();
  const Value positive = greater(score, scalar(graph, DType::F32, probability ? 0.5 : 0));
  const Value label = gather(constant(graph, labels), squeeze(cast(positive, DType::I64), {1}), 0);
  const Value both = score * constant(graph, float_vector({-1, 1}));
  if (probability)
    return {label, both + constant(graph, float_vector({1, 0}))};
  return {label, n.text("post_transform", "NONE") == "LOGISTIC" ? sigmoid(both) : both};
}

std::vector<Value> classified(const NodeView& n) {
  const Tensor labels = class_labels(n, "classlabels_int64s", "classlabels_strings");
  std::vector<int64_t> classes = n.integers("class_ids");
  const std::vector<double> base = list_or_tensor(n, "base_values");
  const bool one_only = std::ranges::adjacent_find(classes, std::not_equal_to<>()) == classes.end();
  if (labels.count() == 2 && one_only) {
    std::ranges::fill(classes, 0);
    const Trees trees = read_trees(n, "class", classes);
    const bool probability =
        std::ranges::all_of(trees.leaf_weights, [](double weight) { return weight >= 0; });
    Value score = tree_ensemble(n.in(0), trees, 1, "sum", DType::F32);
    if (!base.empty())
      score = score + base.back();
    return classified_by_one(n, score, labels, probability);
  }
  const Value scores = add_base(
      n, tree_ensemble(n.in(0), read_trees(n, "class", classes), labels.count(), "sum", DType::F32), base);
  return {gather(constant(n.graph(), labels), arg_max(scores, 1), 0), transform_scores(n, scores)};
}

// --- the newer form ---

// Where a branch leads to, in our numbering: leaves are negative.
std::vector<int64_t> branches(const NodeView& n, std::string_view ids, std::string_view are_leaves) {
  std::vector<int64_t> references = n.integers(ids);
  const std::vector<int64_t> leaves = n.integers(are_leaves);
  if (references.size() != leaves.size())
    throw user_error("TreeEnsemble: {} and {} differ in length", ids, are_leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (references[i] < 0)
      throw user_error("TreeEnsemble: {} holds {}", ids, references[i]);
    if (leaves[i] != 0)
      references[i] = -1 - references[i];
  }
  return references;
}

std::string_view numbered(const NodeView& n, std::string_view attribute, int64_t otherwise,
                          const std::vector<std::string_view>& names) {
  const int64_t number = n.integer(attribute, otherwise);
  if (number < 0 || number >= std::ssize(names))
    throw user_error("TreeEnsemble: {} is {}, which has no meaning", attribute, number);
  return names[static_cast<size_t>(number)];
}

std::vector<Value> ensemble(const NodeView& n) {
  Trees trees;
  trees.roots = n.integers("tree_roots");
  trees.features = n.integers("nodes_featureids");
  trees.modes = as_ints(n.literal("nodes_modes").tensor());
  trees.splits = tensor_reals(n, "nodes_splits");
  if (n.has("membership_values"))
    trees.members = tensor_reals(n, "membership_values");
  trees.on_true = branches(n, "nodes_truenodeids", "nodes_trueleafs");
  trees.on_false = branches(n, "nodes_falsenodeids", "nodes_falseleafs");
  trees.missing_is_true = n.integers("nodes_missing_value_tracks_true", {});
  trees.leaf_targets = n.integers("leaf_targetids");
  trees.leaf_weights = tensor_reals(n, "leaf_weights");
  trees.leaf_starts.resize(trees.leaf_targets.size() + 1);  // every leaf has one weight
  std::iota(trees.leaf_starts.begin(), trees.leaf_starts.end(), 0);
  const Value x = n.in(0);
  const std::string_view aggregate = numbered(n, "aggregate_function", 1, {"average", "sum", "min", "max"});
  const Value scores = tree_ensemble(x, trees, n.integer("n_targets"), aggregate, x.dtype());
  return {transform_scores(
      n, scores,
      numbered(n, "post_transform", 0, {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}))};
}

}  // namespace

const Conversions& tree_conversions() {
  static const Conversions conversions = {
      {"TreeEnsemble", ensemble, "ai.onnx.ml"},
      {"TreeEnsembleClassifier", classified, "ai.onnx.ml"},
      {"TreeEnsembleRegressor", regressed, "ai.onnx.ml"},
  };
  return conversions;
}

}  // namespace tenon::onnx
