#include "rewrite/apply.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_set>

#include "ir/infer.h"

namespace tenon {
namespace {

// More rewrites than this for each node there was at first mean that rules undo each other.
constexpr int64_t kMostPerNode = 100;

enum class Mode : uint8_t {
  UntilNoneFires,
  // What a rewrite made stays as it is, a replacement that does not fit is the user's fault, and a rule that
  // is not allowed is worth a remark where it would fire.
  Once,
};

bool comes_before(const Node* a, const Node* b) { return a->comes_before(*b); }

// The node of the match that comes last: after it, all that the match is made of is there.
Node* last_node(const Match& match) {
  Node* last = match.root().node();
  for (Value root : match.roots())
    last = comes_before(last, root.node()) ? root.node() : last;
  return last;
}

// The nodes of a match that nothing uses once its results are replaced.
std::set<Node*> leaving_nodes(const Match& match) {
  std::vector<Node*> nodes = match.nodes();
  std::sort(nodes.begin(), nodes.end(), comes_before);
  std::set<Node*> leaving;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const std::vector<Value> results = (*node)->results();
    if (std::all_of(results.begin(), results.end(), [&](Value result) {
          const std::vector<Node*> users = result.users();
          return std::find(match.roots().begin(), match.roots().end(), result) != match.roots().end() ||
                 std::all_of(users.begin(), users.end(), [&](Node* user) { return leaving.contains(user); });
        }))
      leaving.insert(*node);
  }
  return leaving;
}

// The nodes that use a result of the match, stay, and come before the last of its nodes, and what depends on
// them: they move behind what replaces the match. Nothing where the match also depends on one of them.
std::optional<std::vector<Node*>> users_amid(const Match& match) {
  if (match.roots().size() == 1)
    return std::vector<Node*>();
  const std::set<Node*> leaving = leaving_nodes(match);
  const Node& last = *last_node(match);
  std::set<Node*, decltype(&comes_before)> waiting(comes_before);
  for (Value root : match.roots())
    for (Node* user : root.users())
      if (user->comes_before(last) && !leaving.contains(user))
        waiting.insert(user);
  std::vector<Node*> users;
  while (!waiting.empty()) {
    users.push_back(*waiting.begin());
    waiting.erase(waiting.begin());
    for (Value result : users.back()->results())
      for (Node* user : result.users()) {
        if (leaving.contains(user))
          return std::nullopt;
        if (user->comes_before(last))
          waiting.insert(user);
      }
  }
  return users;
}

const Condition kNoCycle = {"no result depends on another by way of what stays",
                            [](const Match& m) { return users_amid(m).has_value(); }, true};

class Driver {
 public:
  Driver(Graph& graph, const Rules& rules, Journal& journal, Mode mode = Mode::UntilNoneFires)
      : graph_(graph), journal_(journal), mode_(mode) {
    for (const Rule& rule : rules)
      if (mode == Mode::Once || journal.allows(rule.numerics))
        for (const std::string& op : root_ops(rule.match))
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
  void push(Node* node) {
    if (node != graph_.return_node() && waiting_.insert(node).second)
      queue_.push_back(node);
  }

  // Applies the first rule that matches; null when none does.
  const Rule* rewrite(Node* node) {
    const auto rules = by_op_.find(node->op().name);
    if (rules == by_op_.end())
      return nullptr;
    KnownRegions regions;
    for (const Rule* rule : rules->second)
      for (Value result : node->results())
        if (result.use_count() > 0 && try_rule(*rule, result, regions))
          return rule;
    return nullptr;
  }

  bool try_rule(const Rule& rule, Value root, KnownRegions& regions) {
    const Condition* failed = nullptr;
    const std::optional<Match> match = find_match(rule.match, root, regions, [&](const Match& m) {
      const auto it = std::find_if(rule.when.begin(), rule.when.end(),
                                   [&](const Condition& condition) { return !condition.holds(m); });
      failed = it != rule.when.end() ? &*it : kNoCycle.holds(m) ? nullptr : &kNoCycle;
      return failed == nullptr && std::none_of(m.nodes().begin(), m.nodes().end(),
                                               [&](Node* node) { return made_.contains(node); });
    });
    if (!match) {
      if (failed != nullptr && failed->worth_a_remark)
        journal_.declined(rule.name, *root.node(), "unmet condition: " + failed->text);
      return false;
    }
    if (!journal_.allows(rule.numerics)) {
      journal_.declined(rule.name, *root.node(),
                        fmt::format("numerics of the class {} are not allowed", name(rule.numerics)));
      return false;
    }
    return replace(rule, *match);
  }

  bool replace(const Rule& rule, const Match& match) {
    Node* const last = last_node(match);
    Node* const after = last->next();
    const std::vector<Value> by = make(rule, match, last);
    if (by.empty())
      return false;
    journal_.applied(rule.name, match.nodes(), rule.numerics);
    const std::vector<Node*> made = nodes_between(last, after);
    const std::optional<std::vector<Node*>> amid = users_amid(match);
    for (Node* user : *amid)
      graph_.move_before(user, after);
    std::vector<Node*> users, roots;
    for (size_t i = 0; i < by.size(); ++i) {
      const Value root = match.roots()[i];
      roots.push_back(root.node());
      for (Node* user : root.users())
        users.push_back(user);
      if (by[i].name().empty())
        by[i].set_name(root.name());
      root.replace_all_uses(by[i]);
    }
    if (mode_ == Mode::Once)
      made_.insert(made.begin(), made.end());
    else
      for (const std::vector<Node*>& touched : {made, users, roots})  // roots may have other results
        for (Node* node : touched)
          push(node);
    roots.insert(roots.end(), made.begin(), made.end());
    erase_unused_of(roots);
    return true;
  }

  // Creates what takes the place of the match, after its last node. Nothing, and no node, where the rule does
  // not apply after all, or the gate refuses what it makes: a model may hold what makes no sense, in a place
  // that is never reached.
  std::vector<Value> make(const Rule& rule, const Match& match, Node* last) {
    Node* const after = last->next();
    std::vector<Value> by;
    std::string problem;
    try {
      const WithSources sources(graph_, sources_of(match.nodes()));
      const InsertAfter here(last);
      by = rule.replace.make(match);
      CHECK(by.size() == match.roots().size(), "{} gives {} values for {} results", rule.name, by.size(),
            match.roots().size());
      if (std::all_of(by.begin(), by.end(), [](Value value) { return bool(value); }))
        problem = misfit(by, match.roots(), nodes_between(last, after));
      else
        by.clear();
    } catch (const UserError& error) {
      problem = error.what();
    }
    if (problem.empty() && !by.empty())
      return by;
    const std::vector<Node*> made = nodes_between(last, after);
    for (auto it = made.rbegin(); it != made.rend(); ++it)
      graph_.erase(*it);
    if (!problem.empty() && mode_ == Mode::Once)
      throw user_error("{}: {}: {}", match.root().node()->describe(), rule.name, problem);
    if (!problem.empty())
      journal_.declined(rule.name, *match.root().node(), problem);
    return {};
  }

  static std::vector<Node*> nodes_between(const Node* first, const Node* after) {
    std::vector<Node*> nodes;
    for (Node* node = first->next(); node != after; node = node->next())
      nodes.push_back(node);
    return nodes;
  }

  std::string misfit(const std::vector<Value>& by, const std::vector<Value>& roots,
                     const std::vector<Node*>& made) const {
    for (size_t i = 0; i < by.size(); ++i)
      if (!can_stand_for(by[i], roots[i], made))
        return fmt::format("the result would be {}, not {}", by[i].type(), roots[i].type());
    return "";
  }

  // The same type; but where a rewrite made nodes of dynamic sizes, it vouches for them,
  // and a user vouches for the rank too.
  bool can_stand_for(Value by, Value root, const std::vector<Node*>& made) const {
    if (by.type() == root.type())
      return mode_ == Mode::Once || !root.type().is_tensor() || root.shape().ranked();
    if (std::find(made.begin(), made.end(), by.node()) == made.end())
      return false;
    return refines(root.type(), infer_types(*by.node()).at(static_cast<size_t>(by.index())));
  }

  // Erases those of the nodes that nothing uses, and what only they used.
  void erase_unused_of(const std::vector<Node*>& nodes) {
    std::unordered_set<Node*> left(nodes.begin(), nodes.end());
    for (Node* node : nodes)
      if (left.contains(node))
        erase_unused(node, [&](Node* erased) {
          left.erase(erased);
          waiting_.erase(erased);
          made_.erase(erased);
          // What it used may now have one use less than a rule asks for.
          for (Value operand : erased->operands())
            if (!operand.is_input() && mode_ != Mode::Once)
              push(operand.node());
        });
  }

  Graph& graph_;
  Journal& journal_;
  Mode mode_;
  std::map<std::string, std::vector<const Rule*>, std::less<>> by_op_;
  std::deque<Node*> queue_;
  std::unordered_set<Node*> waiting_;
  std::unordered_set<Node*> made_;  // by rewrites that are not to be rewritten
};

}  // namespace

std::vector<std::string> root_ops(const Pattern& pattern) {
  const PatternNode& node = pattern.node();
  if (node.kind == PatternNode::Kind::Either || node.kind == PatternNode::Kind::Together) {
    std::vector<std::string> names;
    for (const Pattern& part : node.parts)
      for (std::string& name : root_ops(part))
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

int64_t apply_rules(Graph& graph, const Rules& rules, Journal& journal) {
  int64_t count = 0;
  for_each_graph(graph, [&](Graph& each) { count += Driver(each, rules, journal).run(); });
  return count;
}

int64_t apply_once(Graph& graph, const Rule& rule, Journal& journal) {
  // Nested graphs first: what the rewrites make may bring others, which are not to be rewritten.
  int64_t count = 0;
  for (Node* node : graph.nodes())
    for (const auto& region : node->regions())
      count += apply_once(*region, rule, journal);
  return count + Driver(graph, {rule}, journal, Mode::Once).run();
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
