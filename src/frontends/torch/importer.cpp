#include "frontends/torch/importer.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "frontends/torch/archive.h"
#include "frontends/torch/import.h"
#include "ir/not_a_tensor.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"

namespace tenon::torch {
namespace {

constexpr int kMaximumDepth = 64;  // of graphs within graphs

// How errors and reports speak of a node: layer1.0.conv1/conv2d.
std::string label(const NodeSpec& node) {
  return node.module.empty() ? node.name : node.module + "/" + node.name;
}

template <class F>
void for_each_node(const GraphSpec& graph, const F& f) {
  for (const NodeSpec& node : graph.nodes) {
    f(graph, node);
    for (const NamedArgument& input : node.inputs)
      if (const auto* nested = std::get_if<Nested>(&input.argument))
        for_each_node(*nested->graph, f);
  }
}

std::string name_of(const Argument& argument) {
  if (const auto* tensor = std::get_if<TensorName>(&argument))
    return tensor->name;
  if (const auto* symbol = std::get_if<SymbolName>(&argument))
    return symbol->name;
  throw unsupported("an input or output of a graph that is {}", describe(argument));
}

template <class F>
void for_each_tensor(const Argument& argument, const F& f) {
  if (const auto* tensor = std::get_if<TensorName>(&argument))
    f(tensor->name);
  else if (const auto* tensors = std::get_if<std::vector<TensorName>>(&argument))
    for (const TensorName& each : *tensors)
      f(each.name);
  else if (const auto* optional = std::get_if<OptionalTensors>(&argument))
    for (const std::optional<std::string>& each : optional->names)
      if (each)
        f(*each);
}

bool is_complex(const GraphSpec& graph, std::string_view tensor) {
  const auto meta = graph.tensors.find(tensor);
  return meta != graph.tensors.end() && kind(meta->second.dtype) == DTypeKind::Complex;
}

bool has_complex(const GraphSpec& graph, const Argument& argument) {
  bool has = false;
  for_each_tensor(argument, [&](const std::string& name) { has = has || is_complex(graph, name); });
  return has;
}

// The tensor that an op in place changes, and that a view is of.
const std::string& first_tensor(const NodeView& view) {
  if (!view.spec().inputs.empty())
    if (const auto* tensor = std::get_if<TensorName>(&view.spec().inputs.front().argument))
      return tensor->name;
  throw user_error("{}: its first argument must be a tensor", view.op());
}

}  // namespace

Value Scope::number(std::string_view name) const {
  const auto it = numbers.find(name);
  if (it == numbers.end())
    throw user_error("\"{}\" is made by no node, and is no input of the graph", name);
  return it->second;
}

Importer::Importer(const Program& program, WeightSource weights, std::vector<RefusedNode>* refused)
    : program_(program), weights_(std::move(weights)), refused_(refused) {
  if (refused == nullptr)
    return;
  const auto use = [&](const Argument& argument) {
    for_each_tensor(argument, [&](const std::string& name) { used_.insert(name); });
  };
  for (const NodeSpec& node : program.graph.nodes)
    for (const NamedArgument& input : node.inputs)
      use(input.argument);
  for (const OutputSpec& output : program.outputs)
    use(output.argument);
  pairs_ = can_pair(program.graph);
}

bool Importer::can_pair(const GraphSpec& graph) const {
  const auto has = [&](const auto& spec) { return has_complex(graph, spec.argument); };
  return std::ranges::none_of(program_.inputs, has) && std::ranges::none_of(program_.outputs, has) &&
         std::ranges::all_of(graph.nodes, [&](const NodeSpec& node) {
           return !takes_or_gives_complex(graph, node) ||
                  find_complex_conversion(op_of(node.target)).conversion != nullptr;
         });
}

bool Importer::takes_or_gives_complex(const GraphSpec& graph, const NodeSpec& node) {
  return std::ranges::any_of(
             node.inputs, [&](const NamedArgument& input) { return has_complex(graph, input.argument); }) ||
         std::ranges::any_of(node.outputs,
                             [&](const Argument& output) { return has_complex(graph, output); });
}

Found Importer::find_conversion_of(const GraphSpec& graph, const NodeSpec& node, std::string_view op) const {
  return pairs_ && takes_or_gives_complex(graph, node) ? find_complex_conversion(op) : find_conversion(op);
}

TensorMeta Importer::held(const TensorMeta& meta) const {
  if (!pairs_ || kind(meta.dtype) != DTypeKind::Complex)
    return meta;
  TensorMeta pairs = meta;
  pairs.dtype = meta.dtype == DType::C128 ? DType::F64 : DType::F32;
  pairs.sizes.emplace_back(2);
  return pairs;
}

void Importer::define_missing(Scope& scope, const std::string& name, const std::string& why) {
  if (used_.contains(name))
    throw unsupported("{} is not given", why);
  scope.tensors.define_missing(name, why);
}

std::unique_ptr<Graph> Importer::run() {
  if (refused_ == nullptr)
    refuse_unknown_ops();
  auto graph = std::make_unique<Graph>();
  Scope scope = {.graph = graph.get(), .spec = &program_.graph};
  for (const InputSpec& input : program_.inputs)
    add_input(scope, input);
  import_nodes(scope);
  if (refused_ != nullptr && !refused_->empty())
    return nullptr;
  set_outputs(scope);
  return graph;
}

// Sizes whose range has one number are that number.
Type Importer::declared_type(const TensorMeta& said) const {
  const TensorMeta meta = held(said);
  std::vector<Dim> dims = meta.sizes;
  std::map<std::string, Dim> fixed;
  for (const Dim& dim : dims)
    for (const std::string& symbol : dim.symbols()) {
      const auto range = program_.ranges.find(symbol);
      if (range != program_.ranges.end() && range->second.least &&
          range->second.least == range->second.greatest)
        fixed.emplace(symbol, *range->second.least);
    }
  for (Dim& dim : dims)
    dim = dim.substitute(fixed);
  return Type::tensor(meta.dtype, dims);
}

Value Importer::add_user_input(Scope& scope, const std::string& name) {
  const auto meta = scope.spec->tensors.find(name);
  if (meta == scope.spec->tensors.end())
    throw user_error("the input \"{}\" has no type", name);
  if (pairs_ && is_complex(*scope.spec, name))
    throw unsupported(
        "the input \"{}\" is of complex numbers, which models do not take\n  hint: let the module take what "
        "torch.view_as_real makes of them",
        name);
  const Type type = declared_type(meta->second);
  scope.graph->symbols().reserve(type);
  return scope.graph->add_input(type, name);
}

namespace {

// Complex numbers in memory are pairs of reals.
Literal as_pairs(Literal literal) {
  if (kind(literal.dtype()) != DTypeKind::Complex)
    return literal;
  const auto elements = std::make_shared<const Tensor>(literal.tensor());
  Extents extents = literal.extents();
  extents.push_back(2);
  return Tensor(literal.dtype() == DType::C128 ? DType::F64 : DType::F32, extents, elements,
                elements->bytes());
}

}  // namespace

Value Importer::weight(Graph& graph, const InputSpec& input) {
  const WithSources none(graph, {});
  const auto as_held = [&](Literal literal) { return pairs_ ? as_pairs(std::move(literal)) : literal; };
  if (input.kind != InputSpec::Kind::Constant)
    return parameter(graph, input.target, as_held(weights_.weight(input.target)));
  const Value value = constant(graph, as_held(weights_.constant(input.target)));
  value.set_name(input.target);
  return value;
}

void Importer::add_input(Scope& scope, const InputSpec& input) {
  if (std::holds_alternative<TensorName>(input.argument)) {
    const std::string name = name_of(input.argument);
    if (input.kind == InputSpec::Kind::User)
      return scope.tensors.define(name, add_user_input(scope, name));
    return scope.tensors.define_weight(
        name, [this, &graph = *scope.graph, &input] { return weight(graph, input); });
  }
  if (std::holds_alternative<SymbolName>(input.argument)) {
    const std::string name = name_of(input.argument);
    const Value value = scope.graph->add_input(Type::tensor(DType::I64, {}), name);
    scope.numbers.emplace(name, value);
  }
  // A number that was fixed when the model was exported is in the graph already.
}

Value Importer::output(Scope& scope, const Argument& argument) const {
  if (const auto* number = std::get_if<int64_t>(&argument))
    return constant(*scope.graph, Tensor::scalar(*number));
  if (const auto* number = std::get_if<double>(&argument))
    return constant(*scope.graph, Tensor::scalar(*number));
  if (const auto* truth = std::get_if<bool>(&argument))
    return constant(*scope.graph, Tensor::scalar(*truth));
  const std::string name = name_of(argument);
  if (pairs_ && depth_ == 0 && has_complex(*scope.spec, argument))
    throw unsupported(
        "the output \"{}\" is of complex numbers, which models do not give\n  hint: let the module return "
        "what "
        "torch.view_as_real makes of them",
        name);
  return std::holds_alternative<TensorName>(argument) ? scope.tensors.get(name) : scope.number(name);
}

void Importer::set_outputs(Scope& scope) {
  std::vector<Value> values;
  std::vector<std::string> names;
  const auto add = [&](Value value, const std::string& name) {
    values.push_back(value);
    const bool taken = std::ranges::find(names, name) != names.end();
    names.push_back(taken || name.empty() ? fmt::format("{}_{}", name.empty() ? "output" : name, names.size())
                                          : name);
  };
  for (const OutputSpec& spec : program_.outputs)
    if (spec.kind == OutputSpec::Kind::User && !std::holds_alternative<None>(spec.argument)) {
      const bool named = std::holds_alternative<TensorName>(spec.argument) ||
                         std::holds_alternative<SymbolName>(spec.argument);
      add(output(scope, spec.argument), named ? name_of(spec.argument) : "");
    }
  // What the run changes beside: it is handed out, since we have no place to keep it.
  for (const OutputSpec& spec : program_.outputs)
    if (spec.kind != OutputSpec::Kind::User)
      add(output(scope, spec.argument),
          spec.kind == OutputSpec::Kind::Gradient ? "grad_" + spec.target : spec.target);
  for (const InputSpec& input : program_.inputs)
    if (const auto* tensor = std::get_if<TensorName>(&input.argument);
        tensor != nullptr && scope.tensors.was_changed(tensor->name))
      add(scope.tensors.get(tensor->name), input.target.empty() ? tensor->name : input.target);
  scope.graph->set_outputs(values, names);
}

std::vector<Value> Importer::import_graph(Graph& graph, const GraphSpec& spec,
                                          const std::vector<Value>& inputs) {
  if (depth_ == kMaximumDepth)
    throw user_error("graphs are nested more than {} deep", kMaximumDepth);
  ++depth_;
  Scope scope = {.graph = &graph, .spec = &spec};
  if (inputs.size() != spec.inputs.size())
    throw user_error("a nested graph has {} inputs, but {} are fed", spec.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::holds_alternative<SymbolName>(spec.inputs[i]))
      scope.numbers.emplace(name_of(spec.inputs[i]), inputs[i]);
    else
      scope.tensors.define(name_of(spec.inputs[i]), inputs[i]);
  }
  import_nodes(scope);
  for (const Argument& input : spec.inputs)
    if (const auto* tensor = std::get_if<TensorName>(&input);
        tensor != nullptr && scope.tensors.was_changed(tensor->name))
      throw unsupported("a nested graph changes its input \"{}\" in place", tensor->name);
  std::vector<Value> outputs;
  for (const Argument& argument : spec.outputs)
    outputs.push_back(output(scope, argument));
  --depth_;
  return outputs;
}

