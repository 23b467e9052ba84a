// trees.cpp — ONNX ensembles of decision trees, in their older and newer form.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

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

// What describes the nodes, one entry of each list per node.
struct NodeLists {
  std::vector<int64_t> tree_ids, ids, features, on_true, on_false;
  std::vector<int64_t> missing_is_true;  // may be empty
  std::vector<std::string> modes;
  std::vector<double> values;

  bool is_leaf(size_t i) const { return modes[i] == "LEAF"; }
};

NodeLists read_nodes(const NodeView& n) {
  NodeLists nodes = {.tree_ids = n.integers("nodes_treeids"),
                     .ids = n.integers("nodes_nodeids"),
                     .features = n.integers("nodes_featureids"),
                     .on_true = n.integers("nodes_truenodeids"),
                     .on_false = n.integers("nodes_falsenodeids"),
                     .missing_is_true = n.integers("nodes_missing_value_tracks_true", {}),
                     .modes = n.texts("nodes_modes"),
                     .values = list_or_tensor(n, "nodes_values")};
  const size_t count = nodes.ids.size();
  for (size_t size : {nodes.tree_ids.size(), nodes.features.size(), nodes.on_true.size(),
                      nodes.on_false.size(), nodes.modes.size(), nodes.values.size(),
                      nodes.missing_is_true.empty() ? count : nodes.missing_is_true.size()})
    if (size != count)
      throw user_error("{}: the lists that describe nodes differ in length", n.op_type());
  return nodes;
}

// Our numbers for the nodes. Leaves are negative, as in our trees.
class NodeNumbers {
 public:
  NodeNumbers(const NodeView& n, const NodeLists& nodes) : n_(n) {
    int64_t inner = 0;
    for (size_t i = 0; i < nodes.ids.size(); ++i) {
      const int64_t number = nodes.is_leaf(i) ? -1 - leaves_++ : inner++;
      if (!numbers_.emplace(std::pair(nodes.tree_ids[i], nodes.ids[i]), number).second)
        throw user_error("{}: node {} of tree {} is there twice", n.op_type(), nodes.ids[i],
                         nodes.tree_ids[i]);
    }
  }

  int64_t find(int64_t tree, int64_t node) const {
    const auto it = numbers_.find({tree, node});
    if (it == numbers_.end())
      throw user_error("{}: there is no node {} in tree {}", n_.op_type(), node, tree);
    return it->second;
  }
  // The position of a leaf among the leaves.
  size_t find_leaf(int64_t tree, int64_t node) const {
    const int64_t number = find(tree, node);
    if (number >= 0)
      throw user_error("{}: node {} of tree {} has a weight, but is no leaf", n_.op_type(), node, tree);
    return static_cast<size_t>(-1 - number);
  }
  size_t leaf_count() const { return static_cast<size_t>(leaves_); }

 private:
  const NodeView& n_;
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers_;  // by the numbers of tree and node
  int64_t leaves_ = 0;
};

int64_t mode_number(const NodeView& n, std::string_view mode) {
  constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto it = std::ranges::find(modes, mode);
  if (it == std::end(modes))
    throw user_error("{}: a node has mode \"{}\", which has no meaning", n.op_type(), mode);
  return it - std::begin(modes);
}

void add_nodes(const NodeView& n, const NodeLists& nodes, const NodeNumbers& numbers, Trees& trees) {
  std::set<int64_t> seen;
  for (size_t i = 0; i < nodes.ids.size(); ++i) {
    const int64_t tree = nodes.tree_ids[i];
    if (seen.insert(tree).second)  // the first node of a tree is its root
      trees.roots.push_back(numbers.find(tree, nodes.ids[i]));
    if (nodes.is_leaf(i))
      continue;
    trees.features.push_back(nodes.features[i]);
    trees.modes.push_back(mode_number(n, nodes.modes[i]));
    trees.splits.push_back(nodes.values[i]);
    trees.on_true.push_back(numbers.find(tree, nodes.on_true[i]));
    trees.on_false.push_back(numbers.find(tree, nodes.on_false[i]));
    if (!nodes.missing_is_true.empty())
      trees.missing_is_true.push_back(nodes.missing_is_true[i]);
  }
}

void add_leaves(const NodeView& n, const std::string& votes, const std::vector<int64_t>& target_ids,
                const NodeNumbers& numbers, Trees& trees) {
  const std::vector<int64_t> tree_ids = n.integers(votes + "_treeids"), ids = n.integers(votes + "_nodeids");
  const std::vector<double> weights = list_or_tensor(n, votes + "_weights");
  if (tree_ids.size() != target_ids.size() || ids.size() != target_ids.size() ||
      weights.size() != target_ids.size())
    throw user_error("{}: the lists that describe leaves differ in length", n.op_type());
  std::vector<std::vector<size_t>> votes_of(numbers.leaf_count());
  for (size_t i = 0; i < target_ids.size(); ++i)
    votes_of[numbers.find_leaf(tree_ids[i], ids[i])].push_back(i);
  trees.leaf_starts = {0};
  for (const std::vector<size_t>& leaf : votes_of) {
    for (size_t vote : leaf) {
      trees.leaf_targets.push_back(target_ids[vote]);
      trees.leaf_weights.push_back(weights[vote]);
    }
    trees.leaf_starts.push_back(static_cast<int64_t>(trees.leaf_targets.size()));
  }
}

