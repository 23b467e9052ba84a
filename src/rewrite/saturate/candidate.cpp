#include "rewrite/saturate/candidate.h"

#include <algorithm>

#include "ir/infer.h"
#include "ops/random.h"

namespace tenon::saturate {
namespace {

constexpr int64_t kMostFixed = 256;          // terms of what is fixed, in one candidate
constexpr int64_t kMostCompared = 64 << 10;  // bytes of constants that are compared with others

bool stands_alone(const Node& node) {
  if (node.is("parameter"))
    return true;
  if (!node.is("constant"))
    return false;
  const Literal& literal = node.attr("value");
  return literal.is_deferred() || literal.count() * info(literal.dtype()).bytes > kMostCompared;
}

// The terms that a candidate is made of; what they use besides becomes inputs.
std::set<TermId> terms_within(const EGraph& egraph, TermId root, int64_t most_nodes) {
  std::set<TermId> within = {root};
  std::vector<TermId> queue = {root};
  int64_t nodes = 1, fixed = 0;
  for (size_t next = 0; next < queue.size(); ++next)
    for (ValueId operand : operands_of(egraph.term(queue[next]))) {
      const TermId maker = egraph.term_of(operand);
      const Term& term = egraph.term(maker);
      if (term.op == nullptr || within.contains(maker))
        continue;
      int64_t& count = term.is_fixed ? fixed : nodes;
      if (count == (term.is_fixed ? kMostFixed : most_nodes))
        continue;
      ++count;
      within.insert(maker);
      queue.push_back(maker);
    }
  return within;
}

}  // namespace

bool can_be_term(const Node& node) {
  const std::vector<Value> results = node.results();
  return node.regions().empty() && !node.op().traits.random && !takes_call(node) && !results.empty() &&
         node.op().category != Category::Control && node.op().category != Category::Memory &&
         std::all_of(results.begin(), results.end(), is_ranked);
}

Term opaque_term(Value value) { return {.types = {value.type()}, .origin = value}; }

Term term_of(const Node& node, const std::function<ValueId(Value)>& id_of, const EGraph& egraph) {
  Term term = {.op = &node.op(),
               .attributes = node.attributes(),
               .types = node.result_types(),
               .origin = stands_alone(node) ? node.result() : Value(),
               .sources = node.sources()};
  const auto add = [&](std::string_view name) {
    const std::vector<Value> values = node.ins(name);
    if (values.empty() || !values.front())
      return;
    TermOperand operand = {name, {}};
    for (Value value : values)
      operand.values.push_back(id_of(value));
    term.operands.push_back(std::move(operand));
  };
  for (const OperandDecl& declared : node.op().operands)
    add(declared.name);
  for (std::string_view late : node.late_names())
    add(late);
  const std::vector<ValueId> operands = operands_of(term);
  term.is_fixed = std::all_of(operands.begin(), operands.end(),
                              [&](ValueId operand) { return egraph.maker(operand).is_fixed; });
  return term;
}

Candidate::Candidate(const EGraph& egraph, TermId root, int64_t most_nodes)
    : graph_(std::make_unique<Graph>("candidate")) {
  const std::set<TermId> within = terms_within(egraph, root, most_nodes);
  // What the terms use besides comes first: nodes are made after inputs.
  for (TermId id : within)
    for (ValueId operand : operands_of(egraph.term(id)))
      if (!within.contains(egraph.term_of(operand)) && !made_.contains(operand)) {
        const Value input = graph_->add_input(egraph.type(operand), fmt::format("v{}", operand));
        made_.emplace(operand, input);
        ids_.emplace(input.data(), operand);
      }
  // Terms are older than those that use them.
  for (TermId id : within)
    if (!make(egraph, id))
      return;
  for (const auto& [id, value] : made_)
    symbols_.merge(symbols_of(value.type()));
  root_ = made_.at(egraph.value(root, 0)).node();
  graph_->set_outputs(root_->results());
}

bool Candidate::make(const EGraph& egraph, TermId id) {
  const Term& term = egraph.term(id);
  std::vector<Operand> operands;
  for (const TermOperand& operand : term.operands) {
    std::vector<Value> values;
    for (ValueId value : operand.values)
      values.push_back(made_.at(value));
    operands.emplace_back(operand.name, std::move(values));
  }
  const WithSources sources(*graph_, term.sources);
  try {
    const Node* node = graph_->create(*term.op, std::move(operands), term.attributes, {}, &term.types);
    if (node->result_types() != term.types)
      return false;
    for (int64_t i = 0; i < node->result_count(); ++i) {
      made_.emplace(egraph.value(id, i), node->result(i));
      ids_.emplace(node->result(i).data(), egraph.value(id, i));
    }
    terms_.emplace(node, id);
  } catch (const UserError&) {
    return false;  // it made sense only beside what lies too deep
  }
  return true;
}

std::optional<ValueId> Candidate::add_to(EGraph& egraph, Value value,
                                         const std::vector<std::string>& sources) {
  // First whether all of it can be added: a size that nothing in the candidate has would get a name that may
  // mean another size elsewhere.
  std::vector<const Node*> nodes;
  const std::function<bool(Value)> look_at = [&](Value each) {
    if (ids_.contains(each.data()))
      return true;
    if (each.is_input() || !can_be_term(*each.node()))
      return false;
    if (std::find(nodes.begin(), nodes.end(), each.node()) != nodes.end())
      return true;
    for (Value result : each.node()->results())
      for (const std::string& symbol : symbols_of(result.type()))
        if (!symbols_.contains(symbol))
          return false;
    for (Value operand : each.node()->operands())
      if (!look_at(operand))
        return false;
    nodes.push_back(each.node());
    return true;
  };
  if (!look_at(value))
    return std::nullopt;
  std::map<const ValueData*, ValueId> added;
  const auto id_of = [&](Value each) {
    const auto it = ids_.find(each.data());
    return it != ids_.end() ? it->second : added.at(each.data());
  };
  for (const Node* node : nodes) {
    Term term = saturate::term_of(*node, id_of, egraph);
    term.origin = {};  // this graph goes
    term.sources = sources;
    const TermId id = egraph.add(std::move(term));
    for (int64_t i = 0; i < node->result_count(); ++i)
      added.emplace(node->result(i).data(), egraph.value(id, i));
  }
  return id_of(value);
}

}  // namespace tenon::saturate