void Importer::import_nodes(Scope& scope) {
  for (const NodeSpec& node : scope.spec->nodes)
    with_context([&] { return fmt::format("node \"{}\"", label(node)); }, [&] { import_node(scope, node); });
}

void Importer::import_node(Scope& scope, const NodeSpec& node) {
  if (refused_ == nullptr || depth_ > 0)
    return convert_node(scope, node);
  try {
    convert_node(scope, node);
  } catch (const UserError& error) {
    refuse(scope, node, error.what());
  }
}

void Importer::refuse(Scope& scope, const NodeSpec& node, const std::string& reason) {
  refused_->push_back({node.name, reason});
  const auto stand_in = [&](const std::string& name) {
    const auto meta = scope.spec->tensors.find(name);
    if (meta != scope.spec->tensors.end() && !scope.tensors.is_defined(name))
      scope.tensors.define(name, scope.graph->add_input(declared_type(meta->second), name));
  };
  for (const Argument& output : node.outputs) {
    if (const auto* tensor = std::get_if<TensorName>(&output))
      stand_in(tensor->name);
    else if (const auto* list = std::get_if<std::vector<TensorName>>(&output))
      std::ranges::for_each(*list, stand_in, &TensorName::name);
    else if (const auto* symbol = std::get_if<SymbolName>(&output))
      scope.numbers.emplace(symbol->name, scope.graph->add_input(Type::tensor(DType::I64, {}), symbol->name));
  }
}

