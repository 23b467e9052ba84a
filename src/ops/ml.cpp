#include "ops/ml.h"

#include <algorithm>
#include <map>

#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/order.h"
#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- map_labels ---

namespace map_labels_op {

void check(const Node& n, DType x) {
  const Literal &keys = n.attr("keys"), &values = n.attr("values"), &otherwise = n.attr("otherwise");
  if (keys.dtype() != x)
    throw user_error("map_labels: x is of {}, but the keys are of {}", x, keys.dtype());
  if (otherwise.dtype() != values.dtype() || otherwise.count() != 1)
    throw user_error("map_labels: otherwise is {}, but one element of {} was wanted",
                     describe(otherwise.dtype(), otherwise.extents()), values.dtype());
  if (keys.count() != values.count())
    throw user_error("map_labels: there are {} keys for {} values", keys.count(), values.count());
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  check(n, x.dtype());
  return {Type::tensor(n.attr("values").as<Literal>().dtype(), x.shape())};
}

// Where each element of x stands among the keys, -1 for those that do not. Of equal keys the last counts.
template <class T>
std::vector<int64_t> find(std::span<const T> x, std::span<const T> keys) {
  std::map<T, int64_t, ComesBefore> positions;
  for (size_t i = 0; i < keys.size(); ++i)
    positions[keys[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> found;
  for (const T& element : x) {
    const auto it = positions.find(element);
    found.push_back(it == positions.end() ? -1 : it->second);
  }
  return found;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  check(c.node(), x.dtype());
  const auto literal = [&](std::string_view name) { return c.node().attr(name).as<Literal>().tensor(); };
  const Tensor keys = literal("keys"), values = literal("values"), otherwise = literal("otherwise");
  const std::vector<int64_t> found =
      x.dtype() == DType::String
          ? find<std::string>(x.strings(), keys.strings())
          : with_wide(x.dtype(), [&]<class T>(T) { return find<T>(widen<T>(x), widen<T>(keys)); });
  Tensor y(values.dtype(), x.extents());
  with_storage(values.dtype(), [&]<class T>(T) {
    auto to = mutable_stored<T>(y).begin();
    for (int64_t position : found)
      *to++ = position < 0 ? stored<T>(otherwise)[0] : stored<T>(values)[static_cast<size_t>(position)];
  });
  return {y};
}

constexpr int64_t kMostKeysCompared = 64;

Scalar element_of(const Tensor& t, size_t i) {
  return with_wide(t.dtype(), [&]<class T>(T) { return Scalar::number(t.dtype(), widen<T>(t)[i]); });
}

// Every key is compared; more of them are found faster in a tree.
void lower(LowerContext& c) {
  const Value x = c.node().in("x");
  const auto literal = [&](std::string_view name) -> const Literal& {
    return c.node().attr(name).as<Literal>();
  };
  if (literal("keys").count() > kMostKeysCompared)
    return;
  const Tensor keys = literal("keys").tensor(), values = literal("values").tensor(),
               otherwise = literal("otherwise").tensor();
  c.define([&](const Index& at) {
    const Scalar element = c.stored(x, at);
    Scalar result = element_of(otherwise, 0);
    for (size_t i = 0; i < static_cast<size_t>(keys.count()); ++i) {
      const Scalar key = element_of(keys, i);
      const Scalar same = equal(element, key);
      result = select(is_float(x.dtype()) ? same || (is_nan(element) && is_nan(key)) : same,
                      element_of(values, i), result);
    }
    return result;
  });
}

}  // namespace map_labels_op

// --- tree_ensemble ---

namespace tree_ensemble_op {

using Ints = Attribute::Ints;
using Floats = Attribute::Floats;

enum class Aggregate : uint8_t { Sum, Average, Min, Max };

Aggregate aggregate_of(const Node& n) {
  return named<Aggregate>(n, "aggregate",
                          {{"sum", Aggregate::Sum},
                           {"average", Aggregate::Average},
                           {"min", Aggregate::Min},
                           {"max", Aggregate::Max}});
}

// The sets that nodes of mode Member test for, one for each such node, in order.
std::vector<std::vector<double>> read_sets(const Floats& members) {
  std::vector<std::vector<double>> sets;
  bool open = false;
  for (double member : members) {
    if (!open)
      sets.emplace_back();
    open = !std::isnan(member);
    if (open)
      sets.back().push_back(member);
  }
  return sets;
}

// Everything but the number of features; after this no index of the trees is out of range.
void check(const Node& n) {
  const auto refuse = [](const std::string& what) { return user_error("tree_ensemble: {}", what); };
  const Ints &features = n.attr("features"), &modes = n.attr("modes"), &on_true = n.attr("on_true"),
             &on_false = n.attr("on_false"), &missing = n.attr("missing_is_true"), &roots = n.attr("roots"),
             &starts = n.attr("leaf_starts"), &leaf_targets = n.attr("leaf_targets");
  const size_t nodes = features.size();
  if (modes.size() != nodes || on_true.size() != nodes || on_false.size() != nodes ||
      n.attr("splits").as<Floats>().size() != nodes || (!missing.empty() && missing.size() != nodes))
    throw refuse("the lists that describe nodes differ in length");
  if (std::ranges::any_of(modes, [](int64_t mode) { return mode < 0 || mode > 6; }))
    throw refuse("modes must be from 0 to 6");
  const auto tests = std::ranges::count(modes, static_cast<int64_t>(SplitMode::Member));
  if (const size_t sets = read_sets(n.attr("members")).size(); static_cast<size_t>(tests) != sets)
    throw refuse(fmt::format("{} nodes test for membership, but there are {} sets", tests, sets));
  if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) ||
      starts.back() != static_cast<int64_t>(leaf_targets.size()) ||
      n.attr("leaf_weights").as<Floats>().size() != leaf_targets.size())
    throw refuse("leaf_starts do not divide the targets and weights of leaves");
  const int64_t targets = n.attr("targets"), leaves = static_cast<int64_t>(starts.size()) - 1;
  if (targets < 0 || std::ranges::any_of(leaf_targets, [&](int64_t t) { return t < 0 || t >= targets; }))
    throw refuse(fmt::format("a leaf is for a target that is not among the {}", targets));
  for (const Ints* references : {&roots, &on_true, &on_false})
    for (int64_t reference : *references)
      if (reference < -leaves || reference >= static_cast<int64_t>(nodes))
        throw refuse(fmt::format("there is no {} {}", reference < 0 ? "leaf" : "node",
                                 reference < 0 ? -1 - reference : reference));
  if (const DType dtype = n.attr("dtype"); !is_float(dtype))
    throw refuse(fmt::format("the result must be of floats, not of {}", dtype));
  aggregate_of(n);
}

void check_features(const Node& n, int64_t count) {
  for (int64_t feature : n.attr("features").as<Ints>())
    if (feature < 0 || feature >= count)
      throw user_error("tree_ensemble: feature {} is tested, but x has {} features", feature, count);
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() != 2)
    throw operand_error(n, "x must be a matrix: one row of features for each result");
  check(n);
  if (const auto features = x.dim(1).constant())
    check_features(n, *features);
  return {Type::tensor(n.attr("dtype"), {x.dim(0), n.attr("targets").as<int64_t>()})};
}

