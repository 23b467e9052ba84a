#include "passes/saturate.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/written_cost.h"
#include "rewrite/apply.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturate/candidate.h"
#include "rewrite/saturate/derive.h"

namespace tenon {
namespace {

using saturate::EGraph;
using saturate::Term;
using saturate::TermId;
using saturate::ValueId;

constexpr std::string_view kPass = "saturate";
constexpr double kMostSeconds = 1e6;  // more are as good as no limit
constexpr int kMostRuns = 3;          // of the pass that change something, in one run of the pipeline

// Nodes of a graph that follow each other, as an e-graph.
class Region {
 public:
  Region(Graph& graph, const std::vector<Node*>& nodes) : graph_(graph), end_(nodes.back()->next()) {
    for (Node* node : nodes)
      add(*node);
    for (Node* node : nodes)
      for (Value result : node->results())
        if (std::vector<OperandOf> uses = uses_outside(result); !is_fixed(result) && !uses.empty()) {
          roots_.push_back(ids_.at(result.data()));
          root_values_.push_back(result);
          uses_.push_back(std::move(uses));
        }
  }

  EGraph& egraph() { return egraph_; }
  // The values that others need, and the terms of all that is there now.
  const std::vector<ValueId>& roots() const { return roots_; }
  const std::vector<TermId>& terms() const { return terms_; }

  // Makes what stands for the roots after one more rewrite, and puts it in their place. False where the gate
  // refuses it here: more is known of sizes than within what rules looked at.
  bool replace(const std::vector<ValueId>& by, const saturate::Step& step, Journal& journal) {
    std::vector<Node*> replaced;
    for (TermId id : step.replaced)
      if (const auto it = values_.find(egraph_.value(id, 0)); it != values_.end() && !it->second.is_input())
        replaced.push_back(it->second.node());
    std::vector<Value> values;
    try {
      for (size_t i = 0; i < by.size(); ++i) {
        values.push_back(make(by[i]));
        if (values.back().type() != root_values_[i].type())
          return false;
      }
    } catch (const UserError&) {
      return false;
    }
    for (size_t i = 0; i < by.size() && replaced.empty(); ++i)
      if (by[i] != roots_[i] && !root_values_[i].is_input())
        replaced.push_back(root_values_[i].node());
    journal.applied(step.rule, replaced, step.numerics);
    for (size_t i = 0; i < by.size(); ++i) {
      if (by[i] == roots_[i])
        continue;
      if (values[i].name().empty())
        values[i].set_name(root_values_[i].name());
      for (const auto& [user, index] : uses_[i])
        user->set_operand(index, values[i]);
      replaced_.push_back(root_values_[i]);
      root_values_[i] = values[i];
    }
    roots_ = by;
    return true;
  }

  // Once all rewrites are made: until then, one may need again what another did without.
  void erase_unused_nodes() {
    for (Value value : made_)
      replaced_.push_back(value);
    std::unordered_set<const ValueData*> gone;
    for (Value value : replaced_)
      if (!gone.contains(value.data()) && !value.is_input())
        erase_unused(value.node(), [&](Node* erased) {
          for (Value result : erased->results())
            gone.insert(result.data());
        });
  }

 private:
  using ValueIds = std::unordered_map<const ValueData*, ValueId>;
  using OperandOf = std::pair<Node*, int64_t>;

  bool is_inside(const Node* node) const { return inside_.contains(node); }

  std::vector<OperandOf> uses_outside(Value value) const {
    std::vector<OperandOf> uses;
    for (Node* user : value.users())
      for (int64_t i = 0; i < user->operand_count() && !is_inside(user); ++i)
        if (user->operand(i) == value)
          uses.emplace_back(user, i);
    return uses;
  }

  ValueId id_of(Value value) {
    if (const auto it = ids_.find(value.data()); it != ids_.end())
      return it->second;
    // What is fixed comes in whole, so that rules see what it is.
    if (is_fixed(value) && saturate::can_be_term(*value.node())) {
      add(*value.node());
      return ids_.at(value.data());
    }
    const TermId term = egraph_.add(saturate::opaque_term(value));
    note(value, egraph_.value(term, 0));
    return egraph_.value(term, 0);
  }

  void add(const Node& node) {
    if (ids_.contains(node.result().data()))
      return;
    inside_.insert(&node);
    Term term = saturate::term_of(
        node, [&](Value value) { return id_of(value); }, egraph_);
    const TermId id = egraph_.add(std::move(term));
    terms_.push_back(id);
    for (int64_t i = 0; i < node.result_count(); ++i)
      note(node.result(i), egraph_.value(id, i));
  }

  void note(Value value, ValueId id) {
    ids_.emplace(value.data(), id);
    values_.emplace(id, value);
  }

  // The value in the graph, which is made at the end of the region where it is not there.
  Value make(ValueId id) {
    if (const auto it = values_.find(id); it != values_.end())
      return it->second;
    const TermId maker = egraph_.term_of(id);
    std::vector<Operand> operands;
    for (const saturate::TermOperand& operand : egraph_.term(maker).operands) {
      std::vector<Value> values;
      for (ValueId value : operand.values)
        values.push_back(make(value));
      operands.emplace_back(operand.name, std::move(values));
    }
    const Term& term = egraph_.term(maker);
    const WithSources sources(graph_, term.sources);
    const InsertBefore here(end_);
    Node* node = graph_.create(*term.op, std::move(operands), term.attributes, {}, &term.types);
    inside_.insert(node);
    for (int64_t i = 0; i < node->result_count(); ++i) {
      note(node->result(i), egraph_.value(maker, i));
      made_.push_back(node->result(i));
    }
    return values_.at(id);
  }

