#include "passes/remake_control.h"

#include <algorithm>

#include "ops/data.h"
#include "rewrite/apply.h"

namespace tenon {
namespace {

using Fate = Remade::Fate;

// What stands in `copy` for each input of `region`. Inputs that will go come last, for as long as dead nodes
// read them.
std::vector<Value> make_arguments(const Node& node, const Remade& remade, Graph& copy, const Graph& region) {
  const std::vector<Value> operands = handed_in(node);
  const size_t leading = leading_count(node);
  std::vector<Value> arguments(static_cast<size_t>(region.input_count()));
  const auto add_input = [&](size_t i) {
    const Value input = region.input(static_cast<int64_t>(i));
    arguments[i] = copy.add_input(input.type(), input.name());
  };
  for (size_t i = 0; i < leading; ++i)
    add_input(i);
  for (size_t i = 0; i < operands.size(); ++i)
    if (remade.inputs[i] == Fate::Stays)
      add_input(leading + i);
  for (const Remade::Captured& each : remade.captured)
    add_input(each.input);
  for (size_t i = 0; i < operands.size(); ++i) {
    Value& argument = arguments[leading + i];
    if (remade.inputs[i] == Fate::IsConstant)
      argument = constant(copy, operands[i].node()->attr("value").as<Literal>());
    else if (remade.inputs[i] == Fate::IsAnother)
      argument = arguments[leading + first_of(node, i)];
    else if (!argument)
      add_input(leading + i);
  }
  return arguments;
}

std::unique_ptr<Graph> remade_region(const Node& node, const Remade& remade, const Graph& region) {
  std::unique_ptr<Graph> copy = node.graph().make_region(region.name());
  const size_t leading = leading_count(node);
  const std::vector<Value> outputs = copy->inline_graph(region, make_arguments(node, remade, *copy, region));
  std::vector<Value> kept;
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (i < leading || remade.results[i - leading]) {
      kept.push_back(outputs[i]);
      names.push_back(region.output_names()[i]);
    }
  copy->set_outputs(kept, names);
  std::vector<Node*> nodes = copy->nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const std::vector<Value> results = (*it)->results();
    if (std::all_of(results.begin(), results.end(), [](Value result) { return result.use_count() == 0; }))
      copy->erase(*it);
  }
  const auto staying = std::count(remade.inputs.begin(), remade.inputs.end(), Fate::Stays);
  const auto count = static_cast<int64_t>(leading + remade.captured.size()) + staying;
  while (copy->input_count() > count)
    copy->erase_input(copy->input_count() - 1);
  return copy;
}

// The numbers that belong to what stays.
template <class Stays>
void filter(Attributes& attributes, std::string_view name, Stays&& stays) {
  const std::vector<int64_t> all = attributes.find(name)->second;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < all.size(); ++i)
    if (stays(i))
      kept.push_back(all[i]);
  attributes.insert_or_assign(std::string(name), kept);
}

Attributes remade_attributes(const Node& node, const Remade& remade) {
  Attributes attributes = node.attributes();
  if (!node.is("scan"))
    return attributes;
  const size_t carried = carried_count(node);
  for (std::string_view name : {"axes", "reversed"})
    filter(attributes, name, [&](size_t i) { return remade.inputs[carried + i] == Fate::Stays; });
  for (std::string_view name : {"output_axes", "output_reversed"})
    filter(attributes, name, [&](size_t i) { return remade.results[carried + i]; });
  return attributes;
}

std::vector<Operand> remade_operands(const Node& node, const Remade& remade) {
  std::vector<Operand> operands;
  size_t slot = 0;
  for (const OperandDecl& decl : node.op().operands) {
    std::vector<Value> values = node.ins(decl.name);
    if (decl.arity == Arity::Many) {
      std::vector<Value> kept;
      for (Value value : values)
        if (remade.inputs[slot++] == Fate::Stays)
          kept.push_back(value);
      values = kept;
    }
    if (&decl == &node.op().operands.back())
      for (const Remade::Captured& each : remade.captured)
        values.push_back(each.value);
    operands.emplace_back(decl.name, values);
  }
  return operands;
}

}  // namespace

bool is_control(const Node& node) { return node.is("if") || node.is("while") || node.is("scan"); }

size_t leading_count(const Node& node) { return node.is("while") ? 1 : 0; }

size_t carried_count(const Node& node) { return node.is("if") ? 0 : node.ins("carried").size(); }

size_t scanned_count(const Node& node) { return node.is("scan") ? node.ins("scanned").size() : 0; }

std::vector<Value> handed_in(const Node& node) {
  std::vector<Value> values;
  for (const OperandDecl& decl : node.op().operands)
    if (decl.arity == Arity::Many)
      for (Value value : node.ins(decl.name))
        values.push_back(value);
  return values;
}

size_t first_of(const Node& node, size_t input) {
  const std::vector<Value> operands = handed_in(node);
  const auto captured =
      operands.begin() + static_cast<std::ptrdiff_t>(carried_count(node) + scanned_count(node));
  return static_cast<size_t>(std::find(captured, operands.end(), operands[input]) - operands.begin());
}

Node* make_anew(Node* node, const Remade& remade) {
  Graph& graph = node->graph();
  const InsertBefore here(node);
  std::vector<std::unique_ptr<Graph>> regions;
  for (const auto& region : node->regions())
    regions.push_back(remade_region(*node, remade, *region));
  Types types;
  for (int64_t i = 0; i < node->result_count(); ++i)
    if (remade.results[static_cast<size_t>(i)])
      types.push_back(node->result(i).type());
  Node* anew = graph.create(node->op(), remade_operands(*node, remade), remade_attributes(*node, remade),
                            std::move(regions), &types);
  anew->set_sources(node->sources());
  return anew;
}

void hand_over(Node* node, const Remade& remade, Node* anew) {
  int64_t next = 0;
  for (int64_t i = 0; i < node->result_count(); ++i) {
    if (!remade.results[static_cast<size_t>(i)])
      continue;
    anew->result(next).set_name(node->result(i).name());
    node->result(i).replace_all_uses(anew->result(next++));
  }
}

}  // namespace tenon