// `votes` is what the attributes for the weights of leaves begin with; `target_ids` are the targets they are
// for.
Trees read_trees(const NodeView& n, const std::string& votes, const std::vector<int64_t>& target_ids) {
  const NodeLists nodes = read_nodes(n);
  const NodeNumbers numbers(n, nodes);
  Trees trees;
  add_nodes(n, nodes, numbers, trees);
  add_leaves(n, votes, target_ids, numbers, trees);
  return trees;
}

Value add_base(const NodeView& n, Value scores, const std::vector<double>& base) {
  return base.empty() ? scores : scores + constant(n.graph(), float_vector(base));
}

std::vector<Value> convert_tree_ensemble_regressor(const NodeView& n) {
  const std::vector<int64_t> targets = n.integers("target_ids");
  const std::string aggregate = n.translate<std::string>(
      "aggregate_function", "SUM", {{"SUM", "sum"}, {"AVERAGE", "average"}, {"MIN", "min"}, {"MAX", "max"}});
  const Value scores =
      tree_ensemble(n.in(0), read_trees(n, "target", targets), n.integer("n_targets"), aggregate, DType::F32);
  return {transform_scores(n, add_base(n, scores, list_or_tensor(n, "base_values")))};
}

// Two classes, but weights for one only: the score s of that one decides. Where no weight is negative it is a
// probability, and the other class has 1 - s; else the other has -s.
std::vector<Value> classify_by_one(const NodeView& n, Value score, const Tensor& labels, bool probability) {
  Graph& graph = n.graph();
  const Value positive = greater(score, scalar(graph, DType::F32, probability ? 0.5 : 0));
  const Value label = gather(constant(graph, labels), squeeze(cast(positive, DType::I64), {1}), 0);
  const Value both = score * constant(graph, float_vector({-1, 1}));
  if (probability)
    return {label, both + constant(graph, float_vector({1, 0}))};
  return {label, n.text("post_transform", "NONE") == "LOGISTIC" ? sigmoid(both) : both};
}

std::vector<Value> convert_tree_ensemble_classifier(const NodeView& n) {
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
    return classify_by_one(n, score, labels, probability);
  }
  const Value scores = add_base(
      n, tree_ensemble(n.in(0), read_trees(n, "class", classes), labels.count(), "sum", DType::F32), base);
  return {gather(constant(n.graph(), labels), arg_max(scores, 1), 0), transform_scores(n, scores)};
}

// --- the newer form ---

// Where a branch leads to, in our numbering: leaves are negative.
std::vector<int64_t> read_branches(const NodeView& n, std::string_view ids, std::string_view are_leaves) {
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

std::string_view read_numbered(const NodeView& n, std::string_view attribute, int64_t otherwise,
                               const std::vector<std::string_view>& names) {
  const int64_t number = n.integer(attribute, otherwise);
  if (number < 0 || number >= std::ssize(names))
    throw user_error("TreeEnsemble: {} is {}, which has no meaning", attribute, number);
  return names[static_cast<size_t>(number)];
}

std::vector<Value> convert_tree_ensemble(const NodeView& n) {
  Trees trees;
  trees.roots = n.integers("tree_roots");
  trees.features = n.integers("nodes_featureids");
  trees.modes = as_ints(n.literal("nodes_modes").tensor());
  trees.splits = tensor_reals(n, "nodes_splits");
  if (n.has("membership_values"))
    trees.members = tensor_reals(n, "membership_values");
  trees.on_true = read_branches(n, "nodes_truenodeids", "nodes_trueleafs");
  trees.on_false = read_branches(n, "nodes_falsenodeids", "nodes_falseleafs");
  trees.missing_is_true = n.integers("nodes_missing_value_tracks_true", {});
  trees.leaf_targets = n.integers("leaf_targetids");
  trees.leaf_weights = tensor_reals(n, "leaf_weights");
  trees.leaf_starts.resize(trees.leaf_targets.size() + 1);  // every leaf has one weight
  std::iota(trees.leaf_starts.begin(), trees.leaf_starts.end(), 0);
  const Value x = n.in(0);
  const std::string_view aggregate =
      read_numbered(n, "aggregate_function", 1, {"average", "sum", "min", "max"});
  const Value scores = tree_ensemble(x, trees, n.integer("n_targets"), aggregate, x.dtype());
  return {transform_scores(
      n, scores,
      read_numbered(n, "post_transform", 0, {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}))};
}

}  // namespace

const Conversions& tree_conversions() {
  static const Conversions conversions = {
      {"TreeEnsemble", convert_tree_ensemble, "ai.onnx.ml"},
      {"TreeEnsembleClassifier", convert_tree_ensemble_classifier, "ai.onnx.ml"},
      {"TreeEnsembleRegressor", convert_tree_ensemble_regressor, "ai.onnx.ml"},
  };
  return conversions;
}

}  // namespace tenon::onnx
