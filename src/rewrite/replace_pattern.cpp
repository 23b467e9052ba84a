#include "rewrite/replace_pattern.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ops/elements.h"
#include "rewrite/apply.h"

namespace tenon {
namespace {

// The operands of each node by where they come from: the node's place (-1: an input) and the index there.
using Form = std::vector<
    std::tuple<const OpDef*, std::vector<std::string_view>, std::vector<std::pair<int64_t, int64_t>>>>;

Form form_of(const Graph& graph) {
  std::unordered_map<const Node*, int64_t> places = {{nullptr, -1}};
  Form form;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    places.emplace(node, static_cast<int64_t>(form.size()));
    std::vector<std::pair<int64_t, int64_t>> operands;
    for (Value operand : node->operands())
      operands.emplace_back(places.at(operand.node()), operand.index());
    // The op of a return node is of no account.
    form.emplace_back(node == graph.return_node() ? nullptr : &node->op(), node->late_names(), operands);
  }
  return form;
}

bool is_constant(Value value) { return !value.is_input() && value.node()->is("constant"); }

// Whether two tensors are the same once they are broadcast to each other.
bool same_when_broadcast(const Tensor& a, const Tensor& b) {
  try {
    const Extents extents = broadcast_extents("constant", a.extents(), b.extents());
    return identical(gather_strided(a, extents, broadcast_strides(a.extents(), extents)),
                     gather_strided(b, extents, broadcast_strides(b.extents(), extents)));
  } catch (const UserError&) {
    return false;
  }
}

bool same_elements(Value a, Value b) {
  if (a.dtype() != b.dtype())
    return false;
  if (is_constant(b) && a.node()->attr("value") == b.node()->attr("value"))
    return true;
  const Tensor *few = known_elements(a), *also_few = known_elements(b);
  if (few != nullptr && also_few != nullptr)
    return same_when_broadcast(*few, *also_few);
  constexpr double kExact = 0x1p53;  // up to here integers and doubles are the same
  const auto x = uniform_number(a), y = uniform_number(b);
  return x && y && *x == *y && std::signbit(*x) == std::signbit(*y) &&
         (is_float(a.dtype()) || std::fabs(*x) < kExact);
}

// Whether `actual`, an operand of `user`, is the constant that `traced_user` has there; beside an elementwise
// op it may be broadcast, as long as the result is as large.
bool is_same_constant(Value traced, const Node& traced_user, Value actual, const Node& user) {
  if (!actual.type().is_tensor() || !same_elements(traced, actual))
    return false;
  if (traced.type() == actual.type())
    return true;
  const Type& type = user.result().type();
  return user.op().traits.elementwise && type.as_tensor().shape.ranked() &&
         traced_user.result().type() == type;
}

// The pattern of a rewrite, as a graph and as a Pattern of its form alone.
class TracedPattern {
 public:
  explicit TracedPattern(const PatternRewrite& rewrite)
      : rewrite_(rewrite), graph_(trace_form()), form_(form_of(*graph_)) {
    check();
    for (Value input : graph_->inputs())
      patterns_.emplace(input, any(input.name()));
  }

  const Graph& graph() const { return *graph_; }

  Pattern results() {
    std::vector<Pattern> results;
    for (Value output : graph_->outputs())
      results.push_back(pattern_of(output));
    return results.size() == 1 ? results.front() : together(results);
  }

  // What the inputs stand for.
  std::vector<Value> inputs(const Match& match) const {
    std::vector<Value> values;
    for (Value input : graph_->inputs())
      values.push_back(match[patterns_.at(input)]);
    return values;
  }

  // Whether what has the form of the pattern is the pattern, traced with what its inputs stand for.
  bool is_occurrence(const Match& match) {
    const Graph* traced = trace_with(inputs(match));
    if (traced == nullptr || form_of(*traced) != form_)
      return false;
    const std::vector<Node*> nodes = graph_->nodes(), traced_nodes = traced->nodes();
    std::set<const Node*> drawn;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::set<const Node*> actual = nodes_of(*nodes[i], match);
      for (const Node* node : actual)
        if (!is_same(*nodes[i], *traced_nodes[i], *node, match))
          return false;
      // Numbers that are drawn twice are not those that are drawn once.
      if (nodes[i]->op().traits.random &&
          (actual.size() > 1 || (!actual.empty() && !drawn.insert(*actual.begin()).second)))
        return false;
    }
    return true;
  }