void Importer::convert_node(Scope& scope, const NodeSpec& node) {
  const std::string op = op_of(node.target);
  const Found found = find_conversion_of(*scope.spec, node, op);
  if (found.conversion == nullptr)
    throw unsupported("{}{} is not supported", op,
                      takes_or_gives_complex(*scope.spec, node) ? " of complex numbers" : "");
  const WithSources sources(*scope.graph, {label(node)});
  const NodeView view(*this, scope, node, op);
  std::vector<Value> results = naming_op(op, [&] { return found.conversion->convert(view); });
  view.check_all_used();
  define_results(scope, view, *found.conversion, found.in_place, results);
}

void Importer::define_results(Scope& scope, const NodeView& view, const Conversion& conversion, bool in_place,
                              const std::vector<Value>& results) {
  size_t index = 0;
  const auto next = [&](const std::string& name) {
    if (index >= results.size())
      throw user_error("{}: it has {} outputs, but output {} is called \"{}\"", view.op(), results.size(),
                       index, name);
    return results[index++];
  };
  for (const Argument& output : view.spec().outputs) {
    if (const auto* tensor = std::get_if<TensorName>(&output)) {
      const Value value = next(tensor->name);
      if (!value) {
        define_missing(scope, tensor->name,
                       fmt::format("output {} of {}, \"{}\"", index - 1, view.op(), tensor->name));
        continue;
      }
      if (!in_place) {
        define_tensor(scope, view, conversion, tensor->name, index - 1, value);
        continue;
      }
      // The result is the tensor that was changed, under another name.
      const std::string& self = first_tensor(view);
      const Value before = scope.tensors.get(self);
      Value updated = in_dtype(value, before.dtype());
      if (updated.shape() != before.shape())
        updated = broadcast_to(updated, shape_of(before));
      const auto meta = scope.spec->tensors.find(tensor->name);
      if (updated.rank() != before.rank() ||
          (meta != scope.spec->tensors.end() && !fits(meta->second, updated)))
        throw unsupported("{}: it changes the shape of a tensor in its place", view.op());
      if (updated != before)
        scope.tensors.change(self, updated);
      if (updated.name().empty())
        updated.set_name(tensor->name);
      scope.tensors.define_view(tensor->name, updated,
                                {.base = self,
                                 .read = [](Value base) { return base; },
                                 .write = [](Value, Value written) { return written; }});
    } else if (const auto* list = std::get_if<std::vector<TensorName>>(&output)) {
      for (const TensorName& each : *list) {
        const Value value = next(each.name);
        define_tensor(scope, view, conversion, each.name, index - 1, value);
      }
    } else if (const auto* symbol = std::get_if<SymbolName>(&output)) {
      if (!scope.numbers.emplace(symbol->name, next(symbol->name)).second)
        throw user_error("\"{}\" is made twice", symbol->name);
    } else if (std::holds_alternative<None>(output) || std::holds_alternative<int64_t>(output)) {
      ++index;  // a result that the node was told not to compute, or a number that was fixed
    } else {
      throw unsupported("{}: an output that is {}", view.op(), describe(output));
    }
  }
}

