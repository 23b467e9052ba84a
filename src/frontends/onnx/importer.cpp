#include "frontends/onnx/importer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_set>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

constexpr int kMaximumDepth = 64;  // of graphs within graphs and functions calling functions

// How an error speaks of a node: by its name, or by what it makes where it has none.
std::string node_label(const NodeProto& node) {
  if (!node.name.empty())
    return std::string(node.name);
  for (std::string_view output : node.output)
    if (!output.empty())
      return std::string(output);
  return std::string(node.op_type);
}

// Calls f for each node, and for those of nested graphs.
template <class F>
void for_each_node(const std::vector<NodeProto>& nodes, const F& f) {
  for (const NodeProto& node : nodes) {
    f(node);
    for (const AttributeProto& attribute : node.attribute)
      for (const GraphProto& graph : attribute.graphs)
        for_each_node(graph.node, f);
  }
}

// The names a node needs: its inputs, and what its nested graphs use from outside.
void collect_needs(const NodeProto& node, std::vector<std::string_view>& needs) {
  needs.insert(needs.end(), node.input.begin(), node.input.end());
  for (const AttributeProto& attribute : node.attribute)
    for (const GraphProto& graph : attribute.graphs) {
      std::unordered_set<std::string_view> own;
      for (const ValueInfoProto& input : graph.input)
        own.insert(input.name);
      for (const TensorProto& initializer : graph.initializer)
        own.insert(initializer.name);
      std::vector<std::string_view> inner_needs;
      for (const NodeProto& inner : graph.node) {
        own.insert(inner.output.begin(), inner.output.end());
        collect_needs(inner, inner_needs);
      }
      for (const ValueInfoProto& output : graph.output)
        inner_needs.push_back(output.name);
      std::copy_if(inner_needs.begin(), inner_needs.end(), std::back_inserter(needs),
                   [&](std::string_view name) { return !own.contains(name); });
    }
}

// The nodes in an order in which each comes after those it needs; the given order where that will do.
std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view output : nodes[i].output)
      if (!output.empty())
        maker.emplace(output, i);
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string_view> needs;
    collect_needs(nodes[i], needs);
    for (std::string_view need : needs)
      if (const auto it = maker.find(need); it != maker.end() && it->second != i) {
        users[it->second].push_back(i);
        ++waiting[i];
      }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  std::vector<const NodeProto*> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(&nodes[i]);
    for (size_t user : users[i])
      if (--waiting[user] == 0)
        ready.push(user);
  }
  for (size_t i = 0; i < nodes.size() && order.size() < nodes.size(); ++i)
    if (waiting[i] > 0)
      throw user_error("node \"{}\": {}: it needs its own result, directly or through other nodes",
                       node_label(nodes[i]), nodes[i].op_type);
  return order;
}

std::vector<std::string> output_names(const GraphProto& proto) {
  std::vector<std::string> names;
  for (const ValueInfoProto& output : proto.output)
    names.emplace_back(output.name);
  return names;
}

// Counts how deep graphs and function calls are nested.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) {
    if (depth_ == kMaximumDepth)
      throw user_error("graphs and function calls are nested more than {} deep", kMaximumDepth);
    ++depth_;
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

}  // namespace

Importer::Importer(const Model& model, const ImportOptions& options)
    : model_(model), options_(options), files_(model.file) {}

// --- names and types
// -------------------------------------------------------------------------------------------------

