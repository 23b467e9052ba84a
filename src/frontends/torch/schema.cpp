#include "frontends/torch/schema.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontends/torch/expression.h"

namespace tenon::torch {
namespace {

using Json = nlohmann::json;

constexpr int kMaximumDepth = 64;  // of graphs within graphs

const Json& member(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name))
    throw user_error("\"{}\" is missing", name);
  return object.at(name);
}

const Json* maybe(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text(const Json& object, const char* name) { return member(object, name).get<std::string>(); }

// {"as_int": 3}: the kind of a union, and what it holds.
std::pair<std::string, const Json*> alternative(const Json& object) {
  if (!object.is_object() || object.size() != 1)
    throw user_error("one of several kinds was expected, but this is {}", object.dump().substr(0, 80));
  return {object.begin().key(), &object.begin().value()};
}

DType to_dtype(int64_t number) {
  switch (number) {
    case 1:
      return DType::U8;
    case 2:
      return DType::I8;
    case 3:
      return DType::I16;
    case 4:
      return DType::I32;
    case 5:
      return DType::I64;
    case 6:
      return DType::F16;
    case 7:
      return DType::F32;
    case 8:
      return DType::F64;
    case 10:
      return DType::C64;
    case 11:
      return DType::C128;
    case 12:
      return DType::Bool;
    case 13:
      return DType::BF16;
    case 28:
      return DType::U16;
    case 29:
      return DType::F8E4M3FN;
    case 30:
      return DType::F8E5M2;
    case 31:
      return DType::F8E4M3FNUZ;
    case 32:
      return DType::F8E5M2FNUZ;
    case 33:
      return DType::F8E8M0;
    case 34:
      return DType::U32;
    case 35:
      return DType::U64;
    default:
      throw unsupported("scalar type {}", number);
  }
}

// JSON has no infinities, so they are written as words.
double to_real(const Json& json) {
  if (!json.is_string())
    return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "Infinity")
    return std::numeric_limits<double>::infinity();
  if (word == "-Infinity")
    return -std::numeric_limits<double>::infinity();
  if (word == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  throw user_error("\"{}\" is no number", word);
}

SymInt to_size(const Json& json) {
  const auto [kind, value] = alternative(json);
  if (kind == "as_int")
    return value->get<int64_t>();
  if (kind == "as_expr")
    return parse_expression(text(*value, "expr_str"));
  throw unsupported("a size of the kind {}", kind);
}

TensorMeta to_meta(const Json& json) {
  constexpr int64_t strided = 7;
  if (const Json* layout = maybe(json, "layout"); layout != nullptr && layout->get<int64_t>() != strided)
    throw unsupported("a tensor of layout {}, which is not strided", layout->get<int64_t>());
  TensorMeta meta;
  meta.dtype = to_dtype(member(json, "dtype").get<int64_t>());
  for (const Json& size : member(json, "sizes"))
    meta.sizes.push_back(to_size(size));
  for (const Json& stride : member(json, "strides"))
    meta.strides.push_back(to_size(stride));
  if (meta.sizes.size() != meta.strides.size())
    throw user_error("a tensor has {} sizes, but {} strides", meta.sizes.size(), meta.strides.size());
  meta.storage_offset = to_size(member(json, "storage_offset"));
  return meta;
}

GraphSpec to_graph(const Json& json, int depth);

std::variant<int64_t, SymbolName> to_item(const Json& json) {
  const auto [kind, value] = alternative(json);
  if (kind == "as_int")
    return value->get<int64_t>();
  return SymbolName{value->get<std::string>()};
}

Argument to_symbol(const Json& json) {
  const auto [kind, value] = alternative(json);
  if (kind == "as_int")
    return value->get<int64_t>();
  if (kind == "as_float")
    return to_real(*value);
  if (kind == "as_bool")
    return value->get<bool>();
  return SymbolName{value->get<std::string>()};
}

template <class T>
std::vector<T> to_list(const Json& json) {
  std::vector<T> list;
  for (const Json& item : json)
    list.push_back(item.get<T>());
  return list;
}

Argument to_argument(const Json& json, int depth) {
  const auto [kind, value] = alternative(json);
  if (kind == "as_none")
    return None{};
  if (kind == "as_tensor")
    return TensorName{text(*value, "name")};
  if (kind == "as_tensors") {
    std::vector<TensorName> names;
    for (const Json& each : *value)
      names.push_back({text(each, "name")});
    return names;
  }
  if (kind == "as_optional_tensors") {
    OptionalTensors tensors;
    for (const Json& each : *value) {
      const auto [which, name] = alternative(each);
      tensors.names.push_back(which == "as_tensor" ? std::optional(text(*name, "name")) : std::nullopt);
    }
    return tensors;
  }
  if (kind == "as_optional_tensor") {
    const auto [which, name] = alternative(*value);
    return which == "as_tensor" ? Argument(TensorName{text(*name, "name")}) : Argument(None{});
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return to_symbol(*value);
  if (kind == "as_int")
    return value->get<int64_t>();
  if (kind == "as_float")
    return to_real(*value);
  if (kind == "as_bool")
    return value->get<bool>();
  if (kind == "as_string")
    return value->get<std::string>();
  if (kind == "as_strings")
    return to_list<std::string>(*value);
  if (kind == "as_ints" || kind == "as_sym_ints") {
    Numbers numbers;
    for (const Json& item : *value) {
      if (item.is_object())
        numbers.items.push_back(to_item(item));
      else
        numbers.items.emplace_back(item.get<int64_t>());
    }
    return numbers;
  }
  if (kind == "as_floats" || kind == "as_sym_floats") {
    std::vector<double> numbers;
    for (const Json& item : *value) {
      const Json* number = item.is_object() ? maybe(item, "as_float") : &item;
      if (number == nullptr)
        return Other{kind};  // one of them is computed
      numbers.push_back(to_real(*number));
    }
    return numbers;
  }
  if (kind == "as_bools")
    return to_list<bool>(*value);
  if (kind == "as_scalar_type")
    return to_dtype(value->get<int64_t>());
  if (kind == "as_graph")
    return Nested{text(*value, "name"),
                  std::make_shared<const GraphSpec>(to_graph(member(*value, "graph"), depth + 1))};
  return Other{kind};
}

// "L__self__,,__main__.Model;L__self___fc,fc,torch.nn.modules.linear.Linear": a module is its name while
// tracing, its path and its type.
std::string innermost_module(const std::string& stack) {
  const std::string last = stack.substr(stack.rfind(';') + 1);
  const size_t first = last.find(','), second = last.find(',', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return "";
  return last.substr(first + 1, second - first - 1);
}

NodeSpec to_node(const Json& json, int depth) {
  NodeSpec node;
  node.target = text(json, "target");
  const Json* name = maybe(json, "name");
  node.name = name != nullptr ? name->get<std::string>() : "";
  for (const Json& output : member(json, "outputs"))
    node.outputs.push_back(to_argument(output, depth));
  if (node.name.empty() && !node.outputs.empty())
    if (const auto* tensor = std::get_if<TensorName>(&node.outputs.front()))
      node.name = tensor->name;
  with_context([&] { return fmt::format("node \"{}\"", node.name); },
               [&] {
                 for (const Json& input : member(json, "inputs"))
                   node.inputs.push_back({text(input, "name"), to_argument(member(input, "arg"), depth)});
               });
  if (const Json* metadata = maybe(json, "metadata"))
    if (const Json* stack = maybe(*metadata, "nn_module_stack"))
      node.module = innermost_module(stack->get<std::string>());
  return node;
}

GraphSpec to_graph(const Json& json, int depth) {
  if (depth > kMaximumDepth)
    throw user_error("graphs are nested more than {} deep", kMaximumDepth);
  GraphSpec graph;
  for (const Json& input : member(json, "inputs"))
    graph.inputs.push_back(to_argument(input, depth));
  for (const Json& output : member(json, "outputs"))
    graph.outputs.push_back(to_argument(output, depth));
  for (const auto& [name, meta] : member(json, "tensor_values").items())
    graph.tensors.emplace(name, with_context([&, name = name] { return fmt::format("tensor \"{}\"", name); },
                                             [&, &meta = meta] { return to_meta(meta); }));
  for (const auto& [name, size] : member(json, "sym_int_values").items())
    graph.sizes.emplace(name, to_size(size));
  for (const Json& node : member(json, "nodes"))
    graph.nodes.push_back(to_node(node, depth));
  return graph;
}

InputSpec to_input(const Json& json) {
  const auto [kind, value] = alternative(json);
  const auto named = [&, value = value](InputSpec::Kind meant, const char* target) {
    return InputSpec{meant, TensorName{text(member(*value, "arg"), "name")}, text(*value, target)};
  };
  if (kind == "user_input")
    return {InputSpec::Kind::User, to_argument(member(*value, "arg"), 0), ""};
  if (kind == "parameter")
    return named(InputSpec::Kind::Parameter, "parameter_name");
  if (kind == "buffer")
    return named(InputSpec::Kind::Buffer, "buffer_name");
  if (kind == "tensor_constant")
    return named(InputSpec::Kind::Constant, "tensor_constant_name");
  if (kind == "constant_input")  // a number or word that was fixed when the model was exported
    return {InputSpec::Kind::User, None{}, text(*value, "name")};
  throw unsupported("an input of the kind {}", kind);
}

OutputSpec to_output(const Json& json) {
  const auto [kind, value] = alternative(json);
  const auto named = [&, value = value](OutputSpec::Kind meant, const char* target) {
    return OutputSpec{meant, TensorName{text(member(*value, "arg"), "name")}, text(*value, target)};
  };
  if (kind == "user_output")
    return {OutputSpec::Kind::User, to_argument(member(*value, "arg"), 0), ""};
  if (kind == "parameter_mutation")
    return named(OutputSpec::Kind::BufferMutation, "parameter_name");
  // A program that was exported with its backward pass.
  if (kind == "gradient_to_parameter" || kind == "gradient_to_user_input")
    return named(OutputSpec::Kind::Gradient,
                 kind == "gradient_to_parameter" ? "parameter_name" : "user_input_name");
  if (kind == "loss_output")
    return {OutputSpec::Kind::User, TensorName{text(member(*value, "arg"), "name")}, ""};
  if (kind == "buffer_mutation")
    return named(OutputSpec::Kind::BufferMutation, "buffer_name");
  if (kind == "user_input_mutation")
    return named(OutputSpec::Kind::InputMutation, "user_input_name");
  throw unsupported("an output of the kind {}", kind);
}

std::optional<int64_t> bound(const Json& json, const char* name) {
  const Json* value = maybe(json, name);
  return value == nullptr || !value->is_number_integer() ? std::nullopt
                                                         : std::optional(value->get<int64_t>());
}

void check_version(const Json& json) {
  const Json& version = member(json, "schema_version");
  const auto major = member(version, "major").get<int64_t>();
  if (major != kSchemaMajor)
    throw unsupported(
        "schema version {}.{}, but the one we know is {}\n  hint: export the model again with PyTorch 2.11 "
        "to 2.13",
        major, member(version, "minor").get<int64_t>(), kSchemaMajor);
}

// Calls `read` with the parsed text; what is wrong with that is the user's fault.
template <class F>
auto with_json(std::string_view text, F&& read) {
  try {
    return read(Json::parse(text.begin(), text.end()));
  } catch (const Json::exception& error) {
    throw user_error("the JSON is damaged, or not what torch.export writes: {}", error.what());
  }
}

}  // namespace

std::string describe(const Argument& argument) {
  constexpr std::string_view kinds[] = {"none",   "a tensor", "tensors", "tensors",  "a size",
                                        "an int", "a float",  "a bool",  "a string", "strings",
                                        "ints",   "floats",   "bools",   "a dtype",  "a graph"};
  if (const auto* other = std::get_if<Other>(&argument))
    return other->kind;
  return std::string(kinds[argument.index()]);
}

Program parse_program(std::string_view json) {
  return with_json(json, [](const Json& root) {
    check_version(root);
    Program program;
    const Json& module = member(root, "graph_module");
    program.graph = to_graph(member(module, "graph"), 0);
    const Json& signature = member(module, "signature");
    for (const Json& input : member(signature, "input_specs"))
      program.inputs.push_back(to_input(input));
    for (const Json& output : member(signature, "output_specs"))
      program.outputs.push_back(to_output(output));
    if (program.inputs.size() != program.graph.inputs.size() ||
        program.outputs.size() != program.graph.outputs.size())
      throw user_error("the graph has {} inputs and {} outputs, but the signature {} and {}",
                       program.graph.inputs.size(), program.graph.outputs.size(), program.inputs.size(),
                       program.outputs.size());
    for (const auto& [symbol, range] : member(root, "range_constraints").items())
      program.ranges.emplace(symbol, Range{bound(range, "min_val"), bound(range, "max_val")});
    return program;
  });
}

Payloads parse_payloads(std::string_view json) {
  return with_json(json, [](const Json& root) {
    Payloads payloads;
    for (const auto& [name, entry] : member(root, "config").items())
      payloads.emplace(name, with_context([&, name = name] { return fmt::format("\"{}\"", name); },
                                          [&, &entry = entry] {
                                            const Json* meta = maybe(entry, "tensor_meta");
                                            const Json* pickled = maybe(entry, "use_pickle");
                                            return Payload{text(entry, "path_name"),
                                                           pickled != nullptr && pickled->get<bool>(),
                                                           meta != nullptr ? to_meta(*meta) : TensorMeta{}};
                                          }));
    return payloads;
  });
}

}  // namespace tenon::torch
