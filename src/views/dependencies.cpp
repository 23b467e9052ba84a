// dependencies.cpp — what depends on what in a graph, and what that means for optimising it: how many nodes
// there are of each category, where it branches, which connections skip over others, which chains could be
// fused.
#include <algorithm>
#include <map>

#include "views/forms.h"
#include "views/naming.h"

namespace tenon {
namespace {

bool is_data(Value value) {
  return value.node() != nullptr && (value.node()->is("constant") || value.node()->is("parameter"));
}

// The values that flow through: not weights and constants, which are always at hand.
std::vector<Value> flowing(const Node& node) {
  std::vector<Value> values;
  for (Value operand : node.operands())
    if (!is_data(operand) && std::find(values.begin(), values.end(), operand) == values.end())
      values.push_back(operand);
  return values;
}

size_t count_users(Value value) {
  std::vector<Node*> users = value.users();
  std::sort(users.begin(), users.end());
  return static_cast<size_t>(std::unique(users.begin(), users.end()) - users.begin());
}

class Report {
 public:
  Report(const Graph& graph, std::string indent) : graph_(graph), indent_(std::move(indent)) {
    names_.name_all(graph);
    int64_t place = 0;
    for (const Node* node : graph.nodes())
      place_[node] = place++;
    place_[graph.return_node()] = place;
  }

  std::string text() {
    print_dependencies();
    print_categories();
    print_shape();
    print_skips();
    print_chains();
    for (const Node* node : graph_.nodes())
      for (size_t i = 0; i < node->regions().size(); ++i) {
        line(fmt::format("inside {}, {}:", name(*node), node->op().regions[i]));
        text_ += Report(*node->regions()[i], indent_ + "  ").text();
      }
    return text_;
  }

 private:
  void line(const std::string& what) { text_ += indent_ + what + "\n"; }

  std::string name(const Node& node) {
    return node.result_count() > 0 ? names_.name(node.result()) : std::string(node.op().name);
  }

  void print_dependencies() {
    line("who depends on whom:");
    for (const Node* node : graph_.nodes()) {
      if (node->is("constant") || node->is("parameter"))
        continue;
      std::vector<std::string> on;
      for (Value operand : node->operands())
        if (operand.node() == nullptr || !operand.node()->is("constant"))
          on.push_back(names_.name(operand));
      line(fmt::format("  {} depends on: {}", name(*node),
                       on.empty() ? "nothing" : fmt::format("{}", fmt::join(on, ", "))));
    }
  }

  void print_categories() {
    std::map<Category, int64_t> counts;
    for (const Node* node : graph_.nodes())
      ++counts[node->op().category];
    std::vector<std::string> texts;
    for (const auto& [category, count] : counts)
      texts.push_back(fmt::format("{} {}", count, tenon::name(category)));
    line(fmt::format("nodes: {} ({})", graph_.node_count(),
                     texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "))));
  }

  void print_shape() {
    std::vector<std::string> branches, joins;
    const auto look_at = [&](Value value) {
      if (!is_data(value) && count_users(value) > 1)
        branches.push_back(fmt::format("{} ({} users)", names_.name(value), count_users(value)));
    };
    for (Value input : graph_.inputs())
      look_at(input);
    for (const Node* node : graph_.nodes()) {
      for (Value result : node->results())
        look_at(result);
      if (flowing(*node).size() > 1)
        joins.push_back(name(*node));
    }
    if (branches.empty() && joins.empty())
      return line("shape: a chain");
    if (!branches.empty())
      line(fmt::format("shape: branches at {}", fmt::join(branches, ", ")));
    if (!joins.empty())
      line(fmt::format("shape: joins at {}", fmt::join(joins, ", ")));
  }

  // Whether `node` needs `value` also through another of its operands. Only nodes between the two matter.
  bool reaches(Value value, const Node& node) {
    const int64_t first = value.node() == nullptr ? -1 : place_.at(value.node());
    std::vector<const Node*> waiting;
    std::unordered_set<const Node*> seen;
    const auto look_at = [&](const Node& at, bool is_start) {
      for (Value operand : at.operands()) {
        if (operand == value && !is_start)
          return true;
        const Node* from = operand.node();
        if (from != nullptr && operand != value && place_.at(from) > first && seen.insert(from).second)
          waiting.push_back(from);
      }
      return false;
    };
    look_at(node, true);
    while (!waiting.empty()) {
      const Node* at = waiting.back();
      waiting.pop_back();
      if (look_at(*at, false))
        return true;
    }
    return false;
  }

  void print_skips() {
    std::vector<std::string> skips;
    for (const Node* node : graph_.nodes())
      for (Value operand : flowing(*node))
        if (count_users(operand) > 1 && reaches(operand, *node))
          skips.push_back(fmt::format("{} → {}", names_.name(operand), name(*node)));
    line(fmt::format("skip connections: {}",
                     skips.empty() ? "none" : fmt::format("{}", fmt::join(skips, ", "))));
  }

  // The next node of a chain: an elementwise one, when it is the only user.
  static const Node* follower(const Node& node) {
    if (node.result_count() != 1 || !node.result().has_one_use())
      return nullptr;
    const Node* user = node.result().users().front();
    return user->op().traits.elementwise ? user : nullptr;
  }

  void print_chains() {
    std::vector<std::string> chains;
    std::unordered_set<const Node*> in_chain;
    for (const Node* node : graph_.nodes()) {
      if (node->op().category != Category::Compute || in_chain.contains(node))
        continue;
      std::vector<std::string> chain = {name(*node)};
      for (const Node* next = follower(*node); next != nullptr && in_chain.insert(next).second;
           next = follower(*next))
        chain.push_back(name(*next));
      if (chain.size() > 1)
        chains.push_back(fmt::format("{}", fmt::join(chain, " → ")));
    }
    line(chains.empty() ? "chains that could fuse: none" : "chains that could fuse:");
    for (const std::string& chain : chains)
      line("  " + chain);
  }

  const Graph& graph_;
  std::string indent_, text_;
  ViewNames names_;
  std::unordered_map<const Node*, int64_t> place_;
};

}  // namespace

std::string show_as_dependencies(const Graph& graph) { return Report(graph, "").text(); }

}  // namespace tenon