Type Importer::type(const TypeProto& proto, std::string_view whose, bool in_sequence) {
  switch (proto.kind) {
    case TypeProto::Kind::Tensor: {
      const DType dtype = to_dtype(proto.elem_type);
      if (!proto.shape)
        return Type::tensor(dtype, Shape::unranked());
      std::vector<Dim> dims;
      for (const Dimension& dim : proto.shape->dim) {
        if (dim.value && *dim.value >= 0) {
          dims.push_back(*dim.value);
        } else if (!dim.param.empty()) {
          const Dim symbol = in_sequence ? Dim() : Dim::symbol(dim.param);
          const auto bound = options_.dims.find(std::string(dim.param));
          dims.push_back(bound == options_.dims.end() ? symbol : bound->second);
        } else {
          dims.emplace_back();
        }
      }
      return Type::tensor(dtype, dims);
    }
    case TypeProto::Kind::Sequence:
      return Type::sequence(type(*proto.element, whose, true));
    case TypeProto::Kind::Optional:
      return Type::optional(type(*proto.element, whose, in_sequence));
    case TypeProto::Kind::Unset:
      throw user_error("\"{}\" has no type", whose);
    case TypeProto::Kind::SparseTensor:
      throw unsupported("\"{}\" is a sparse tensor", whose);
    default:
      throw unsupported("\"{}\" is neither a tensor nor a sequence or optional of them", whose);
  }
}

Value Importer::capture(Scope& scope, Value outer) {
  // A small constant is copied, so that it stays a constant for whatever uses it.
  if (const Tensor* known = outer.known_tensor())
    return constant(*scope.graph, *known);
  std::vector<Value>& captured = scope.captures->outer;
  const auto at = std::find(captured.begin(), captured.end(), outer) - captured.begin();
  if (at == static_cast<int64_t>(captured.size())) {
    captured.push_back(outer);
    scope.graph->add_input(outer.type(), outer.name());
  }
  const Value inner = scope.graph->input(scope.own_inputs + at);
  inner.data()->content = outer.data()->content;
  return inner;
}

Value Importer::find(Scope& scope, std::string_view name) {
  if (const auto it = scope.values.find(name); it != scope.values.end())
    return it->second;
  if (const auto it = scope.initializers.find(name); it != scope.initializers.end()) {
    const auto sources = scope.graph->current_sources();
    scope.graph->set_current_sources({});
    const Value value = parameter(*scope.graph, std::string(name), literal(*it->second));
    scope.graph->set_current_sources(sources);
    scope.values.emplace(name, value);
    return value;
  }
  if (scope.outer == nullptr)
    return {};
  const Value outer = find(*scope.outer, name);
  if (!outer)
    return {};
  // A graph that is imported in its outer one's place names its values directly.
  const Value inner = scope.graph == &outer.graph() ? outer : capture(scope, outer);
  scope.values.emplace(name, inner);
  return inner;
}

void Importer::define(Scope& scope, std::string_view name, Value value) {
  if (!scope.values.emplace(name, value).second)
    throw user_error("\"{}\" is made twice", name);
}

void Importer::add_declarations(Scope& scope, const GraphProto& proto) {
  for (const TensorProto& tensor : proto.initializer)
    scope.initializers.emplace(tensor.name, &tensor);
  if (!proto.sparse_initializer.empty())
    throw unsupported("\"{}\" is a sparse initializer", proto.sparse_initializer.front().values.name);
  for (const auto* infos : {&proto.value_info, &proto.output})
    for (const ValueInfoProto& info : *infos)
      if (info.type.kind != TypeProto::Kind::Unset)
        scope.declared.emplace(info.name, &info.type);
}

// --- graphs
// ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Graph> Importer::run() {
  refuse_unknown_ops();
  const GraphProto& proto = model_.proto.graph;
  auto graph = std::make_unique<Graph>(proto.name.empty() ? "main" : std::string(proto.name));
  Scope scope;
  scope.graph = graph.get();
  for (const OperatorSetId& opset : model_.proto.opset_import)
    scope.opsets.emplace(canonical_domain(opset.domain), opset.version);
  add_declarations(scope, proto);
  for (const ValueInfoProto& input : proto.input) {
    if (scope.initializers.contains(input.name))
      continue;  // a weight: old models list them among the inputs
    Type declared = type(input.type, input.name);
    graph->symbols().reserve(declared);
    define(scope, input.name, graph->add_input(std::move(declared), std::string(input.name)));
  }
  import_nodes(scope, proto.node);
  graph->set_outputs(outputs(scope, proto), output_names(proto));
  return graph;
}

