// copy.cpp — copies of nodes and graphs: clone, bind, inline.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/graph.h"

namespace tenon {
namespace {

Type same_type(const Type& type) { return type; }

// Where `type` has a symbol alone, `sizes` gets the size that `actual` has there.
void match_symbols(const Type& type, const Type& actual, std::map<std::string, Dim>& sizes) {
  if (type.index() != actual.index())
    return;
  if (!type.is_tensor())
    return match_symbols(type.element(), actual.element(), sizes);
  const Shape &shape = type.as_tensor().shape, &actual_shape = actual.as_tensor().shape;
  if (!shape.ranked() || !actual_shape.ranked() || shape.rank() != actual_shape.rank())
    return;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (const std::vector<std::string> symbols = shape[i].symbols();
        symbols.size() == 1 && shape[i] == Dim::symbol(symbols.front()) && !actual_shape[i].is_unknown())
      sizes.emplace(symbols.front(), actual_shape[i]);
}

}  // namespace

Node* Graph::copy_node(const Node& node, const ValueMap& map, const TypeMap& map_type) {
  std::vector<Operand> operands;
  const auto mapped = [&](std::string_view name) {
    std::vector<Value> values = node.ins(name);
    std::transform(values.begin(), values.end(), values.begin(), map);
    return values;
  };
  for (const OperandDecl& decl : node.op().operands)
    operands.emplace_back(decl.name, mapped(decl.name));
  for (std::string_view late : node.late_names())
    operands.emplace_back(late, mapped(late));
  std::vector<std::unique_ptr<Graph>> regions;
  for (const auto& region : node.regions()) {
    Graph& copy = *regions.emplace_back(make_region(region->name()));
    std::vector<Value> inputs;
    for (Value input : region->inputs())
      inputs.push_back(copy.add_input(input.type(), input.name()));
    copy.set_outputs(copy.copy_nodes(*region, inputs, same_type), region->output_names());
  }
  Attributes attributes = node.attributes();
  for (auto& [name, attribute] : attributes)
    if (attribute.kind() == AttributeKind::Type)
      attribute = map_type(attribute.as<Type>());
  Types types;
  for (Value result : node.results())
    types.push_back(map_type(result.type()));
  Node* copy = create(node.op(), std::move(operands), std::move(attributes), std::move(regions), &types);
  copy->set_sources(node.sources());
  for (int64_t i = 0; i < node.result_count(); ++i)
    copy->result(i).set_name(node.result(i).name());
  return copy;
}

Node* Graph::copy_node(const Node& node, const ValueMap& map) { return copy_node(node, map, same_type); }

std::vector<Value> Graph::copy_nodes(const Graph& from, const std::vector<Value>& arguments,
                                     const TypeMap& map_type) {
  std::unordered_map<ValueData*, Value> copies;
  for (int64_t i = 0; i < from.input_count(); ++i)
    copies[from.input(i).data()] = arguments[static_cast<size_t>(i)];
  const auto map = [&](Value value) { return copies.at(value.data()); };
  for (const Node* node : from.nodes()) {
    const Node* copy = copy_node(*node, map, map_type);
    for (int64_t i = 0; i < node->result_count(); ++i)
      copies[node->result(i).data()] = copy->result(i);
  }
  std::vector<Value> outputs = from.outputs();
  std::transform(outputs.begin(), outputs.end(), outputs.begin(), map);
  return outputs;
}

std::vector<Value> Graph::inline_graph(const Graph& callee, const std::vector<Value>& arguments) {
  CHECK(static_cast<int64_t>(arguments.size()) == callee.input_count(),
        "{} arguments for {} inputs of graph {}", arguments.size(), callee.input_count(), callee.name());
  std::map<std::string, Dim> sizes;
  for (size_t i = 0; i < arguments.size(); ++i)
    match_symbols(callee.input(static_cast<int64_t>(i)).type(), arguments[i].type(), sizes);
  // A symbol that the callee made up stays what it is, unless it means something here.
  return copy_nodes(callee, arguments, [&](const Type& type) {
    for (const std::string& symbol : symbols_of(type))
      if (!sizes.contains(symbol))
        sizes.emplace(symbol, symbols_->is_used(symbol) ? symbols_->fresh() : Dim::symbol(symbol));
    return substitute(type, sizes);
  });
}

std::unique_ptr<Graph> Graph::clone() const { return bind({}); }

std::unique_ptr<Graph> Graph::bind(const std::map<std::string, Dim>& sizes) const {
  auto copy = std::make_unique<Graph>(name_);
  std::vector<Value> arguments;
  for (Value input : inputs())
    arguments.push_back(copy->add_input(substitute(input.type(), sizes), input.name()));
  copy->set_outputs(
      copy->copy_nodes(*this, arguments, [&](const Type& type) { return substitute(type, sizes); }),
      output_names_);
  return copy;
}

}  // namespace tenon