 private:
  std::unique_ptr<Graph> trace_form() const {
    TracedInputs inputs = rewrite_.inputs;
    const std::optional<size_t> count = rewrite_.pattern.input_count();
    if (!inputs.empty()) {
      if (count && *count != inputs.size())
        throw user_error("{}: the pattern takes {} values, but {} inputs are given", rewrite_.name, *count,
                         inputs.size());
      return trace(inputs, rewrite_.pattern);
    }
    if (!count)
      throw user_error("{}: a pattern that takes a vector needs inputs to be traced with", rewrite_.name);
    for (size_t i = 0; i < *count; ++i)
      inputs.emplace_back(f32(Shape::unranked()));
    try {
      return trace(inputs, rewrite_.pattern);
    } catch (const std::exception& error) {
      throw user_error(
          "{}: the pattern cannot be traced with f32 tensors of unknown rank: {}\n  hint: give it inputs "
          "to be traced with",
          rewrite_.name, error.what());
    }
  }

  // The pattern for such values; null where it has no meaning for them.
  const Graph* trace_with(const std::vector<Value>& values) {
    TracedInputs inputs;
    Types types;
    for (Value value : values) {
      inputs.emplace_back(value.type());
      types.push_back(value.type());
    }
    if (types == traced_types_)
      return traced_.get();
    traced_types_ = std::move(types);
    try {
      traced_ = trace(inputs, rewrite_.pattern);
    } catch (const std::exception&) {  // whatever the function relies on that is not so
      traced_ = nullptr;
    }
    return traced_.get();
  }

  // What cannot be looked for is the user's fault.
  void check() const {
    const std::string& name = rewrite_.name;
    const std::vector<Value> outputs = graph_->outputs();
    const auto count = static_cast<size_t>(graph_->input_count());
    if (rewrite_.replacement.input_count().value_or(count) != count)
      throw user_error("{}: the pattern takes {} values, the replacement {}", name, count,
                       *rewrite_.replacement.input_count());
    if (outputs.empty())
      throw user_error("{}: the pattern has no result", name);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].is_input() || is_constant(outputs[i]))
        throw user_error("{}: result {} of the pattern is no op, but {}", name, i,
                         outputs[i].is_input() ? "an input" : "a constant");
      if (std::find(outputs.begin(), outputs.end(), outputs[i]) !=
          outputs.begin() + static_cast<std::ptrdiff_t>(i))
        throw user_error("{}: result {} of the pattern is another one, too", name, i);
    }
    for (const Node* node : graph_->nodes())
      if (!node->regions().empty())
        throw unsupported("{}: the pattern has nested graphs, in {}", name, node->op().name);
    const std::set<Value> reached = reached_from_first_result();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!reached.contains(outputs[i]))
        throw user_error("{}: result {} of the pattern shares no value with those before it", name, i);
    for (Value input : graph_->inputs())
      if (!reached.contains(input))
        throw user_error("{}: no result of the pattern is made of its input {}", name, input.name());
  }

  // The values that the results are made of, as far as they can be found from the first of them.
  std::set<Value> reached_from_first_result() const {
    std::set<Value> reached;
    for (Value output : graph_->outputs()) {
      std::set<Value> made_of;
      std::vector<Value> waiting = {output};
      while (!waiting.empty()) {
        const Value value = waiting.back();
        waiting.pop_back();
        if (is_constant(value) || !made_of.insert(value).second || value.is_input())
          continue;
        for (Value operand : value.node()->operands())
          waiting.push_back(operand);
      }
      const bool shares =
          std::any_of(made_of.begin(), made_of.end(), [&](Value value) { return reached.contains(value); });
      if (reached.empty() || shares)
        reached.insert(made_of.begin(), made_of.end());
    }
    return reached;
  }

  // Of a constant it is only asked that the value is fixed, and of each use anew: the pattern may use one
  // constant where the graph has two.
  Pattern pattern_of(Value value) {
    if (is_constant(value))
      return constant("c");
    const auto known = patterns_.find(value);
    if (known != patterns_.end())
      return known->second;
    const Node& node = *value.node();
    if (!operands_.contains(&node)) {
      NamedPatterns operands;
      for (const OperandDecl& decl : node.op().operands)
        for (Value operand : node.ins(decl.name))
          operands.emplace_back(decl.name, pattern_of(operand));
      for (std::string_view late : node.late_names())
        operands.emplace_back(late, pattern_of(node.late(late)));
      operands_.emplace(&node, std::move(operands));
    }
    const Pattern pattern = op(node.op().name, operands_.at(&node)).result(value.index());
    return patterns_.emplace(value, pattern).first->second;
  }

  // The nodes of the match that a node of the pattern stands for: one, or several that give a result each.
  std::set<const Node*> nodes_of(const Node& node, const Match& match) const {
    std::set<const Node*> nodes;
    for (Value result : node.results())
      if (const auto pattern = patterns_.find(result); pattern != patterns_.end())
        nodes.insert(&match.node(pattern->second));
    return nodes;
  }

  // `node` has the form of `actual` already, which is what `traced` must be.
  bool is_same(const Node& node, const Node& traced, const Node& actual, const Match& match) const {
    if (traced.attributes() != actual.attributes())
      return false;
    const NamedPatterns& operands = operands_.at(&node);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value operand = traced.operand(static_cast<int64_t>(i));
      if (is_constant(operand) && !is_same_constant(operand, traced, match[operands[i].second], actual))
        return false;
    }
    return true;
  }

  const PatternRewrite& rewrite_;
  std::unique_ptr<Graph> graph_;
  Form form_;
  std::map<Value, Pattern> patterns_;  // of inputs, and of what results are made of
  std::map<const Node*, NamedPatterns> operands_;
  // The last graph that the pattern was traced to, and for which types.
  std::unique_ptr<Graph> traced_;
  Types traced_types_;
};