  Graph& graph_;
  Node* end_;
  EGraph egraph_;
  std::unordered_set<const Node*> inside_;
  ValueIds ids_;
  std::unordered_map<ValueId, Value> values_;
  std::vector<TermId> terms_;
  std::vector<ValueId> roots_;
  std::vector<Value> root_values_;  // in the graph
  // What follows the region uses the roots here. Within it, all terms stay what they are.
  std::vector<std::vector<OperandOf>> uses_;
  std::vector<Value> replaced_, made_;
};

const Rules& saturation_rules() {
  static const Rules rules = [] {
    std::vector<const Rules*> all;
    for (const auto& [subject, each] : all_rules())
      all.push_back(each);
    return joined(all);
  }();
  return rules;
}

// True where the region was changed.
bool saturate_region(Graph& graph, const std::vector<Node*>& nodes, Journal& journal,
                     const saturate::RuleIndex& rules, const saturate::Limits& limits,
                     const saturate::CostModel& cost) {
  Region region(graph, nodes);
  EGraph& egraph = region.egraph();
  const std::vector<saturate::Step> steps = saturate::explore(egraph, rules, limits);
  if (steps.empty() || limits.is_over())
    return false;
  const saturate::Extraction best = saturate::extract(egraph, region.roots(), region.terms(), cost);
  if (!saturate::is_better(best.after, best.before))
    return false;
  saturate::Derivation derivation(egraph, steps, region.roots(), build(egraph, best.choice, region.roots()));
  if (!derivation.is_sound()) {
    journal.declined(kPass, *nodes.back(), "what is better here takes a rewrite backwards that is not exact");
    return false;
  }
  for (size_t i = 0; i < derivation.rewrites().size() && journal.is_open(); ++i) {
    const saturate::Step& step = steps[static_cast<size_t>(derivation.rewrites()[i])];
    if (!region.replace(derivation.after(static_cast<int64_t>(i) + 1), step, journal))
      break;
  }
  region.erase_unused_nodes();
  return true;
}

bool is_at_rest(const Node& node) { return node.is("constant") || node.is("parameter"); }

// The regions of a graph as it is: nodes that follow each other, each time half as many further on.
std::vector<Node*> region_from(Node* first, int64_t most_nodes) {
  std::vector<Node*> nodes;
  int64_t count = 0;
  for (Node* node = first; node->next() != nullptr && saturate::can_be_term(*node) && count < most_nodes;
       node = node->next()) {
    nodes.push_back(node);
    count += is_at_rest(*node) ? 0 : 1;
  }
  return count < 2 ? std::vector<Node*>() : nodes;
}

void saturate_one(Graph& graph, Journal& journal, const saturate::RuleIndex& rules,
                  const SaturationOptions& options, const saturate::Limits& limits,
                  const saturate::CostModel& cost) {
  Node* first = graph.first();
  while (first->next() != nullptr && journal.is_open() && !limits.is_over()) {
    const std::vector<Node*> nodes = region_from(first, options.most_nodes);
    if (nodes.empty()) {
      first = first->next();
      continue;
    }
    // The next region begins where this one has its middle, or behind it where nothing follows that it could
    // have been larger for. What comes before it is there whatever becomes of this one.
    Node* const end = nodes.back()->next();
    const bool is_whole = end->next() == nullptr || !saturate::can_be_term(*end);
    Node* const before = is_whole ? nullptr : nodes[nodes.size() / 2];
    const bool changed = saturate_region(graph, nodes, journal, rules, limits, cost);
    first = is_whole || changed ? end : before;
  }
}

// In how many runs of the pass something was changed already.
int runs_before(const Journal& journal) {
  int runs = 0;
  bool was_this = false;
  for (const Application& application : journal.applications()) {
    const bool is_this = application.pass == kPass;
    runs += is_this && !was_this ? 1 : 0;
    was_this = is_this;
  }
  return runs;
}

}  // namespace

void saturate_graph(Graph& graph, Journal& journal, const SaturationOptions& options,
                    const saturate::CostModel& cost) {
  const std::chrono::duration<double> seconds(std::min(options.seconds, kMostSeconds));
  saturate::Limits limits = options.limits;
  limits.deadline =
      std::min(limits.deadline, std::chrono::steady_clock::now() +
                                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds));
  const saturate::RuleIndex rules(options.rules != nullptr ? *options.rules : saturation_rules(), journal);
  for_each_graph(graph, [&](Graph& each) { saturate_one(each, journal, rules, options, limits, cost); });
}

Pass saturation_pass(const SaturationOptions& options) {
  return {.name = kPass,
          .doc = "applies all rules to many graphs at once, and takes the best (equality saturation)",
          .run =
              [options](Graph& graph, Journal& journal) {
                if (runs_before(journal) < kMostRuns)
                  saturate_graph(graph, journal, options, written_cost());
              },
          .why_here = "before rules whose order could hide what others look for"};
}

std::vector<Pass> saturating_pipeline(const SaturationOptions& options) {
  std::vector<Pass> pipeline = portable_pipeline();
  pipeline.insert(std::ranges::find(pipeline, "simplify", &Pass::name), saturation_pass(options));
  return pipeline;
}

}  // namespace tenon
