// torchscript.cpp — a graph as TorchScript prints it: weights fetched from the module by name, attributes as
// constants of their own, control flow as blocks that see the values around them.
#include <map>

#include "ir/print.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/torch_calls.h"
#include "views/torch_words.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

// The class of the submodule whose parameters an op takes; empty where there is none.
std::string module_class(const Node& node) {
  static const std::map<std::string_view, std::string_view> classes = {
      {"batch_norm", "torch.nn.modules.batchnorm.BatchNorm#d"},
      {"conv", "torch.nn.modules.conv.Conv#d"},
      {"conv_transpose", "torch.nn.modules.conv.ConvTranspose#d"},
      {"layer_norm", "torch.nn.modules.normalization.LayerNorm"},
      {"linear", "torch.nn.modules.linear.Linear"},
  };
  const auto it = classes.find(node.op().name);
  return it == classes.end() ? "" : fill_in_dims(it->second, node).value_or("");
}

// Float(1, 4); a size that is not known is *.
std::string type_text(const Type& type) {
  if (type.is_sequence())
    return type_text(type.element()) + "[]";
  if (type.is_optional())
    return type_text(type.element()) + "?";
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return "Tensor";
  std::vector<std::string> sizes;
  for (const Dim& dim : shape.dims())
    sizes.push_back(dim.is_constant() ? dim.to_string() : "*");
  return fmt::format("{}({})", words_for(dtype).script, fmt::join(sizes, ", "));
}

// float, int or bool; of a list when it is one.
std::string scalar_type(DType dtype, bool is_list) {
  const std::string_view word = is_float(dtype) ? "float" : dtype == DType::Bool ? "bool" : "int";
  return fmt::format("{}{}", word, is_list ? "[]" : "");
}

std::string attribute_type(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return "bool";
    case AttributeKind::Float:
      return "float";
    case AttributeKind::Floats:
      return "float[]";
    case AttributeKind::Ints:
      return "int[]";
    case AttributeKind::String:
      return "str";
    case AttributeKind::Strings:
      return "str[]";
    case AttributeKind::Literal:
      return "Tensor";
    default:
      return "int";
  }
}

// Bools are 0 and 1.
std::string attribute_text(const Attribute& attribute) {
  if (attribute.kind() == AttributeKind::Bool)
    return attribute.as<bool>() ? "1" : "0";
  return attribute.kind() == AttributeKind::String ? print(attribute) : python_text(attribute);
}

