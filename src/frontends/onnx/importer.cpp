#include "frontends/onnx/importer.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/custom.h"
#include "frontends/onnx/keep.h"
#include "frontends/onnx/order.h"
#include "frontends/onnx/signatures.h"
#include "frontends/onnx/sparse.h"
#include "ir/not_a_tensor.h"
#include "ops/data.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

constexpr int kMaximumDepth = 64;  // of graphs within graphs and functions calling functions
// Functions that call others twice, each, and loops within loops unfold to far more nodes than a file holds.
constexpr int64_t kMaximumNodes = 2'000'000;

// The inputs that are fed: old models list weights among them.
std::vector<const ValueInfoProto*> fed_inputs(const Scope& scope, const GraphProto& proto) {
  std::vector<const ValueInfoProto*> inputs;
  for (const ValueInfoProto& input : proto.input)
    if (!scope.initializers.contains(input.name) && !scope.sparse_initializers.contains(input.name))
      inputs.push_back(&input);
  return inputs;
}

std::vector<std::string> output_names(const GraphProto& proto) {
  std::vector<std::string> names;
  for (const ValueInfoProto& output : proto.output)
    names.emplace_back(output.name);
  return names;
}

// Exporters write ? or None for sizes that have nothing to do with each other.
bool is_name(std::string_view dim_param) {
  const bool has_letter = std::any_of(dim_param.begin(), dim_param.end(),
                                      [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; });
  return has_letter && dim_param != "None" && dim_param != "unk" && dim_param != "unknown";
}

// What is said of an output is what came out when the model was exported: of it, only names are taken.
Type names_of(const Type& type) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return type;
  std::vector<Dim> dims = type.as_tensor().shape.dims();
  for (Dim& dim : dims)
    if (dim.is_constant())
      dim = Dim();
  return Type::tensor(type.as_tensor().dtype, dims);
}