bool holds(SplitMode mode, double value, double split, const std::vector<double>* set) {
  switch (mode) {
    case SplitMode::LessEqual:
      return value <= split;
    case SplitMode::Less:
      return value < split;
    case SplitMode::GreaterEqual:
      return value >= split;
    case SplitMode::Greater:
      return value > split;
    case SplitMode::Equal:
      return value == split;
    case SplitMode::NotEqual:
      return value != split;
    case SplitMode::Member:
      return std::ranges::find(*set, value) != set->end();
  }
  CHECK(false, "a split of mode {}", static_cast<int>(mode));
}

// The nodes as the walk needs them.
struct Split {
  SplitMode mode;
  bool missing_is_true;
  int64_t feature, on_true, on_false;
  double split;
  const std::vector<double>* set;
};

std::vector<Split> read_splits(const Node& n, const std::vector<std::vector<double>>& sets) {
  const Ints &features = n.attr("features"), &modes = n.attr("modes"), &on_true = n.attr("on_true"),
             &on_false = n.attr("on_false"), &missing = n.attr("missing_is_true");
  const Floats& splits = n.attr("splits");
  auto set = sets.begin();
  std::vector<Split> all;
  for (size_t i = 0; i < features.size(); ++i) {
    const auto mode = static_cast<SplitMode>(modes[i]);
    all.push_back({mode, !missing.empty() && missing[i] != 0, features[i], on_true[i], on_false[i], splits[i],
                   mode == SplitMode::Member ? &*set++ : nullptr});
  }
  return all;
}

// The leaf that a row of features leads to. A walk longer than there are nodes has come around in a circle.
int64_t find_leaf(const std::vector<Split>& splits, int64_t root, const double* row) {
  int64_t at = root;
  for (size_t steps = 0; at >= 0; ++steps) {
    if (steps == splits.size())
      throw user_error("tree_ensemble: the tree of node {} has a circle", root);
    const Split& split = splits[static_cast<size_t>(at)];
    const double value = row[split.feature];
    const bool yes =
        holds(split.mode, value, split.split, split.set) || (split.missing_is_true && std::isnan(value));
    at = yes ? split.on_true : split.on_false;
  }
  return -1 - at;
}

