#include "lowering/lower_graph.h"

#include <algorithm>

#include "base/error.h"
#include "ops/data.h"
#include "ops/lower.h"
#include "ops/random.h"
#include "passes/target/constant_pieces.h"
#include "passes/target/decompose_ops.h"
#include "tensor/wide.h"

namespace tenon::lowering {

using loops::Buffer;
using loops::Definition;
using loops::Scalar;

namespace {

// The number that a constant of one element is.
std::optional<Scalar> as_number(Value value) {
  const Literal* literal = literal_of(value);
  if (literal == nullptr || literal->is_deferred() || !has_code(value.type()))
    return std::nullopt;
  Tensor element;
  if (const auto* splat = std::get_if<Literal::Splat>(&literal->form()))
    element = splat->element;
  else if (literal->count() == 1)
    element = literal->tensor();
  else
    return std::nullopt;
  return with_wide(element.dtype(),
                   [&]<class T>(T) { return Scalar::number(element.dtype(), widen<T>(element).front()); });
}

// Whether computing it fails for some elements.
bool refuses(const Scalar& scalar) {
  using loops::Function;
  if (scalar.kind() == Scalar::Kind::Apply) {
    const Function function = scalar.function();
    if (function == Function::Require)
      return true;
    const bool divides = function == Function::Divide || function == Function::Remainder;
    if (divides && is_integer(scalar.dtype()) && scalar.operands()[1].kind() != Scalar::Kind::Number)
      return true;
  }
  return std::any_of(scalar.operands().begin(), scalar.operands().end(), refuses);
}

class Lowering {
 public:
  explicit Lowering(const Graph& graph) {
    result_.name = graph.name();
    for (Value input : graph.inputs()) {
      result_.inputs.push_back(add_buffer(input, Home::Input));
      if (input.use_count() > 0 && input.type().is_tensor() && input.shape().ranked())
        for (const Dim& dim : input.shape().dims())
          if (dim.is_symbol())
            known_.insert(dim.symbols().front());
    }
    for (const Node* node : graph.nodes())
      for (Value result : node->results())
        add_buffer(result, is_constant(result) ? Home::Constant : Home::Intermediate);
    for (Value output : graph.outputs()) {
      result_.outputs.push_back(result_.buffer_of(output));
      if (Home& home = result_.buffers[result_.outputs.back()].home; home == Home::Intermediate)
        home = Home::Output;
    }
    for (const Node* node : graph.nodes())
      lower(*node);
  }

  KernelGraph run() { return std::move(result_); }

 private:
  BufferId add_buffer(Value value, Home home) {
    KernelBuffer buffer{
        .elements = {.name = fmt::format("v{}", result_.values.size())}, .home = home, .value = value};
    if (has_code(value.type())) {
      buffer.elements.dtype = value.dtype();
      buffer.elements.sizes = value.shape().dims();
    } else {
      buffer.host_type = value.type();
    }
    const BufferId id = result_.buffers.add(std::move(buffer));
    result_.values.emplace(value.data(), id);
    return id;
  }
  const std::string& name_of(Value value) const { return result_.buffers[result_.buffer_of(value)].name(); }

  void add_other(const Node& node, KernelNode::Kind kind) {
    KernelNode other{.kind = kind, .node = &node};
    for (Value operand : node.operands())
      other.operands.push_back(result_.buffer_of(operand));
    for (Value each : node.results())
      other.results.push_back(result_.buffer_of(each));
    if (kind == KernelNode::Kind::Alias)
      other.operands.resize(1);  // others give sizes
    other.reads = {other.operands.begin(), other.operands.end()};
    other.writes = {other.results.begin(), other.results.end()};
    const auto& regions = node.op().regions;
    other.loop = std::find(regions.begin(), regions.end(), "body") != regions.end();
    other.stays = takes_call(node);
    result_.nodes.push_back(std::move(other));
  }

  void add_nest(const Node& node, const std::vector<loops::Statement>& body) {
    add_other(node, KernelNode::Kind::Nest);
    loops::Kernel nest{.name = "kernel", .inputs = {}, .outputs = {}, .combines = {}, .body = body};
    const auto add = [&](std::vector<Buffer>& to, BufferId id, std::string name) {
      to.push_back(result_.buffers[id].elements);
      to.back().name = std::move(name);
    };
    KernelNode& other = result_.nodes.back();
    for (size_t i = 0; i < other.operands.size(); ++i)
      add(nest.inputs, other.operands[i], LowerContext::operand_name(static_cast<int64_t>(i)));
    for (size_t i = 0; i < other.results.size(); ++i)
      add(nest.outputs, other.results[i], LowerContext::result_name(static_cast<int64_t>(i)));
    other.nest = std::move(nest);
    other.sources = labels_of(node);
  }

  // Whether a node has dynamic sizes, known only once it or a predecessor has run: code needs them all.
  bool has_unknown_sizes(const std::vector<Value>& values) const {
    std::set<std::string> symbols;
    for (Value value : values)
      add_symbols(value.type(), symbols);
    return !std::includes(known_.begin(), known_.end(), symbols.begin(), symbols.end());
  }

  // A node whose results determine sizes.
  void learn_sizes(const Node& node) {
    for (Value result : node.results())
      if (result.type().is_tensor() && result.shape().ranked())
        for (const Dim& dim : result.shape().dims())
          if (dim.is_symbol())
            known_.insert(dim.symbols().front());
  }