// Of several versions of a domain, the last counts.
void add_opsets(Scope& scope, const std::vector<OperatorSetId>& opsets) {
  for (const OperatorSetId& opset : opsets)
    scope.opsets.insert_or_assign(canonical_domain(opset.domain), opset.version);
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

Importer::Importer(const Model& model, const ImportOptions& options, const TensorElements& elements)
    : model_(model), options_(options), elements_(elements), files_(model.file, options.folder) {
  for (const FunctionProto& function : model.proto.functions)
    if (!functions_
             .emplace(std::tuple(canonical_domain(function.domain), function.name, function.overload),
                      &function)
             .second)
      throw user_error("function \"{}\" is defined twice", function.name);
}

// --- names and types

Type Importer::type(const TypeProto& proto, std::string_view whose, bool in_sequence) {
  switch (proto.kind) {
    case TypeProto::Kind::Tensor: {
      const DType dtype = to_dtype(proto.elem_type);
      // Of a sequence's elements, [] often stands for any shape.
      if (!proto.shape || (in_sequence && proto.shape->dim.empty()))
        return Type::tensor(dtype, Shape::unranked());
      std::vector<Dim> dims;
      for (const Dimension& dim : proto.shape->dim) {
        if (dim.value && *dim.value >= 0) {
          dims.push_back(*dim.value);
        } else if (is_name(dim.param)) {
          dims.push_back(in_sequence ? Dim() : Dim::symbol(dim.param));
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

Literal Importer::literal(const TensorProto& tensor) {
  const auto in_memory = elements_.find(&tensor);
  return in_memory != elements_.end() ? in_memory->second : to_literal(tensor, files_);
}

Literal Importer::literal(const SparseTensorProto& tensor) { return to_dense(tensor, files_); }

std::optional<Literal> Importer::initializer(const Scope& scope, std::string_view name) {
  if (const auto it = scope.initializers.find(name); it != scope.initializers.end())
    return literal(*it->second);
  if (const auto it = scope.sparse_initializers.find(name); it != scope.sparse_initializers.end())
    return literal(*it->second);
  return std::nullopt;
}

Value Importer::find(Scope& scope, std::string_view name) {
  if (const auto it = scope.values.find(name); it != scope.values.end())
    return it->second;
  if (std::optional<Literal> weight = initializer(scope, name)) {
    const WithSources none(*scope.graph, {});
    const Value value = parameter(*scope.graph, std::string(name), std::move(*weight));
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

Value Importer::argument(Scope& scope, std::string_view op_type, std::string_view name) {
  const Value value = find(scope, name);
  const Scope* left_out = value ? nullptr : &scope;
  while (left_out != nullptr && !left_out->values.contains(name))
    left_out = left_out->outer;
  if (!value && left_out == nullptr)
    throw user_error("{}: input \"{}\" is made by no node, and is neither a weight nor an input of the graph",
                     op_type, name);
  return value;
}

void Importer::define(Scope& scope, std::string_view name, Value value) {
  if (scope.initializers.contains(name) || scope.sparse_initializers.contains(name) ||
      !scope.values.emplace(name, value).second)
    throw user_error("\"{}\" is made twice", name);
}

void Importer::add_declarations(Scope& scope, const GraphProto& proto) {
  for (const TensorProto& tensor : proto.initializer)
    if (!scope.initializers.emplace(tensor.name, &tensor).second)
      throw user_error("\"{}\" is made twice", tensor.name);
  for (const SparseTensorProto& tensor : proto.sparse_initializer)
    if (scope.initializers.contains(tensor.values.name) ||
        !scope.sparse_initializers.emplace(tensor.values.name, &tensor).second)
      throw user_error("\"{}\" is made twice", tensor.values.name);
  for (const ValueInfoProto& info : proto.value_info)
    if (says_something(info.type))
      scope.declared.emplace(info.name, &info.type);
  for (const ValueInfoProto& output : proto.output)
    if (says_something(output.type))
      scope.declared_outputs.emplace(output.name, &output.type);
}

// --- graphs

std::unique_ptr<Graph> Importer::run() {
  refuse_unknown_ops(model_.proto, [&](const NodeProto& node) { return find_function(node); });
  const GraphProto& proto = model_.proto.graph;
  auto graph = std::make_unique<Graph>(proto.name.empty() ? "main" : std::string(proto.name));
  Scope scope;
  scope.graph = graph.get();
  add_opsets(scope, model_.proto.opset_import);
  if (model_.proto.ir_version < 3 && model_.proto.opset_import.empty())
    scope.opsets.emplace("", 1);  // there were no others
  add_declarations(scope, proto);
  for (const ValueInfoProto* input : fed_inputs(scope, proto))
    add_input(scope, *input);
  // After the others, whose places stay the same.
  for (const ValueInfoProto& input : proto.input)
    if (options_.overridden.contains(input.name) &&
        scope.initializers.erase(input.name) + scope.sparse_initializers.erase(input.name) > 0)
      add_input(scope, input);
  import_nodes(scope, proto.node);
  std::vector<Value> values = outputs(scope, proto);
  std::vector<std::string> names = output_names(proto);
  if (options_.gives_statistics)
    for (const auto& [name, next] : next_statistics(scope, proto)) {
      values.push_back(next);
      names.push_back(name);
    }
  graph->set_outputs(values, names);
  return graph;
}

std::map<std::string, Value> Importer::next_statistics(Scope& scope, const GraphProto& proto) {
  constexpr size_t kStatisticInputs = 3, kStatisticOutputs = 1;  // the mean, and the variance after it
  std::map<std::string, Value> next;
  for (const NodeProto& node : proto.node) {
    if (node.op_type != "BatchNormalization" || !canonical_domain(node.domain).empty() ||
        find_function(node) != nullptr || node.input.size() < kStatisticInputs + 2)
      continue;
    for (size_t i = 0; i < 2 && kStatisticOutputs + i < node.output.size(); ++i) {
      const std::string_view name = node.input[kStatisticInputs + i],
                             output = node.output[kStatisticOutputs + i];
      if (!output.empty() && scope.initializers.contains(name))
        next.emplace(name, find(scope, output));
    }
  }
  return next;
}

void Importer::add_input(Scope& scope, const ValueInfoProto& input) {
  Type declared = type(input.type, input.name);
  scope.graph->symbols().reserve(declared);
  define(scope, input.name, scope.graph->add_input(std::move(declared), std::string(input.name)));
}

Scope Importer::nested(Scope& outer, Graph& graph) {
  Scope scope;
  scope.graph = &graph;
  scope.outer = &outer;
  scope.opsets = outer.opsets;
  scope.call_attributes = outer.call_attributes;
  scope.path = outer.path;
  return scope;
}

std::unique_ptr<Graph> Importer::region(Scope& outer, const GraphProto& proto,
                                        const std::vector<RegionInput>& inputs, Captures& captures) {
  const Deeper deeper(depth_);
  auto graph = outer.graph->make_region(std::string(proto.name));
  Scope scope = nested(outer, *graph);
  scope.captures = &captures;
  add_declarations(scope, proto);
  const std::vector<const ValueInfoProto*> fed = fed_inputs(scope, proto);
  if (fed.size() != inputs.size())
    throw user_error("nested graph \"{}\" has {} inputs, but {} are fed", proto.name, fed.size(),
                     inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = fed[i]->name;
    const Type* type = std::get_if<Type>(&inputs[i]);
    Value value = type != nullptr ? graph->add_input(*type, std::string(name))
                                  : constant(*graph, std::get<Tensor>(inputs[i]));
    // Old exporters declare the number of a loop's iteration as a vector of one.
    if (const auto& shape = fed[i]->type.shape; shape && shape->dim.size() == 1 && shape->dim[0].value == 1 &&
                                                value.type().is_tensor() && value.shape() == Shape())
      value = reshape(value, {1});
    define(scope, name, value);
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
  Scope scope = nested(outer, *outer.graph);
  add_declarations(scope, proto);
  if (const size_t inputs = fed_inputs(scope, proto).size(); inputs != 0)
    throw user_error("nested graph \"{}\" has {} inputs, but 0 are fed", proto.name, inputs);
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

// Weights become parameters before it is known whether the conversion uses them. Those that it does not use
// are erased, so that they are made when another node asks for them, if ever.
std::vector<Value> Importer::convert(Scope& scope, const NodeProto& node) {
  const std::string_view domain = canonical_domain(node.domain);
  const Conversion* conversion = find_conversion(domain, node.op_type);
  const auto opset = scope.opsets.find(domain);
  if (opset == scope.opsets.end())
    throw user_error("{}: the model does not say which version of domain \"{}\" it uses", node.op_type,
                     domain);
  if (opset->second < 1)
    throw user_error("{}: the model uses version {} of domain \"{}\", but the first is 1", node.op_type,
                     opset->second, domain);
  if (has_signature(domain, node.op_type))
    check_signature(node, opset->second);
  std::vector<std::string_view> new_weights;
  for (std::string_view name : node.input)
    if (!scope.values.contains(name) &&
        (scope.initializers.contains(name) || scope.sparse_initializers.contains(name)))
      new_weights.push_back(name);

  Graph& graph = *scope.graph;
  const WithSources sources(graph, {scope.path + node_label(node)});
  const std::vector<Value> results = naming_op(node.op_type, [&] {
    const NodeView view(*this, scope, node, opset->second);
    if (conversion != nullptr) {
      const std::vector<Value> converted = conversion->convert(view);
      return options_.kept.contains(scope.path + node_label(node)) ? kept_or(view, converted) : converted;
    }
    const AddedOp* added = find_added_op(domain, node.op_type);
    return added != nullptr ? convert_added(*added, view) : keep_custom(view, declared_types(scope, node));
  });
  for (std::string_view name : new_weights) {
    const auto weight = scope.values.find(name);
    if (weight == scope.values.end() || weight->second.use_count() > 0 ||
        std::find(results.begin(), results.end(), weight->second) != results.end())
      continue;
    graph.erase(weight->second.node());
    scope.values.erase(weight);
  }
  return results;
}

void Importer::import_node(Scope& scope, const NodeProto& node) {
  if (++imported_ > kMaximumNodes)
    throw user_error("functions and nested graphs unfold to more than {} nodes", kMaximumNodes);
  const FunctionProto* function = find_function(node);
  const std::vector<Value> results =
      function != nullptr ? call_function(scope, *function, node) : convert(scope, node);
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
      take_declared_type(scope, name, results[i]);
    // A value that was just made takes the user's name for it; a number is no name.
    const bool number = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (results[i].name().empty() && !number)
      results[i].set_name(std::string(name));
    define(scope, name, results[i]);
  }
}

Types Importer::declared_types(const Scope& scope, const NodeProto& node) {
  Types types;
  for (std::string_view name : node.output) {
    if (name.empty())
      continue;
    const bool is_inner = scope.declared.contains(name);
    CHECK(is_inner || scope.declared_outputs.contains(name), "\"{}\" has no type, but was not refused", name);
    types.push_back(type(*(is_inner ? scope.declared : scope.declared_outputs).at(name), name));
  }
  return types;
}

void Importer::take_declared_type(const Scope& scope, std::string_view name, Value value) {
  if (const auto it = scope.declared.find(name); it != scope.declared.end())
    value.refine_type(type(*it->second, name));
  else if (const auto output = scope.declared_outputs.find(name);
           output != scope.declared_outputs.end() && value.type().is_tensor() && value.shape().ranked())
    value.refine_type(names_of(type(*output->second, name)));
}

// --- functions

const FunctionProto* Importer::find_function(const NodeProto& node) const {
  const auto it = functions_.find({canonical_domain(node.domain), node.op_type, node.overload});
  return it == functions_.end() ? nullptr : it->second;
}

std::vector<Value> Importer::call_function(Scope& caller, const FunctionProto& function,
                                           const NodeProto& node) {
  const Deeper deeper(depth_);
  if (std::find(running_.begin(), running_.end(), &function) != running_.end())
    throw user_error("{}: the function calls itself", function.name);
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
  scope.path = caller.path + node_label(node) + "/";
  add_opsets(scope, function.opset_import);
  if (node.input.size() > function.input.size())
    throw user_error("{}: the function takes {} inputs, but {} are given", function.name,
                     function.input.size(), node.input.size());
  for (size_t i = 0; i < function.input.size(); ++i) {
    const std::string_view name = i < node.input.size() ? node.input[i] : std::string_view();
    define(scope, function.input[i], name.empty() ? Value() : argument(caller, function.name, name));
  }
  running_.push_back(&function);
  import_nodes(scope, function.node);
  running_.pop_back();
  std::vector<Value> results;
  for (std::string_view output : function.output) {
    results.push_back(find(scope, output));
    if (!results.back())
      throw user_error("{}: output \"{}\" of the function is made by no node", function.name, output);
  }
  return results;
}

std::unique_ptr<Graph> read_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  return read_onnx(MappedFile::open(path), options);
}

std::unique_ptr<Graph> read_onnx(std::shared_ptr<const MappedFile> file, const ImportOptions& options) {
  const Model model = read_model(std::move(file));
  return with_context([&] { return model.file->path().string(); },
                      [&] { return Importer(model, options).run(); });
}

std::unique_ptr<Graph> read_onnx(const Model& model, const TensorElements& elements) {
  const ImportOptions options;
  return with_context([&] { return model.file->path().string(); },
                      [&] { return Importer(model, options, elements).run(); });
}

}  // namespace tenon::onnx
