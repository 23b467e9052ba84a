#include "rewrite/saturate/explore.h"

#include <algorithm>
#include <unordered_set>

#include "rewrite/apply.h"
#include "rewrite/saturate/candidate.h"

namespace tenon::saturate {
namespace {

constexpr int64_t kMostNodes = 24;     // of a candidate that rules look at
constexpr size_t kMostMatches = 4;     // of one rule, that end in one value
constexpr size_t kMostMembers = 6;     // of a class, that are tried as an operand
constexpr size_t kMostVariants = 200;  // of a term

class Explorer {
 public:
  Explorer(EGraph& egraph, const RuleIndex& rules, const Limits& limits)
      : egraph_(egraph), rules_(rules), limits_(limits) {}

  std::vector<Step> run() {
    for (int64_t round = 0; round < limits_.rounds && !is_full(); ++round) {
      const size_t before = tried_.size();
      const auto terms = static_cast<TermId>(egraph_.term_count());
      for (TermId term = 0; term < terms && !is_full(); ++term)
        if (egraph_.is_member(term) && egraph_.term(term).op != nullptr)
          try_variants(term);
      if (tried_.size() == before)
        break;
    }
    return std::move(steps_);
  }

 private:
  bool is_full() const {
    return egraph_.member_count() >= limits_.members ||
           static_cast<int64_t>(tried_.size()) >= limits_.candidates || limits_.is_over();
  }

  void try_variants(TermId term) {
    if (rules_.at(egraph_.term(term).op->name).empty())
      return;
    for (TermId variant : variants_of(term)) {
      if (is_full())
        return;
      if (tried_.insert(variant).second)
        try_rules(variant);
    }
  }

  // --- the ways to make a term ---

  // Itself; with another member of the class of one operand; with another one below such a member; and with
  // members of one op for all operands that have one.
  std::vector<TermId> variants_of(TermId id) {
    std::vector<TermId> variants = {id};
    const std::vector<ValueId> operands = operands_of(egraph_.term(id));
    for (size_t i = 0; i < operands.size() && variants.size() < kMostVariants; ++i) {
      if (std::find(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(i), operands[i]) !=
          operands.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      for (ValueId member : members(operands[i])) {
        variants.push_back(with(id, {{operands[i], member}}));
        for (ValueId below : operands_of(egraph_.maker(member)))
          for (ValueId other : members(below))
            if (other != below) {
              const TermId changed = with(egraph_.term_of(member), {{below, other}});
              variants.push_back(with(id, {{operands[i], egraph_.value(changed, egraph_.index_of(member))}}));
            }
      }
    }
    for (const auto& [op, replaced] : alike_operands(operands))
      variants.push_back(with(id, replaced));
    return variants;
  }

  std::vector<ValueId> members(ValueId value) const {
    std::vector<ValueId> members = egraph_.members(egraph_.find(value));
    if (members.size() > kMostMembers)
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(kMostMembers / 2),
                    members.end() - static_cast<std::ptrdiff_t>(kMostMembers - kMostMembers / 2));
    return members;
  }

  using Replaced = std::vector<std::pair<ValueId, ValueId>>;

  // For each op of which two operands or more have a member: those, for all operands that have one.
  std::map<std::string_view, Replaced> alike_operands(const std::vector<ValueId>& operands) const {
    std::map<std::string_view, Replaced> by_op;
    for (ValueId operand : operands)
      for (ValueId member : members(operand)) {
        const Term& term = egraph_.maker(member);
        if (term.op == nullptr || term.is_fixed)
          continue;
        Replaced& replaced = by_op[term.op->name];
        if (replaced.empty() || replaced.back().first != operand)
          replaced.emplace_back(operand, member);
      }
    std::erase_if(by_op, [](const auto& each) { return each.second.size() < 2; });
    return by_op;
  }

  TermId with(TermId id, const Replaced& replaced) {
    std::vector<ValueId> operands = operands_of(egraph_.term(id));
    for (ValueId& operand : operands)
      for (const auto& [from, to] : replaced)
        if (operand == from) {
          operand = to;
          break;
        }
    Term term = with_operands(egraph_.term(id), operands);
    if (term.origin)
      return id;
    term.is_fixed = std::all_of(operands.begin(), operands.end(),
                                [&](ValueId operand) { return egraph_.maker(operand).is_fixed; });
    return egraph_.add(std::move(term));
  }

  // --- rules ---

  void try_rules(TermId term) {
    Candidate candidate(egraph_, term, kMostNodes);
    if (!candidate.is_valid())
      return;
    KnownRegions regions;  // what a rule makes goes again before the next is tried
    for (Value result : candidate.root()->results())
      for (const Rule* rule : rules_.at(candidate.root()->op().name))
        for (const Match& match : matches_of(*rule, result, regions))
          apply(*rule, match, candidate);
    egraph_.rebuild();
  }

  static std::vector<Match> matches_of(const Rule& rule, Value root, KnownRegions& regions) {
    std::vector<Match> matches;
    find_match(rule.match, root, regions, [&](const Match& match) {
      if (std::ranges::all_of(rule.when, [&](const Condition& condition) { return condition.holds(match); }))
        matches.push_back(match);
      return matches.size() == kMostMatches;
    });
    return matches;
  }

  void apply(const Rule& rule, const Match& match, Candidate& candidate) {
    Node* const root = candidate.root();
    Node* const after = root->next();
    try {
      const InsertAfter here(root);
      const std::vector<Value> by = rule.replace.make(match);
      if (by.size() == 1 && by.front() && by.front().type() == match.root().type())
        note(rule, match, by.front(), candidate);
    } catch (const UserError&) {
      // The gate refuses what the rule makes of a model that makes no sense here.
    }
    std::vector<Node*> made;
    for (Node* node = root->next(); node != after; node = node->next())
      made.push_back(node);
    for (auto it = made.rbegin(); it != made.rend(); ++it)
      candidate.graph().erase(*it);
  }

  void note(const Rule& rule, const Match& match, Value by, Candidate& candidate) {
    std::vector<Node*> nodes = match.nodes();
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->comes_before(*b); });
    const auto to = candidate.add_to(egraph_, by, sources_of(nodes));
    if (!to)
      return;
    const ValueId from = egraph_.value(candidate.term_of(candidate.root()), match.root().index());
    if (!egraph_.unite(from, *to, static_cast<int>(steps_.size())))
      return;
    Step step = {rule.name, rule.numerics, {}};
    for (const Node* node : nodes)
      step.replaced.push_back(candidate.term_of(node));
    steps_.push_back(std::move(step));
  }

  EGraph& egraph_;
  const RuleIndex& rules_;
  const Limits& limits_;
  std::unordered_set<TermId> tried_;
  std::vector<Step> steps_;
};

}  // namespace

RuleIndex::RuleIndex(const Rules& rules, const Journal& journal) {
  for (const Rule& rule : rules)
    if (rule.match.node().kind != PatternNode::Kind::Together && journal.allows(rule.numerics))
      for (const std::string& op : root_ops(rule.match))
        by_op_[op].push_back(&rule);
}

const std::vector<const Rule*>& RuleIndex::at(std::string_view op) const {
  static const std::vector<const Rule*> none;
  const auto it = by_op_.find(op);
  return it == by_op_.end() ? none : it->second;
}

std::vector<Step> explore(EGraph& egraph, const RuleIndex& rules, const Limits& limits) {
  return Explorer(egraph, rules, limits).run();
}

}  // namespace tenon::saturate
