// dependencies.cpp — what depends on what in a graph, and what that means for optimising it: how many nodes
// there are of each category, where it branches, which connections skip over others, which chains could be
// fused.
#include <algorithm>
#include <map>

#include "views/constants.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/users.h"

namespace tenon {
namespace {

// Steps that the search for skip connections may take in one graph: more than models of thousands of nodes
// need, and less than a second.
constexpr int64_t kMostSteps = 5'000'000;

// The values that flow through: not weights and constants, which are always at hand.
std::vector<Value> flowing(const Node& node) {
  std::vector<Value> values;
  std::unordered_set<const ValueData*> seen;
  for (Value operand : node.operands())
    if (literal_of(operand) == nullptr && seen.insert(operand.data()).second)
      values.push_back(operand);
  return values;
}

class Report {
 public:
  Report(const Graph& graph, std::string indent)
      : graph_(graph), indent_(std::move(indent)), user_counts_(graph) {
    names_.name_all(graph);
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      const auto place = static_cast<int64_t>(place_.size());
      place_[node] = place;
      for (Value operand : node->operands())
        first_use_.emplace(operand.data(), place);
    }
    seen_by_.resize(place_.size());
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
      if (literal_of(*node) != nullptr)
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
      if (const size_t users = user_counts_.of(value); literal_of(value) == nullptr && users > 1)
        branches.push_back(fmt::format("{} ({} users)", names_.name(value), users));
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

  // Whether `node` needs `value` also through another of its operands. Only nodes between the value's first
  // user and `node` matter.
  bool reaches(Value value, const Node& node) {
    const int64_t first = first_use_.at(value.data());
    std::vector<const Node*> waiting = {&node};
    ++search_;
    while (!waiting.empty()) {
      const Node* at = waiting.back();
      waiting.pop_back();
      for (Value operand : at->operands()) {
        ++steps_;
        if (operand == value) {
          if (at != &node)
            return true;
        } else if (const Node* from = operand.node(); from != nullptr) {
          const int64_t place = place_.at(from);
          if (place >= first && std::exchange(seen_by_[static_cast<size_t>(place)], search_) != search_)
            waiting.push_back(from);
        }
      }
    }
    return false;
  }

  // Adds the skip connections. Gives the node where it stopped looking, if it did not look at all of them.
  const Node* find_skips(std::vector<std::string>& skips) {
    for (const Node* node : graph_.nodes())
      for (Value operand : flowing(*node)) {
        if (user_counts_.of(operand) < 2)
          continue;
        if (steps_ > kMostSteps)
          return node;
        if (reaches(operand, *node))
          skips.push_back(fmt::format("{} → {}", names_.name(operand), name(*node)));
      }
    return nullptr;
  }

  void print_skips() {
    std::vector<std::string> skips;
    const Node* stopped = find_skips(skips);
    line(fmt::format("skip connections: {}",
                     skips.empty() ? "none" : fmt::format("{}", fmt::join(skips, ", "))));
    if (stopped != nullptr)
      line(fmt::format("  from {} on none were looked for: the graph is too large", name(*stopped)));
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
  UserCounts user_counts_;
  std::unordered_map<const Node*, int64_t> place_;
  std::unordered_map<const ValueData*, int64_t> first_use_;  // the place of the first user
  // The search for skip connections: how many steps it took, which search it is, and, by place, the last
  // search that came by.
  int64_t steps_ = 0, search_ = 0;
  std::vector<int64_t> seen_by_;
};

}  // namespace

std::string show_as_dependencies(const Graph& graph) { return Report(graph, "").text(); }

}  // namespace tenon