// Whether something outside of a match needs what lies within: a node that stays, or the replacement, where
// an input stands for it.
bool is_used_elsewhere(const Match& match, const std::vector<Value>& inputs) {
  const auto contains = [](const auto& all, auto one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  for (Value input : inputs)
    if (contains(match.nodes(), input.node()))
      return true;
  for (const Node* node : match.nodes())
    for (Value result : node->results())
      if (!contains(match.roots(), result) && !node->is("parameter"))
        for (Node* user : result.users())
          if (!contains(match.nodes(), user))
            return true;
  return false;
}

std::vector<Value> make_replacement(const PatternRewrite& rewrite, const std::vector<Value>& inputs,
                                    size_t count) {
  const std::vector<Value> results = rewrite.replacement(inputs);
  if (results.size() != count)
    throw user_error("the replacement gives {} results, not {}", results.size(), count);
  return results;
}

// What computes a value, for people. What is used several times is written out at each use, but only so much
// in all: a value that is squared thirty times would be written a thousand million times.
class Formula {
 public:
  explicit Formula(Value value) : pattern_(pattern_of(value)) {}

  std::string to_string() const { return pattern_.to_string(); }

 private:
  Pattern pattern_of(Value value) {
    if (value.is_input())
      return any(value.name());
    if (const std::optional<double> number = uniform_number(value))
      return *number;
    if (is_constant(value))
      return constant("constant");
    if (ops_left_ == 0)
      return any("…");
    --ops_left_;
    const Node& node = *value.node();
    NamedPatterns operands;
    for (Value operand : node.operands())
      operands.emplace_back("", pattern_of(operand));
    Pattern pattern = op(node.op().name, operands);
    for (const AttributeDecl& decl : node.op().attributes)
      if (const auto it = node.attributes().find(decl.name);
          it != node.attributes().end() && !(decl.default_value && it->second == *decl.default_value))
        pattern = pattern.with(decl.name, it->second);
    return pattern;
  }

  int ops_left_ = 100;
  Pattern pattern_;
};

std::string formulas_of(const Graph& graph) {
  std::vector<std::string> formulas;
  for (Value output : graph.outputs())
    formulas.push_back(Formula(output).to_string());
  return fmt::format("{}", fmt::join(formulas, ", "));
}

// The replacement, traced with what the pattern was.
std::string replacement_formula(const PatternRewrite& rewrite, const Graph& pattern) {
  TracedInputs inputs;
  for (Value input : pattern.inputs())
    inputs.emplace_back(input.type(), input.name());
  try {
    return formulas_of(*trace(inputs, [&](const std::vector<Value>& values) {
      const std::vector<Value> results = make_replacement(rewrite, values, pattern.outputs().size());
      if (std::find(results.begin(), results.end(), Value()) != results.end())
        throw user_error("it is not for these");
      return results;
    }));
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception&) {  // whatever the function relies on that is not so
    return "the replacement";
  }
}

}  // namespace

std::string formula_of(const PatternRewrite& rewrite) {
  const TracedPattern pattern(rewrite);
  return formulas_of(pattern.graph()) + " => " + replacement_formula(rewrite, pattern.graph());
}

int64_t replace_pattern(Graph& graph, const PatternRewrite& rewrite, Journal& journal) {
  TracedPattern pattern(rewrite);
  const Rule rule = {
      .name = rewrite.name,
      .match = pattern.results(),
      .replace = {"the replacement",
                  [&](const Match& m) {
                    return make_replacement(rewrite, pattern.inputs(m), m.roots().size());
                  }},
      .when = {{"it is what the pattern is traced to",
                [&](const Match& m) { return pattern.is_occurrence(m); }},
               {"no intermediate value has other users",
                [&](const Match& m) { return !is_used_elsewhere(m, pattern.inputs(m)); }, true}},
      .numerics = rewrite.numerics,
      .fires = "",
      .stays = ""};
  return apply_once(graph, rule, journal);
}

int64_t replace_pattern(Graph& graph, TracedFunction pattern, TracedFunction replacement) {
  Journal journal;
  return replace_pattern(graph, {.pattern = std::move(pattern), .replacement = std::move(replacement)},
                         journal);
}

}  // namespace tenon
