#include "rewrite/apply.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_set>

#include "ir/infer.h"

namespace tenon {
namespace {

// More rewrites than this for each node there was at first mean that rules undo each other.
constexpr int64_t kMostPerNode = 100;

class Driver {
 public:
  Driver(Graph& graph, const Rules& rules, Journal& journal) : graph_(graph), journal_(journal) {
    for (const Rule& rule : rules)
      if (journal.allows(rule.numerics))
        for (const std::string& op : roots(rule.match))
          by_op_[op].push_back(&rule);
  }

  int64_t run() {
    const int64_t most = kMostPerNode * (graph_.node_count() + 1);
    for (Node* node : graph_.nodes())
      push(node);
    int64_t count = 0;
    while (!queue_.empty() && journal_.is_open()) {
      Node* node = queue_.front();
      queue_.pop_front();
      if (waiting_.erase(node) == 0)
        continue;  // it was erased
      const Rule* rule = rewrite(node);
      if (rule == nullptr)
        continue;
      CHECK(++count <= most, "rules undo each other: {} rewrites, the last by {}", count, rule->name);
    }
    return count;
  }

 private:
  // The ops that a match of the pattern may end in.
  static std::vector<std::string> roots(const Pattern& pattern) {
    const PatternNode& node = pattern.node();
    if (node.kind == PatternNode::Kind::Either) {
      std::vector<std::string> names;
      for (const Pattern& part : node.parts)
        for (std::string& name : roots(part))
          if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(std::move(name));
      return names;
    }
    if (node.kind == PatternNode::Kind::Computed) {
      std::vector<std::string> names;
      for (const OpDef* op : registered_ops())
        if (can_stand_in_region(*op))
          names.emplace_back(op->name);
      return names;
    }
    CHECK(node.kind == PatternNode::Kind::Op || node.kind == PatternNode::Kind::Chain,
          "a rule looks for an op, not for {}", pattern.to_string());
    if (!node.ops.empty())
      return {node.ops.begin(), node.ops.end()};
    return {node.name};
  }

  void push(Node* node) {
    if (node != graph_.return_node() && waiting_.insert(node).second)
      queue_.push_back(node);
  }

  // Applies the first rule that matches; null when none does.
  const Rule* rewrite(Node* node) {
    const auto rules = by_op_.find(node->op().name);
    if (rules == by_op_.end())
      return nullptr;
    for (const Rule* rule : rules->second)
      for (Value result : node->results())
        if (result.use_count() > 0 && try_rule(*rule, result))
          return rule;
    return nullptr;
  }

  bool try_rule(const Rule& rule, Value root) {
    const Condition* failed = nullptr;
    const std::optional<Match> match = find_match(rule.match, root, [&](const Match& m) {
      const auto it = std::find_if(rule.when.begin(), rule.when.end(),
                                   [&](const Condition& condition) { return !condition.holds(m); });
      failed = it == rule.when.end() ? nullptr : &*it;
      return failed == nullptr;
    });
    if (!match) {
      if (failed != nullptr && failed->worth_a_remark)
        journal_.declined(rule.name, *root.node(), "not so: " + failed->text);
      return false;
    }
    return replace(rule, *match);
  }

  // A model may hold what makes no sense, in a place that is never reached: then the gate refuses what the
  // rule makes of it.
  Value make(const Rule& rule, const Match& match) {
    try {
      return rule.replace.make(match);
    } catch (const UserError& error) {
      journal_.declined(rule.name, *match.root().node(), error.what());
      return {};
    }
  }

  bool replace(const Rule& rule, const Match& match) {
    Node* node = match.root().node();
    Node* const after = node->next();
    Value by;
    {
      const InsertAfter here(node);
      graph_.set_current_sources(sources_of(match.nodes()));
      by = make(rule, match);
      graph_.set_current_sources({});
    }
    std::vector<Node*> made;
    for (Node* each = node->next(); each != after; each = each->next())
      made.push_back(each);
    if (!by || !can_stand_for(by, match.root(), made)) {
      if (by)
        journal_.declined(rule.name, *node,
                          fmt::format("the result would be {}, not {}", by.type(), match.root().type()));
      for (auto it = made.rbegin(); it != made.rend(); ++it)
        graph_.erase(*it);
      return false;
    }
    journal_.applied(rule.name, match.nodes(), rule.numerics);
    const std::vector<Node*> users = match.root().users();
    if (by.name().empty())
      by.set_name(match.root().name());
    match.root().replace_all_uses(by);
    for (Node* each : made)
      push(each);
    for (Node* user : users)
      push(user);
    push(node);  // its other results
    erase_unused(node, [&](Node* erased) {
      waiting_.erase(erased);
      // What it used may now have one use less than a rule asks for.
      for (Value operand : erased->operands())
        if (!operand.is_input())
          push(operand.node());
    });
    for (Node* each : made)
      if (waiting_.contains(each))
        erase_unused(each, [&](Node* erased) { waiting_.erase(erased); });
    return true;
  }

  // The same type; but where a rewrite made nodes whose sizes only running will tell, it vouches for them.
  static bool can_stand_for(Value by, Value root, const std::vector<Node*>& made) {
    if (by.type() == root.type())
      return !root.type().is_tensor() || root.shape().ranked();
    if (std::find(made.begin(), made.end(), by.node()) == made.end())
      return false;
    return refines(root.type(), infer_types(*by.node()).at(static_cast<size_t>(by.index())));
  }

  Graph& graph_;
  Journal& journal_;
  std::map<std::string, std::vector<const Rule*>, std::less<>> by_op_;
  std::deque<Node*> queue_;
  std::unordered_set<Node*> waiting_;
};

}  // namespace

int64_t apply_rules(Graph& graph, const Rules& rules, Journal& journal) {
  int64_t count = 0;
  for_each_graph(graph, [&](Graph& each) { count += Driver(each, rules, journal).run(); });
  return count;
}

void erase_unused(Node* node, const std::function<void(Node*)>& erased) {
  std::vector<Node*> waiting = {node};
  while (!waiting.empty()) {
    Node* next = waiting.back();
    waiting.pop_back();
    const std::vector<Value> results = next->results();
    if (std::any_of(results.begin(), results.end(), [](Value result) { return result.use_count() > 0; }))
      continue;
    for (Value operand : next->operands())
      if (!operand.is_input() && std::find(waiting.begin(), waiting.end(), operand.node()) == waiting.end())
        waiting.push_back(operand.node());
    if (erased)
      erased(next);
    next->graph().erase(next);
  }
}

}  // namespace tenon