void Importer::define_tensor(Scope& scope, const NodeView& view, const Conversion& conversion,
                             const std::string& name, size_t index, Value value) {
  if (const auto meta = scope.spec->tensors.find(name); meta != scope.spec->tensors.end()) {
    const TensorMeta as = held(meta->second);
    const Type declared = Type::tensor(as.dtype, as.sizes);
    // PyTorch itself does not always foretell the shapes of results that few look at: the states of an LSTM
    // have a dimension of 1 too many.
    const bool fits_as_said = fits(meta->second, value);
    if (!fits_as_said && !(index > 0 && fits_but_for_ones(meta->second, value)))
      return define_missing(scope, name,
                            fmt::format("node \"{}\" gives {}, but the file says that \"{}\" is {}",
                                        label(view.spec()), value.type(), name, declared));
    if (fits_as_said && value.use_count() == 0 && !(value.shape().ranked() && value.shape().extents()))
      value.refine_type(declared);
  }
  if (value.name().empty())
    value.set_name(name);
  const bool shares =
      conversion.sharing == Sharing::View || conversion.sharing == Sharing::Perhaps ||
      (conversion.sharing == Sharing::IfSame && value == scope.tensors.get(first_tensor(view)));
  if (!shares)
    return scope.tensors.define(name, value);
  View made;
  made.base = first_tensor(view);
  made.certain = conversion.sharing != Sharing::Perhaps;
  if (conversion.sharing == Sharing::IfSame) {
    made.read = [](Value base) { return base; };
    made.write = [](Value, Value updated) { return updated; };
  } else {
    // The op's name lives as long as the program that it is part of.
    made.read = [this, &scope, &spec = view.spec(), &conversion, index](Value base) {
      const std::string op = op_of(spec.target);
      return conversion.convert(NodeView(NodeView(*this, scope, spec, op), base)).at(index);
    };
    if (conversion.write)
      made.write = [this, &scope, &spec = view.spec(), &conversion](Value base, Value updated) {
        const std::string op = op_of(spec.target);
        return conversion.write(NodeView(NodeView(*this, scope, spec, op), base), base, updated);
      };
  }
  scope.tensors.define_view(name, value, std::move(made));
}

