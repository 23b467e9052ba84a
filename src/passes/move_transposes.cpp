// move_transposes.cpp — moves transposes to where they meet others and cancel.
//
// A region is a set of nodes that compute the same on transposed values as on others, but for the axes they
// name: what is transposed before it may as well be transposed after it. From one transpose on, the region is
// as large as it can be without a new transpose of another operand; then all transposes into it go, and what
// leaves it is transposed. That is done where fewer elements are moved than before:
//
//   transpose → mean, sub, div → transpose back     becomes     mean, sub, div along other axes
#include <algorithm>
#include <set>

#include "ops/reshape.h"
#include "ops/shapes.h"
#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/match.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Permutation = std::vector<int64_t>;

constexpr std::string_view kRule = "move-transpose";
// So that the work is in proportion to the number of transposes.
constexpr size_t kMostNodes = 64;
// How large a dynamic dimension is thought to be.
constexpr int64_t kTypicalSize = 32;

const Permutation& permutation_of(const Node& transpose) { return transpose.attr("permutation"); }

Permutation inverse(const Permutation& permutation) {
  Permutation inverted(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverted[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverted;
}

// How many elements a transpose of the value moves, and one: of as many elements, fewer transposes are
// better.
double cost_of(Value value) {
  double count = 1;
  for (const Dim& dim : value.shape().dims()) {
    std::map<std::string, int64_t> sizes;
    for (const std::string& symbol : dim.symbols())
      sizes.emplace(symbol, kTypicalSize);
    count *= static_cast<double>(dim.evaluate(sizes).value_or(kTypicalSize));
  }
  return count + 1;
}

// Whether at most one dimension is not 1: then a transpose of the value is a view of it.
bool is_line(Value value) {
  const auto& dims = value.shape().dims();
  return std::count_if(dims.begin(), dims.end(), [](const Dim& dim) { return dim != Dim(1); }) <= 1;
}

// The attribute that names axes of x, empty for none, of a node that computes the same along whichever axes
// those are; nothing for other nodes.
std::optional<std::string_view> axis_attribute(const Node& node) {
  if (node.op().traits.elementwise)
    return "";
  if (node.is("softmax") || node.is("log_softmax") || node.is("concat"))
    return "axis";
  if (node.is("slice") || node.is("pad") ||
      (node.op().name.starts_with("reduce_") && node.attr("keep_dims").as<bool>()))
    return "axes";
  return std::nullopt;
}

// Whether an operand is a tensor whose axes are those of the result, rather than a list of numbers.
bool is_data_operand(const Node& node, Value operand) {
  if (node.op().traits.elementwise)
    return true;
  const std::vector<Value> data = node.ins("x");
  return std::find(data.begin(), data.end(), operand) != data.end();
}

class Region {
 public:
  explicit Region(Node* start) : start_(start), permutation_(permutation_of(*start)) {}

  // The largest region there is; and the same without nodes whose results only go where they must be
  // transposed. Returns what the better of them saves.
  double grow() {
    std::set<Node*, InOrder> waiting;
    const auto add_users = [&](Value value) {
      for (Node* user : value.users())
        waiting.insert(user);
    };
    add_users(start_->result());
    while (!waiting.empty() && nodes_.size() < kMostNodes) {
      Node* node = *waiting.begin();
      waiting.erase(waiting.begin());
      if (!can_join(*node))
        continue;
      nodes_.push_back(node);
      members_.insert(node);
      add_users(node->result());
    }
    const double saved = saving();
    if (saved > 0)
      return saved;
    prune();
    return saving();
  }

  std::vector<Node*> replaced() const {
    std::vector<Node*> all = {start_};
    all.insert(all.end(), nodes_.begin(), nodes_.end());
    return all;
  }

  void rewrite() {
    for (Node* node : nodes_)
      copy(node);
    for (Node* node : nodes_)
      if (leaves(*node)) {
        const InsertBefore here(node);
        const Value outside = transpose(inside_.at(node->result()), permutation_);
        outside.set_name(node->result().name());
        node->result().replace_all_uses(outside);
      }
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it)
      if ((*it)->result().use_count() == 0)
        (*it)->graph().erase(*it);
  }

 private:
  struct InOrder {
    bool operator()(const Node* a, const Node* b) const { return a->comes_before(*b); }
  };

  bool is_same_transpose(Value value) const {
    return !value.is_input() && value.node()->is("transpose") &&
           permutation_of(*value.node()) == permutation_;
  }
  bool is_inside(Value value) const { return !value.is_input() && members_.contains(value.node()); }

  bool can_join(const Node& node) const {
    if (node.result_count() != 1 || !node.late_names().empty() || !node.regions().empty() ||
        node.op().traits.random || !axis_attribute(node) || !is_ranked(node.result()) ||
        node.result().rank() != static_cast<int64_t>(permutation_.size()) || !keeps_order(node))
      return false;
    const std::vector<Value> operands = node.operands();
    return std::all_of(operands.begin(), operands.end(), [&](Value operand) {
      return !is_data_operand(node, operand) || is_inside(operand) || is_same_transpose(operand) ||
             is_free(operand, node);
    });
  }

  // Whether a reduction along several axes adds up in the same order after it moves.
  bool keeps_order(const Node& node) const {
    if (!node.op().name.starts_with("reduce_"))
      return true;
    Permutation moved;
    for (int64_t axis : checked_axes(node.op().name, node.attr("axes"), node.result().rank()))
      moved.push_back(permutation_[static_cast<size_t>(axis)]);
    return std::is_sorted(moved.begin(), moved.end());
  }

  // Whether the operand is there in any order of its axes.
  bool is_free(Value operand, const Node& node) const {
    return is_ranked(operand) && (node.op().traits.elementwise || operand.rank() == node.result().rank()) &&
           (is_line(operand) || is_fixed(operand));
  }

  // A transpose of what leaves the region becomes another, or none.
  static bool is_transpose(const Node& user) { return user.is("transpose"); }
  bool is_undone_by(const Node& user) const {
    return is_transpose(user) && permutation_of(user) == inverse(permutation_);
  }
  // A product takes a transpose of the last two dimensions by a flag.
  bool is_absorbed_by(const Node& user) const {
    const size_t rank = permutation_.size();
    if (!user.is("matmul") || rank < 2)
      return false;
    Permutation swapped = permutation_;
    std::swap(swapped[rank - 1], swapped[rank - 2]);
    return std::is_sorted(swapped.begin(), swapped.end());
  }

  bool leaves(const Node& node) const {
    const std::vector<Node*> users = node.result().users();
    return std::any_of(users.begin(), users.end(), [&](Node* user) { return !members_.contains(user); });
  }
  // Whether it leaves to where a transpose of it is needed.
  bool leaves_at_a_cost(const Node& node) const {
    const std::vector<Node*> users = node.result().users();
    return std::any_of(users.begin(), users.end(), [&](Node* user) {
      return !members_.contains(user) && !is_transpose(*user) && !is_absorbed_by(*user);
    });
  }

  // How many elements fewer are moved when the region is rewritten.
  double saving() const {
    if (nodes_.empty())
      return 0;
    double saved = 0;
    std::set<const Node*> entrances;
    for (const Node* node : nodes_) {
      for (Value operand : node->operands())
        if (is_same_transpose(operand))
          entrances.insert(operand.node());
      for (const Node* user : node->result().users())
        saved += is_undone_by(*user) ? cost_of(node->result()) : 0;
      saved -= leaves_at_a_cost(*node) ? cost_of(node->result()) : 0;
    }
    for (const Node* entrance : entrances) {
      const std::vector<Node*> users = entrance->result().users();
      const bool is_needed =
          std::any_of(users.begin(), users.end(), [&](Node* user) { return !members_.contains(user); });
      saved += is_needed || is_fixed(entrance->result()) ? 0 : cost_of(entrance->result());
    }
    return saved;
  }

  // Takes out nodes none of whose users profits, from the last on.
  void prune() {
    std::vector<Node*> kept;
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const std::vector<Node*> users = (*it)->result().users();
      if (std::any_of(users.begin(), users.end(), [&](Node* user) {
            return members_.contains(user) || is_undone_by(*user) || is_absorbed_by(*user);
          }))
        kept.push_back(*it);
      else
        members_.erase(*it);
    }
    nodes_.assign(kept.rbegin(), kept.rend());
  }

  // The value whose transpose the operand is.
  Value untransposed(Value operand, const Node& node) {
    if (const auto it = inside_.find(operand); it != inside_.end())
      return it->second;
    if (is_same_transpose(operand))
      return operand.node()->in("x");
    const int64_t missing = node.result().rank() - operand.rank();
    std::vector<Dim> dims(static_cast<size_t>(missing), Dim(1));
    dims.insert(dims.end(), operand.shape().dims().begin(), operand.shape().dims().end());
    const auto is_one = [](const Dim& dim) { return dim == Dim(1); };
    if (std::all_of(dims.begin(), dims.end(), is_one))
      return operand;
    std::vector<Dim> permuted;
    for (int64_t axis : inverse(permutation_))
      permuted.push_back(dims[static_cast<size_t>(axis)]);
    if (is_line(operand))
      return view(operand, Shape(permuted));
    return transpose(view(operand, Shape(dims)), inverse(permutation_));
  }

  Attributes permuted_attributes(const Node& node) const {
    Attributes attributes = node.attributes();
    const auto moved = [&](int64_t axis) {
      return permutation_[static_cast<size_t>(checked_axis(node.op().name, axis, node.result().rank()))];
    };
    const auto named = attributes.find(*axis_attribute(node));
    if (named == attributes.end())
      return attributes;
    if (named->second.kind() == AttributeKind::Int) {
      named->second = moved(named->second);
      return attributes;
    }
    Permutation axes;
    for (int64_t axis : named->second.as<Permutation>())
      axes.push_back(moved(axis));
    named->second = axes;
    return attributes;
  }

  void copy(Node* node) {
    Graph& graph = node->graph();
    const InsertBefore here(node);
    const WithSources sources(*node);
    std::vector<Operand> operands;
    for (const OperandDecl& declared : node->op().operands) {
      std::vector<Value> values;
      for (Value operand : node->ins(declared.name))
        values.push_back(is_data_operand(*node, operand) ? untransposed(operand, *node) : operand);
      operands.emplace_back(declared.name, values);
    }
    inside_[node->result()] =
        graph.create(node->op(), std::move(operands), permuted_attributes(*node))->result();
  }

  Node* start_;
  Permutation permutation_;
  std::vector<Node*> nodes_;  // in the graph's order
  std::set<const Node*> members_;
  std::map<Value, Value> inside_;  // what a node of the region gives → the same before the transpose
};

void move(Graph& graph, Journal& journal) {
  std::vector<Node*> transposes;  // what a region erases is none of these
  for (Node* node : graph.nodes())
    if (node->is("transpose") && is_ranked(node->in("x")) && !is_fixed(node->in("x")))
      transposes.push_back(node);
  for (Node* node : transposes) {
    if (node->result().use_count() == 0)
      continue;
    if (!journal.is_open())
      return;
    Region region(node);
    if (!(region.grow() > 0))
      continue;
    journal.applied(kRule, region.replaced(), Numerics::BitExact);
    region.rewrite();
  }
}

}  // namespace

void move_transposes(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) { move(each, journal); });
  remove_dead(graph, journal);
}

}  // namespace tenon