constexpr NumberStyle kScriptNumbers = {"1", "0", true};

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    names_.take("self");
    text_ = fmt::format("graph(%self : __torch__.{}", camel_case(graph.name()));
    for (Value input : graph.inputs())
      text_ += fmt::format(",\n      %{} : {}", names_.name(input), type_text(input.type()));
    text_ += "):\n";
    find_classes(graph);
    print_nodes(graph, "  ");
    text_ += fmt::format("  return ({})\n", list(graph.outputs(), "  "));
    return text_;
  }

 private:
  // The dotted path to a submodule, and the class that its first known use tells.
  void find_classes(const Graph& graph) {
    for (const Node* node : graph.nodes())
      if (const std::string name = module_class(*node); !name.empty())
        for (Value operand : node->operands())
          if (operand.node() != nullptr && operand.node()->is("parameter")) {
            const std::string path = operand.node()->attr("name");
            if (path.rfind('.') != std::string::npos)
              classes_.emplace(path.substr(0, path.rfind('.')), name);
          }
  }

  void print_nodes(const Graph& graph, const std::string& indent) {
    for (const Node* node : graph.nodes()) {
      if (node->is("constant"))
        continue;  // printed where it is first used
      if (node->is("parameter"))
        print_parameter(*node, indent);
      else if (node->is("if"))
        print_if(*node, indent);
      else if (node->is("while") && is_plain_loop(*node))
        print_loop(*node, indent);
      else
        print_call(*node, indent);
    }
  }

  // linear.weight is %linear = GetAttr(%self), then %weight = GetAttr(%linear).
  void print_parameter(const Node& node, const std::string& indent) {
    const std::string path = node.attr("name");
    std::string module = "self";
    size_t begin = 0;
    for (size_t dot = path.find('.'); dot != std::string::npos;
         begin = dot + 1, dot = path.find('.', begin)) {
      const std::string prefix = path.substr(0, dot), part = path.substr(begin, dot - begin);
      auto it = modules_.find(prefix);
      if (it == modules_.end()) {
        it = modules_.emplace(prefix, names_.take(part)).first;
        const auto known = classes_.find(prefix);
        text_ += fmt::format("{}%{} : __torch__.{} = prim::GetAttr[name={}](%{})\n", indent, it->second,
                             known == classes_.end() ? camel_case(part) : known->second, quote(part), module);
      }
      module = it->second;
    }
    const std::string part = path.substr(begin);
    names_.set(node.result(), names_.take(part));
    text_ += fmt::format("{}%{} : {} = prim::GetAttr[name={}](%{})\n", indent, names_.name(node.result()),
                         type_text(node.result().type()), quote(part), module);
  }

  // %name, after printing a constant that has not been printed in this block yet.
  std::string reference(Value value, const std::string& indent) {
    if (value.node() != nullptr && value.node()->is("constant") && printed_.insert(value.data()).second) {
      const Literal& literal = *literal_of(value);
      const auto text = short_constant(value, kScriptNumbers);
      const std::string type =
          text && literal.dtype() != DType::String && kind(literal.dtype()) != DTypeKind::Complex
              ? scalar_type(literal.dtype(), !literal.extents().empty())
              : type_text(value.type());
      text_ += fmt::format("{}%{} : {} = prim::Constant[value={}]()\n", indent, names_.name(value), type,
                           text.value_or("<Tensor>"));
    }
    return "%" + names_.name(value);
  }

  std::string list(const std::vector<Value>& values, const std::string& indent) {
    std::vector<std::string> texts;
    for (Value value : values)
      texts.push_back(reference(value, indent));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string results(const Node& node) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < shown_result_count(node); ++i)
      texts.push_back(fmt::format("%{} : {}", names_.name(node.result(i)), type_text(node.result(i).type())));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string constant(const std::string& wanted, const std::string& type, const std::string& value,
                       const std::string& indent) {
    const std::string name = names_.take(wanted);
    text_ += fmt::format("{}%{} : {} = prim::Constant{}()\n", indent, name, type,
                         value.empty() ? "" : fmt::format("[value={}]", value));
    return "%" + name;
  }

  std::string constant(std::string_view name, const std::optional<Attribute>& value,
                       const std::string& indent) {
    return value ? constant(std::string(name), attribute_type(*value), attribute_text(*value), indent)
                 : constant(std::string(name), "NoneType", "", indent);
  }

  // Operands and attributes in the order of our declaration, or in theirs.
  std::vector<std::string> print_our_arguments(const Node& node, const Counterpart* counterpart,
                                               const std::string& indent) {
    std::vector<std::string> arguments;
    for (const OperandDecl& decl : node.op().operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (decl.arity == Arity::Many) {
        const std::string elements = list(values, indent);
        const std::string name = names_.take(decl.name);
        text_ += fmt::format("{}%{} : Tensor[] = prim::ListConstruct({})\n", indent, name, elements);
        arguments.push_back("%" + name);
      } else {
        arguments.push_back(values.empty() ? constant(decl.name, std::nullopt, indent)
                                           : reference(values[0], indent));
      }
    }
    for (std::string_view late : node.late_names())
      arguments.push_back(reference(node.late(late), indent));
    for (const auto& [name, value] : shown_attributes(node, counterpart))
      arguments.push_back(constant(name, value, indent));
    return arguments;
  }
  std::vector<std::string> print_their_arguments(const Node& node, const Counterpart& counterpart,
                                                 const std::string& indent) {
    std::vector<std::string> arguments;
    for (const auto& [name, value, fixed] : shown_arguments(node, counterpart))
      arguments.push_back(value ? reference(value, indent) : constant(name, fixed, indent));
    return arguments;
  }

  void print_call(const Node& node, const std::string& indent) {
    if (const std::vector<TorchCall> calls = torch_calls(node); !calls.empty())
      return print_calls(node, calls, indent);
    const Counterpart* counterpart = aten_ops().find(node);
    const std::vector<std::string> arguments = counterpart != nullptr && !counterpart->arguments.empty()
                                                   ? print_their_arguments(node, *counterpart, indent)
                                                   : print_our_arguments(node, counterpart, indent);
    text_ += fmt::format("{}{} = {}({})\n", indent, results(node), word_for(node, counterpart, "tenon::"),
                         fmt::join(arguments, ", "));
    for (size_t i = 0; i < node.regions().size(); ++i)
      print_block(*node.regions()[i], i, node.regions()[i]->inputs(), indent);
  }

  void print_calls(const Node& node, const std::vector<TorchCall>& calls, const std::string& indent) {
    std::vector<std::string> earlier;  // the names of those that are not the last
    for (const TorchCall& call : calls) {
      std::vector<TorchArgument> wanted = call.aten_arguments;
      if (wanted.empty()) {
        wanted = call.arguments;
        wanted.insert(wanted.end(), call.by_name.begin(), call.by_name.end());
      }
      std::vector<std::string> arguments;
      for (const TorchArgument& argument : wanted)
        arguments.push_back(print_operand(argument, earlier, indent));
      if (call.aten == "aten::index" && call.subscript_axis)
        arguments[1] = print_index_list(arguments[1], *call.subscript_axis, indent);
      std::string result = results(node);
      if (&call != &calls.back()) {
        earlier.push_back(names_.take(call.aten.substr(call.aten.rfind(':') + 1)));
        result = fmt::format("%{} : Tensor{}", earlier.back(), call.aten == "aten::unbind" ? "[]" : "");
      }
      text_ += fmt::format("{}{} = {}({})\n", indent, result, call.aten, fmt::join(arguments, ", "));
    }
  }

  std::string print_operand(const TorchArgument& argument, const std::vector<std::string>& earlier,
                            const std::string& indent) {
    const std::string wanted(argument.name);
    if (const auto* value = std::get_if<Value>(&argument.operand))
      return reference(*value, indent);
    if (const auto* call = std::get_if<EarlierCall>(&argument.operand))
      return "%" + earlier[call->number];
    if (const auto* element = std::get_if<OnlyElement>(&argument.operand)) {
      const std::string tensor = reference(element->value, indent), name = names_.take(wanted);
      text_ += fmt::format("{}%{} : int = aten::Int({})\n", indent, name, tensor);
      return "%" + name;
    }
    const auto* fixed = std::get_if<Attribute>(&argument.operand);
    return constant(wanted, fixed == nullptr ? std::nullopt : std::optional(*fixed), indent);
  }

  // One for each axis up to the one that the indices are for.
  std::string print_index_list(const std::string& indices, int64_t axis, const std::string& indent) {
    std::vector<std::string> places;
    for (int64_t i = 0; i < axis; ++i)
      places.push_back(constant("none", "NoneType", "", indent));
    places.push_back(indices);
    const std::string name = names_.take("indices");
    text_ +=
        fmt::format("{}%{} : Tensor?[] = prim::ListConstruct({})\n", indent, name, fmt::join(places, ", "));
    return "%" + name;
  }

  void print_if(const Node& node, const std::string& indent) {
    const std::vector<Value> inputs = node.ins("inputs");
    list(inputs, indent);  // constants that a branch sees are made before it
    const std::string condition = reference(node.in("condition"), indent);
    text_ += fmt::format("{}{} = prim::If({})\n", indent, results(node), condition);
    for (size_t i = 0; i < 2; ++i) {
      const Graph& branch = *node.regions()[i];
      for (size_t k = 0; k < inputs.size(); ++k)
        names_.set(branch.input(static_cast<int64_t>(k)), names_.name(inputs[k]));
      print_block(branch, i, {}, indent);
    }
  }

  // prim::Loop carries values from turn to turn, but collects none.
  static bool is_plain_loop(const Node& node) {
    return node.result_count() == static_cast<int64_t>(node.ins("carried").size());
  }

  void print_loop(const Node& node, const std::string& indent) {
    const std::string count = node.has("trip_count")
                                  ? reference(node.in("trip_count"), indent)
                                  : constant("max_trip_count", "int", "9223372036854775807", indent);
    const std::string condition = node.has("condition") ? reference(node.in("condition"), indent)
                                                        : constant("true", "bool", "1", indent);
    const std::string carried = list(node.ins("carried"), indent);
    const std::vector<Value> captured = node.ins("captured");
    list(captured, indent);
    text_ += fmt::format("{}{} = prim::Loop({}, {}{}{})\n", indent, results(node), count, condition,
                         carried.empty() ? "" : ", ", carried);
    const Graph& body = node.region("body");
    std::vector<Value> inputs = body.inputs();
    for (size_t k = 0; k < captured.size(); ++k)
      names_.set(inputs[inputs.size() - captured.size() + k], names_.name(captured[k]));
    inputs.resize(inputs.size() - captured.size());
    print_block(body, 0, inputs, indent);
  }

  void print_block(const Graph& block, size_t number, const std::vector<Value>& inputs,
                   const std::string& indent) {
    std::vector<std::string> parameters;
    for (Value input : inputs)
      parameters.push_back(fmt::format("%{} : {}", names_.name(input), type_text(input.type())));
    text_ += fmt::format("{}  block{}({}):\n", indent, number, fmt::join(parameters, ", "));
    print_nodes(block, indent + "    ");
    const std::string outputs = list(block.outputs(), indent + "    ");
    text_ += fmt::format("{}    -> ({})\n", indent, outputs);
  }

  ViewNames names_{"_", "."};
  std::string text_;
  std::map<std::string, std::string> modules_, classes_;  // by dotted path: the value, the class
  std::unordered_set<const ValueData*> printed_;          // constants
};

}  // namespace

std::string show_as_torchscript(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