Scope Importer::nested(Scope& outer, Graph& graph) {
  Scope scope;
  scope.graph = &graph;
  scope.outer = &outer;
  scope.opsets = outer.opsets;
  scope.call_attributes = outer.call_attributes;
  return scope;
}

std::unique_ptr<Graph> Importer::region(Scope& outer, const GraphProto& proto,
                                        const std::vector<RegionInput>& inputs, Captures& captures) {
  const Deeper deeper(depth_);
  if (proto.input.size() != inputs.size())
    throw user_error("nested graph \"{}\" has {} inputs, but {} are fed", proto.name, proto.input.size(),
                     inputs.size());
  auto graph = outer.graph->make_region(std::string(proto.name));
  Scope scope = nested(outer, *graph);
  scope.captures = &captures;
  add_declarations(scope, proto);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = proto.input[i].name;
    const Type* type = std::get_if<Type>(&inputs[i]);
    define(scope, name,
           type != nullptr ? graph->add_input(*type, std::string(name))
                           : constant(*graph, std::get<Tensor>(inputs[i])));
  }
  scope.own_inputs = graph->input_count();
  // What other regions of the same node captured comes in here too.
  for (Value captured : captures.outer)
    graph->add_input(captured.type(), captured.name());
  import_nodes(scope, proto.node);
  graph->set_outputs(outputs(scope, proto), output_names(proto));
  return graph;
}

std::vector<Value> Importer::inlined(Scope& outer, const GraphProto& proto) {
  const Deeper deeper(depth_);
  if (!proto.input.empty())
    throw user_error("nested graph \"{}\" has {} inputs, but 0 are fed", proto.name, proto.input.size());
  Scope scope = nested(outer, *outer.graph);
  add_declarations(scope, proto);
  import_nodes(scope, proto.node);
  return outputs(scope, proto);
}

std::vector<Value> Importer::outputs(Scope& scope, const GraphProto& proto) {
  std::vector<Value> values;
  for (const ValueInfoProto& output : proto.output) {
    values.push_back(find(scope, output.name));
    if (!values.back())
      throw user_error("output \"{}\"{} is made by no node", output.name,
                       scope.outer == nullptr ? "" : fmt::format(" of nested graph \"{}\"", proto.name));
  }
  return values;
}

void Importer::import_nodes(Scope& scope, const std::vector<NodeProto>& nodes) {
  for (const NodeProto* node : in_order(nodes))
    with_context([&] { return fmt::format("node \"{}\"", node_label(*node)); },
                 [&] { import_node(scope, *node); });
}

void Importer::import_node(Scope& scope, const NodeProto& node) {
  Graph& graph = *scope.graph;
  const std::vector<std::string> sources = graph.current_sources();
  std::vector<Value> results;
  if (const FunctionProto* function = find_function(node)) {
    results = call_function(scope, *function, node);
  } else {
    const std::string_view domain = canonical_domain(node.domain);
    const Conversion* conversion = find_conversion(domain, node.op_type);
    CHECK(conversion != nullptr, "{} was not refused", node.op_type);
    const auto opset = scope.opsets.find(domain);
    if (opset == scope.opsets.end())
      throw user_error("{}: the model does not say which version of domain \"{}\" it uses", node.op_type,
                       domain);
    graph.set_current_sources({node_label(node)});
    results = conversion->convert(NodeView(*this, scope, node, opset->second));
    graph.set_current_sources(sources);
  }
  if (results.size() < node.output.size() &&
      std::any_of(node.output.begin() + static_cast<int64_t>(results.size()), node.output.end(),
                  [](std::string_view name) { return !name.empty(); }))
    throw user_error("{}: it has {} outputs, but {} are named", node.op_type, results.size(),
                     node.output.size());
  for (size_t i = 0; i < node.output.size(); ++i) {
    const std::string_view name = node.output[i];
    if (name.empty())
      continue;
    if (!results[i])
      throw unsupported("{}: its output {} (\"{}\")", node.op_type, i, name);
    if (results[i].use_count() == 0)
      if (const auto declared = scope.declared.find(name); declared != scope.declared.end())
        results[i].refine_type(type(*declared->second, name));
    // A value that was just made takes the user's name for it; a number is no name.
    const bool number = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (results[i].name().empty() && !number)
      results[i].set_name(std::string(name));
    define(scope, name, results[i]);
  }
}