  static void add_symbols(const Type& type, std::set<std::string>& symbols) {
    if (!type.is_tensor())
      return add_symbols(type.element(), symbols);
    if (type.as_tensor().shape.ranked())
      for (const Dim& dim : type.as_tensor().shape.dims())
        for (const std::string& symbol : dim.symbols())
          symbols.insert(symbol);
  }

  void lower(const Node& node) {
    if (node.result_count() == 1 && is_constant(node.result()))
      return;
    if (has_unknown_sizes(node.results())) {
      add_other(node, KernelNode::Kind::Host);
      result_.nodes.back().stays = true;
      return learn_sizes(node);
    }
    if (has_unknown_sizes(node.operands()))
      return add_other(node, KernelNode::Kind::Host);
    if (node.op().traits.reshapes && has_code(node.result().type()) && has_code(node.operand(0).type()))
      return add_other(node, KernelNode::Kind::Alias);
    if (node.op().lower == nullptr || !has_code(node))
      return add_other(node, KernelNode::Kind::Host);
    LowerContext context(node);
    node.op().lower(context);
    if (context.statements())
      return add_nest(node, *context.statements());
    if (context.definitions().empty())
      return add_other(node, KernelNode::Kind::Host);
    add_stages(node, context.definitions());
  }

  void add_stages(const Node& node, const std::vector<Definition>& definitions) {
    std::map<std::string, std::string> names;  // from those of lower to those of the program
    for (int64_t i = 0; i < node.operand_count(); ++i)
      names.emplace(LowerContext::operand_name(i), name_of(node.operand(i)));
    for (int64_t i = 0; i < node.result_count(); ++i)
      names.emplace(LowerContext::result_name(i), name_of(node.result(i)));
    for (Definition definition : definitions) {
      for (Buffer& buffer : definition.results) {
        if (const auto [it, own] =
                names.emplace(buffer.name, fmt::format("{}_{}", name_of(node.result()), buffer.name));
            own)
          result_.buffers.add(
              {.elements = {.name = it->second, .dtype = buffer.dtype, .sizes = buffer.sizes}});
        buffer.name = names.at(buffer.name);
      }
      for (Scalar& value : definition.values)
        value = loops::replace_loads(value, [&](const Scalar& load) { return read(node, names, load); });
      std::vector<Scalar> conditions;
      for (const Scalar& value : definition.values)
        add_conditions(value, conditions);
      for (const Scalar& condition : conditions)
        add_check(node, definition, condition);
      add_stage(node, std::move(definition));
    }
  }

  void add_stage(const Node& node, Definition definition) {
    Stage stage{.definition = loops::without_unit_axes(std::move(definition)), .sources = labels_of(node)};
    if (std::ranges::any_of(stage.definition.values, refuses))
      stage.refusing = stage.sources;
    result_.nodes.push_back(make_node(std::move(stage), result_.buffers));
  }

  // Preconditions of loaded elements, wherever an expression is computed.
  static void add_conditions(const Scalar& scalar, std::vector<Scalar>& conditions) {
    const bool applies = scalar.kind() == Scalar::Kind::Apply;
    if (applies && scalar.function() == loops::Function::Require) {
      bool reads = false;
      loops::for_each_load(scalar.operands()[0], [&](const Scalar&) { reads = true; });
      if (reads && std::find(conditions.begin(), conditions.end(), scalar.operands()[0]) == conditions.end())
        conditions.push_back(scalar.operands()[0]);
    }
    // Only one operand of a select is computed.
    const bool selects = applies && scalar.function() == loops::Function::Select;
    for (size_t i = 0; i < (selects ? 1 : scalar.operands().size()); ++i)
      add_conditions(scalar.operands()[i], conditions);
  }

  // A stage that checks the condition, in place of one whose other axes are empty, which would check nothing.
  void add_check(const Node& node, const Definition& definition, const Scalar& condition) {
    Dim iterations = 1;
    std::vector<loops::Axis> axes;
    for (const std::vector<loops::Axis>* all : {&definition.axes, &definition.reduced})
      for (const loops::Axis& axis : *all)
        if (loops::mentions(condition, axis.variable))
          axes.push_back(axis);
        else
          iterations = iterations * axis.size;
    if (iterations.lower_bound().value_or(0) > 0)
      return;
    axes.insert(axes.begin(), {"none0", max(1 - iterations, 0)});
    const Buffer holds{.name = fmt::format("{}_check{}", definition.results.front().name, checks_++),
                       .dtype = DType::Bool};
    result_.buffers.add({.elements = holds});
    const Scalar yes = Scalar::number(DType::Bool, uint64_t{1});
    add_stage(node, {.results = {holds},
                     .axes = {},
                     .reduced = std::move(axes),
                     .at = {},
                     .combine = "and",
                     .own_combine = std::nullopt,
                     .initial = {yes},
                     .values = {loops::require(condition, yes)}});
    result_.nodes.back().stays = true;
  }

  // A load by the program's name; a number where all elements are equal.
  Scalar read(const Node& node, const std::map<std::string, std::string>& names, const Scalar& load) const {
    for (int64_t i = 0; i < node.operand_count(); ++i)
      if (load.name() == LowerContext::operand_name(i))
        if (const std::optional<Scalar> number = as_number(node.operand(i)))
          return *number;
    return Scalar::load(names.at(load.name()), load.dtype(), load.operands());
  }

  KernelGraph result_;
  int64_t checks_ = 0;
  std::set<std::string> known_;  // sizes, before the node that is lowered runs
};

}  // namespace

KernelGraph lower_graph(const Graph& graph) { return Lowering(graph).run(); }

}  // namespace tenon::lowering
