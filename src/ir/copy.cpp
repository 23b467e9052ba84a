// copy.cpp — copies of nodes and graphs: clone, bind, inline.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/graph.h"

namespace tenon {
namespace {

using Sizes = std::map<std::string, Dim>;
using SizesIn = std::function<Sizes(const Graph& region)>;

Type same_type(const Type& type) { return type; }

bool is_alone(const std::string& symbol, const Type& type) {
  if (!type.is_tensor())
    return is_alone(symbol, type.element());
  const Shape& shape = type.as_tensor().shape;
  return shape.ranked() && std::ranges::find(shape.dims(), Dim::symbol(symbol)) != shape.dims().end();
}

// What becomes of the symbols that a nested graph shares with the operands of its node.
Sizes shared_sizes(const Node& node, const Graph& region, const std::function<Type(const Type&)>& map_type) {
  std::set<std::string> outside;
  for (Value operand : node.operands())
    outside.merge(symbols_of(operand.type()));
  Sizes sizes;
  for (Value input : region.inputs())
    for (const std::string& symbol : symbols_of(input.type()))
      if (outside.contains(symbol))
        sizes.emplace(symbol, map_type(Type::tensor(DType::F32, {Dim::symbol(symbol)})).as_tensor().shape[0]);
  std::erase_if(sizes, [](const auto& size) { return size.second == Dim::symbol(size.first); });
  return sizes;
}

// Copies a node by `copy_with`, which asks what becomes of the symbols of each nested graph. A symbol that
// stands alone in an input is the nested graph's own: it is whatever is fed, in a loop another size in every
// iteration, say. So it becomes what it becomes outside only where the node still makes sense then. Others
// are known outside.
Node* copy_with_regions(const Node& node, const std::function<Type(const Type&)>& map_type,
                        const std::function<Node*(const SizesIn&)>& copy_with) {
  const SizesIn all = [&](const Graph& region) { return shared_sizes(node, region, map_type); };
  const SizesIn known_outside = [&](const Graph& region) {
    Sizes sizes = all(region);
    for (Value input : region.inputs())
      std::erase_if(sizes, [&](const auto& size) { return is_alone(size.first, input.type()); });
    return sizes;
  };
  const bool has_own = std::ranges::any_of(
      node.regions(), [&](const auto& region) { return all(*region) != known_outside(*region); });
  if (has_own) {
    try {
      return copy_with(all);
    } catch (const UserError&) {
    }
  }
  return copy_with(known_outside);
}

// Where `type` has a symbol alone, `sizes` gets the size that `actual` has there.
void match_symbols(const Type& type, const Type& actual, Sizes& sizes) {
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
  const auto mapped = [&](std::string_view name) {
    std::vector<Value> values = node.ins(name);
    std::transform(values.begin(), values.end(), values.begin(), map);
    return Operand(name, std::move(values));
  };
  const auto copy_region = [&](const Graph& region, const Sizes& sizes) {
    const auto sized = [&](const Type& type) { return substitute(type, sizes); };
    std::unique_ptr<Graph> copy = make_region(region.name());
    std::vector<Value> inputs;
    for (Value input : region.inputs())
      inputs.push_back(copy->add_input(sized(input.type()), input.name()));
    copy->set_outputs(copy->copy_nodes(region, inputs, sized), region.output_names());
    return copy;
  };
  const auto copy_with = [&](const SizesIn& sizes_in) {
    std::vector<Operand> operands;
    for (const OperandDecl& decl : node.op().operands)
      operands.push_back(mapped(decl.name));
    for (std::string_view late : node.late_names())
      operands.push_back(mapped(late));
    Attributes attributes = node.attributes();
    for (auto& [name, attribute] : attributes)
      if (attribute.kind() == AttributeKind::Type)
        attribute = map_type(attribute.as<Type>());
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node.regions())
      regions.push_back(copy_region(*region, sizes_in(*region)));
    Types types;
    for (Value result : node.results())
      types.push_back(map_type(result.type()));
    return create(node.op(), std::move(operands), std::move(attributes), std::move(regions), &types);
  };
  Node* copy = copy_with_regions(node, map_type, copy_with);
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
    const Node* copy =
        with_context([&] { return node->describe(); }, [&] { return copy_node(*node, map, map_type); });
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
  Sizes sizes;
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