// --- functions
// -------------------------------------------------------------------------------------------------------

const FunctionProto* Importer::find_function(const NodeProto& node) const {
  for (const FunctionProto& function : model_.proto.functions)
    if (function.name == node.op_type && function.overload == node.overload &&
        canonical_domain(function.domain) == canonical_domain(node.domain))
      return &function;
  return nullptr;
}

std::vector<Value> Importer::call_function(Scope& caller, const FunctionProto& function,
                                           const NodeProto& node) {
  const Deeper deeper(depth_);
  CallAttributes attributes;
  for (const AttributeProto& attribute : function.attribute_proto)
    attributes.insert_or_assign(attribute.name, &attribute);
  for (const AttributeProto& attribute : node.attribute) {
    const AttributeProto* given = &attribute;
    if (!attribute.ref_attr_name.empty() && caller.call_attributes != nullptr) {
      const auto it = caller.call_attributes->find(attribute.ref_attr_name);
      if (it == caller.call_attributes->end())
        continue;
      given = it->second;
    }
    attributes.insert_or_assign(attribute.name, given);
  }
  Scope scope;
  scope.graph = caller.graph;
  scope.call_attributes = &attributes;
  for (const OperatorSetId& opset : function.opset_import)
    scope.opsets.emplace(canonical_domain(opset.domain), opset.version);
  if (node.input.size() > function.input.size())
    throw user_error("{}: the function takes {} inputs, but {} are given", function.name,
                     function.input.size(), node.input.size());
  for (size_t i = 0; i < node.input.size(); ++i) {
    if (node.input[i].empty())
      continue;
    const Value argument = find(caller, node.input[i]);
    if (!argument)
      throw user_error("{}: input \"{}\" is made by no node", function.name, node.input[i]);
    define(scope, function.input[i], argument);
  }
  import_nodes(scope, function.node);
  std::vector<Value> results;
  for (std::string_view output : function.output) {
    results.push_back(find(scope, output));
    if (!results.back())
      throw user_error("{}: output \"{}\" of the function is made by no node", function.name, output);
  }
  return results;
}

// --- what we do not know
// ---------------------------------------------------------------------------------------------

// All of it at once, so that the user learns in one go what is missing.
void Importer::refuse_unknown_ops() const {
  for (const OperatorSetId& opset : model_.proto.opset_import)
    if (canonical_domain(opset.domain).empty() && opset.version > kNewestOpset)
      throw unsupported("the model uses opset {}, but the newest we know is {}", opset.version, kNewestOpset);
  std::map<std::string, std::vector<std::string>> unknown;  // op → the nodes that use it
  const auto look = [&](const NodeProto& node) {
    const std::string_view domain = canonical_domain(node.domain);
    if (find_function(node) == nullptr && find_conversion(domain, node.op_type) == nullptr)
      unknown[domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type)]
          .push_back(node_label(node));
  };
  for_each_node(model_.proto.graph.node, look);
  for (const FunctionProto& function : model_.proto.functions)
    for_each_node(function.node, look);
  if (unknown.empty())
    return;
  std::string text =
      fmt::format("{} of its ops {} not supported", unknown.size(), unknown.size() == 1 ? "is" : "are");
  for (const auto& [op, nodes] : unknown) {
    text += fmt::format("\n  {}: {} node{}, \"{}\"", op, nodes.size(), nodes.size() == 1 ? "" : "s",
                        nodes.front());
    for (size_t i = 1; i < std::min<size_t>(nodes.size(), 3); ++i)
      text += fmt::format(", \"{}\"", nodes[i]);
    text += nodes.size() > 3 ? ", …" : "";
  }
  throw UnsupportedError(text);
}

std::unique_ptr<Graph> read_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  const Model model = read_model(path);
  return with_context([&] { return path.string(); }, [&] { return Importer(model, options).run(); });
}

}  // namespace tenon::onnx