bool Importer::fits(const TensorMeta& said, Value value) const {
  const TensorMeta meta = held(said);
  return value.dtype() == meta.dtype &&
         (!value.shape().ranked() || may_be_equal(meta.sizes, value.shape().dims()));
}

bool Importer::fits_but_for_ones(const TensorMeta& declared, Value value) const {
  const TensorMeta meta = held(declared);
  std::vector<Dim> said = meta.sizes, sizes = value.shape().ranked() ? value.shape().dims() : said;
  for (std::vector<Dim>* each : {&said, &sizes})
    std::erase(*each, Dim(1));
  return value.dtype() == meta.dtype && may_be_equal(said, sizes);
}

bool Importer::may_be_equal(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::ranges::equal(a, b, [](const Dim& one, const Dim& other) {
    return !one.is_constant() || !other.is_constant() || one == other;
  });
}

void Importer::refuse_unknown_ops() const {
  std::map<std::string, std::vector<std::string>> unknown;  // op → the nodes that use it
  for_each_node(program_.graph, [&](const GraphSpec& graph, const NodeSpec& node) {
    if (const std::string op = op_of(node.target); find_conversion_of(graph, node, op).conversion == nullptr)
      unknown[op + (takes_or_gives_complex(graph, node) ? " of complex numbers" : "")].push_back(label(node));
  });
  if (unknown.empty())
    return;
  std::string text =
      fmt::format("{} of its ops {} not supported", unknown.size(), unknown.size() == 1 ? "is" : "are");
  for (const auto& [op, nodes] : unknown) {
    text += fmt::format("\n  {}: {}, \"{}\"", op, format_count(nodes.size(), "node"), nodes.front());
    for (size_t i = 1; i < std::min<size_t>(nodes.size(), 3); ++i)
      text += fmt::format(", \"{}\"", nodes[i]);
    text += nodes.size() > 3 ? ", …" : "";
  }
  throw UnsupportedError(text);
}

std::unique_ptr<Graph> read_torch(const std::filesystem::path& path) {
  return read_torch(MappedFile::open(path));
}

std::unique_ptr<Graph> read_torch(const std::shared_ptr<const MappedFile>& file) {
  return with_context([&] { return file->path().string(); },
                      [&] {
                        Archive archive(file);
                        const WeightSource weights = {
                            .weight = [&](const std::string& name) { return archive.weight(name); },
                            .constant = [&](const std::string& name) { return archive.constant(name); }};
                        return Importer(archive.program(), weights).run();
                      });
}

std::unique_ptr<Graph> read_program(std::string_view json, const WeightSource& weights,
                                    std::vector<RefusedNode>& refused) {
  const Program program = parse_program(json);
  return Importer(program, weights, &refused).run();
}

}  // namespace tenon::torch