Data eval(const Call& c) {
  const Node& n = c.node();
  const Tensor& x = c.in("x");
  if (x.rank() != 2)
    throw user_error("tree_ensemble: x of shape [{}] is no matrix", fmt::join(x.extents(), ","));
  check(n);
  check_features(n, x.extent(1));
  const std::vector<double> values = widen<double>(x);
  const auto sets = read_sets(n.attr("members"));
  const std::vector<Split> splits = read_splits(n, sets);
  const Ints &roots = n.attr("roots"), &starts = n.attr("leaf_starts"),
             &leaf_targets = n.attr("leaf_targets");
  const Floats& weights = n.attr("leaf_weights");
  const Aggregate aggregate = aggregate_of(n);
  const int64_t targets = n.attr("targets");
  const auto combine = [&](double old, double weight) {
    if (aggregate == Aggregate::Min)
      return std::min(old, weight);
    if (aggregate == Aggregate::Max)
      return std::max(old, weight);
    return old + weight;
  };
  Tensor scores(DType::F64, {x.extent(0), targets});
  for (int64_t row = 0; row < x.extent(0); ++row) {
    const std::span<double> score = scores.mutable_data<double>().subspan(static_cast<size_t>(row * targets),
                                                                          static_cast<size_t>(targets));
    std::vector<bool> reached(static_cast<size_t>(targets));
    for (int64_t root : roots) {
      const auto leaf = static_cast<size_t>(find_leaf(splits, root, values.data() + row * x.extent(1)));
      for (int64_t i = starts[leaf]; i < starts[leaf + 1]; ++i) {
        const auto target = static_cast<size_t>(leaf_targets[static_cast<size_t>(i)]);
        const double weight = weights[static_cast<size_t>(i)];
        score[target] = reached[target] ? combine(score[target], weight) : weight;
        reached[target] = true;
      }
    }
    if (aggregate == Aggregate::Average)
      for (double& each : score)
        each /= static_cast<double>(roots.size());
  }
  return {narrow<double>(n.attr("dtype"), scores.extents(), scores.data<double>())};
}

}  // namespace tree_ensemble_op

}  // namespace

const Family& ml_ops() {
  static const Family ops = {
      {.name = "map_labels",
       .doc =
           "for every element of x the value beside its key; of equal keys the last counts, NaN equals NaN",
       .operands = {{"x", "T"}},
       .attributes = {{"keys", AttributeKind::Literal, "a vector"},
                      {"values", AttributeKind::Literal, "a vector of the same length"},
                      {"otherwise", AttributeKind::Literal, "what an element that is no key becomes"}},
       .results = {{"y", "any"}},
       .types = {{"T", NumbersAndBool | DTypeSet{DType::String}}},
       .traits = {.elementwise = true, .takes_unranked = true},
       .infer = map_labels_op::infer,
       .eval = map_labels_op::eval,
       .lower = map_labels_op::lower,
       .grad = no_gradient},
      {.name = "tree_ensemble",
       .doc = "for every row of features and every target, the weights of the leaves that decision trees "
              "lead to",
       .operands = {{"x", "T"}},
       .attributes =
           {{"roots", AttributeKind::Ints, "the node where each tree begins; -1 is leaf 0, -2 leaf 1, …"},
            {"features", AttributeKind::Ints, "for each node, the feature it tests"},
            {"modes", AttributeKind::Ints, "how: 0 ≤, 1 <, 2 ≥, 3 >, 4 =, 5 ≠, 6 whether it is in a set"},
            {"splits", AttributeKind::Floats, "what it is compared with"},
            {"members", AttributeKind::Floats, "the sets, for each node of mode 6 one, each ended by NaN",
             Attribute::Floats()},
            {"on_true", AttributeKind::Ints, "the next node when the test holds; negative: a leaf"},
            {"on_false", AttributeKind::Ints, "the next node when it does not"},
            {"missing_is_true", AttributeKind::Ints, "1 where the test holds for NaN; none: nowhere",
             Attribute::Ints()},
            {"leaf_starts", AttributeKind::Ints,
             "where the weights of each leaf start, and where those of the last end"},
            {"leaf_targets", AttributeKind::Ints, "the target of each weight"},
            {"leaf_weights", AttributeKind::Floats, "the weights"},
            {"targets", AttributeKind::Int, "how many targets there are"},
            {"aggregate", AttributeKind::String,
             "how the weights for a target are joined: sum, average (over all trees), min or max; 0 for none",
             "sum"},
            {"dtype", AttributeKind::DType, "the dtype of the result"}},
       .results = {{"y", "$dtype"}},
       .types = {{"T", Numbers}},
       .infer = tree_ensemble_op::infer,
       .eval = tree_ensemble_op::eval,
       .grad = no_gradient},
  };
  return ops;
}

Value map_labels(Value x, Literal keys, Literal values, Literal otherwise) {
  return x.graph()
      .create("map_labels", {{"x", x}},
              {{"keys", std::move(keys)}, {"values", std::move(values)}, {"otherwise", std::move(otherwise)}})
      ->result();
}

Value tree_ensemble(Value x, const Trees& trees, int64_t targets, std::string_view aggregate, DType dtype) {
  return x.graph()
      .create("tree_ensemble", {{"x", x}},
              {{"roots", trees.roots},
               {"features", trees.features},
               {"modes", trees.modes},
               {"splits", trees.splits},
               {"members", trees.members},
               {"on_true", trees.on_true},
               {"on_false", trees.on_false},
               {"missing_is_true", trees.missing_is_true},
               {"leaf_starts", trees.leaf_starts},
               {"leaf_targets", trees.leaf_targets},
               {"leaf_weights", trees.leaf_weights},
               {"targets", targets},
               {"aggregate", aggregate},
               {"dtype", dtype}})
      ->result();
}

}  // namespace tenon
