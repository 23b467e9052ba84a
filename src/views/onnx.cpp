// onnx.cpp — a graph as a listing in the words of ONNX: inputs, initializers, and a line per node. It follows
// the graph node by node; what write_onnx makes one node of may be several lines here.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/write/words.h"
#include "ir/print.h"
#include "ops/control.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

std::string type_text(const Type& type) {
  if (type.is_sequence())
    return fmt::format("seq({})", type_text(type.element()));
  if (type.is_optional())
    return fmt::format("optional({})", type_text(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  return fmt::format("{}{}", words_for(dtype).onnx, shape.ranked() ? to_string(shape) : "");
}

// Bools are 0 and 1, dtypes and types have their ONNX name.
std::string attribute_text(const Attribute& attribute) {
  if (attribute.kind() == AttributeKind::Bool)
    return attribute.as<bool>() ? "1" : "0";
  if (attribute.kind() == AttributeKind::DType)
    return std::string(words_for(attribute.as<DType>()).onnx);
  if (attribute.kind() == AttributeKind::Type)
    return type_text(attribute.as<Type>());
  return print(attribute);
}

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    text_ = fmt::format("graph {}\nInputs:\n", graph.name());
    for (Value input : graph.inputs())
      text_ += fmt::format("  {}: {}\n", names_.name(input), type_text(input.type()));
    name_results(graph);
    print_initializers(graph, "");
    text_ += "Nodes:\n";
    print_nodes(graph, "  ");
    text_ += "Outputs:\n";
    for (Value output : graph.outputs())
      text_ += fmt::format("  {}: {}\n", names_.name(output), type_text(output.type()));
    return text_;
  }

 private:
  // A result that is an output has the output's name.
  void name_results(const Graph& graph) {
    const std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value output = outputs[i];
      if (output.node() != nullptr && output.name().empty() && !graph.output_names()[i].empty())
        names_.set(output, names_.take(graph.output_names()[i]));
    }
    for (const Node* node : graph.nodes())
      for (Value result : node->results())
        names_.name(result);
  }

  // A linear layer multiplies by the transpose, which an exporter stores instead of the weight itself.
  static bool is_stored_transposed(Value value) {
    const std::vector<Node*> users = value.users();
    return !users.empty() && std::all_of(users.begin(), users.end(), [&](const Node* user) {
      return user->is("linear") && user->in("weight") == value;
    });
  }

  void print_initializers(const Graph& graph, const std::string& indent) {
    bool is_first = true;
    for (const Node* node : graph.nodes()) {
      if (literal_of(*node) == nullptr)
        continue;
      const Value value = node->result();
      if (is_first)
        text_ += indent + "Initializers:\n";
      is_first = false;
      std::string name = names_.name(value);
      Type type = value.type();
      if (is_stored_transposed(value)) {
        name += "_transposed";
        names_.set(value, name);
        type = Type::tensor(value.dtype(), {value.dim(1), value.dim(0)});
        transposed_.insert(value.data());
      }
      text_ += fmt::format("{}  {}: {}", indent, name, type_text(type));
      if (const auto text = short_constant(value, kPythonNumbers))
        text_ += " = " + *text;
      text_ += "\n";
    }
  }

  std::string list(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (Value value : values)
      texts.push_back(names_.name(value));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void line(const std::string& indent, const std::string& call, const std::vector<std::string>& results,
            const Types& types) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < results.size(); ++i)
      texts.push_back(fmt::format("{}: {}", results[i], type_text(types[i])));
    text_ += fmt::format("{}{} → {}\n", indent, call, fmt::join(texts, ", "));
  }

  void line(const std::string& indent, const std::string& call, const Node& node) {
    std::vector<std::string> results;
    Types types;
    for (Value result : node.results()) {
      results.push_back(names_.name(result));
      types.push_back(result.type());
    }
    line(indent, call, results, types);
  }

  void print_nodes(const Graph& graph, const std::string& indent) {
    for (const Node* node : graph.nodes()) {
      if (literal_of(*node) != nullptr)
        continue;
      if (node->is("linear") && node->in("weight").shape().ranked())
        print_linear(*node, indent);
      else if (node->is("matmul"))
        print_matmul(*node, indent);
      else if (node->is("if"))
        print_if(*node, indent);
      else if (node->is("while") || node->is("scan"))
        print_loop(*node, indent);
      else
        print_call(*node, indent);
    }
  }

  // The name of a matrix with its last two dimensions exchanged.
  std::string transpose(Value value, const std::string& indent) {
    if (transposed_.contains(value.data()))
      return names_.name(value);
    const std::string name = names_.take(names_.name(value) + "_transposed");
    if (!value.shape().ranked() || value.rank() < 2) {
      line(indent, fmt::format("Transpose({})", names_.name(value)), {name}, {value.type()});
      return name;
    }
    std::vector<Dim> dims = value.shape().dims();
    std::vector<int64_t> permutation(dims.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(permutation[dims.size() - 1], permutation[dims.size() - 2]);
    line(indent, fmt::format("Transpose[perm=[{}]]({})", fmt::join(permutation, ", "), names_.name(value)),
         {name}, {Type::tensor(value.dtype(), dims)});
    return name;
  }

  void print_linear(const Node& node, const std::string& indent) {
    const std::string weight = transpose(node.in("weight"), indent);
    const std::string product = fmt::format("MatMul({}, {})", names_.name(node.in("x")), weight);
    if (!node.has("bias"))
      return line(indent, product, node);
    const std::string name = names_.take("mm_out");
    line(indent, product, {name}, {node.result().type()});
    line(indent, fmt::format("Add({}, {})", name, names_.name(node.in("bias"))), node);
  }

  void print_matmul(const Node& node, const std::string& indent) {
    const Value a = node.in("a"), b = node.in("b");
    const bool transpose_a = node.attr("transpose_a"), transpose_b = node.attr("transpose_b");
    if ((transpose_a && !a.shape().ranked()) || (transpose_b && !b.shape().ranked()))
      return print_call(node, indent);
    const std::string left = transpose_a ? transpose(a, indent) : names_.name(a);
    const std::string right = transpose_b ? transpose(b, indent) : names_.name(b);
    line(indent, fmt::format("MatMul({}, {})", left, right), node);
  }

  // A custom call has our operands, then those of attributes given late.
  onnx::OnnxCall custom_call(const Node& node) {
    onnx::OnnxCall call = {word_for(node, nullptr), {}, {}};
    for (const auto& [name, value] : shown_attributes(node, nullptr))
      call.attributes.push_back({name, value});
    for (const OperandDecl& decl : node.op().operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (values.empty() && decl.arity == Arity::Optional)
        call.inputs.push_back({Value()});
      for (Value value : values)
        call.inputs.push_back({value});
    }
    return call;
  }

  std::string input_text(const onnx::OnnxInput& input) {
    if (input.constant)
      return attribute_text(*input.constant);
    return input.value ? names_.name(input.value) : "";  // as ONNX writes an input that is left out
  }

  void print_call(const Node& node, const std::string& indent) {
    std::vector<std::string> inputs, attributes;
    const auto known = onnx::call_in_onnx(node);
    const onnx::OnnxCall call = known ? *known : custom_call(node);
    for (const onnx::OnnxInput& input : call.inputs)
      inputs.push_back(input_text(input));
    while (!inputs.empty() && inputs.back().empty())
      inputs.pop_back();
    if (!known)
      for (std::string_view late : node.late_names())
        inputs.push_back(fmt::format("{}={}", late, names_.name(node.late(late))));
    for (const auto& [name, value] : call.attributes)
      attributes.push_back(fmt::format("{}={}", name, attribute_text(value)));
    line(indent,
         fmt::format("{}{}({})", call.name,
                     attributes.empty() ? "" : fmt::format("[{}]", fmt::join(attributes, ", ")),
                     fmt::join(inputs, ", ")),
         node);
    for (size_t i = 0; i < node.regions().size(); ++i)
      print_body(*node.regions()[i], std::string(node.op().regions[i]), node.regions()[i]->inputs(),
                 indent + "  ");
  }

  // The inputs of a branch are values around it.
  void print_if(const Node& node, const std::string& indent) {
    line(indent, fmt::format("If({})", names_.name(node.in("condition"))), node);
    for (size_t i = 0; i < 2; ++i) {
      const Graph& branch = *node.regions()[i];
      use_names(branch.inputs(), node.ins("inputs"));
      print_body(branch, i == 0 ? "then_branch" : "else_branch", {}, indent + "  ");
    }
  }

  // So are the captured values of a loop.
  void print_loop(const Node& node, const std::string& indent) {
    std::vector<std::string> operands;
    if (node.is("while"))
      for (std::string_view name : {"trip_count", "condition"})
        operands.push_back(node.has(name) ? names_.name(node.in(name)) : "");
    for (std::string_view name : {"carried", "scanned"})
      if (node.op().find_operand(name) != nullptr)
        for (Value value : node.ins(name))
          operands.push_back(names_.name(value));
    std::string op = "Loop";
    if (node.is("scan"))
      op = fmt::format(
          "Scan[num_scan_inputs={}, scan_input_axes={}, scan_input_directions={}, scan_output_axes={}, "
          "scan_output_directions={}]",
          node.ins("scanned").size(), print(node.attr("axes")), print(node.attr("reversed")),
          print(node.attr("output_axes")), print(node.attr("output_reversed")));
    line(indent, fmt::format("{}({})", op, fmt::join(operands, ", ")), node);
    const LoopBody body(node);
    use_names(body.captured, node.ins("captured"));
    print_body(body.graph, "body", body.varying(), indent + "  ");
  }

  void use_names(const std::vector<Value>& inputs, const std::vector<Value>& of) {
    for (size_t i = 0; i < inputs.size(); ++i)
      names_.set(inputs[i], names_.name(of[i]));
  }

  // With those of its inputs that stand for no value outside.
  void print_body(const Graph& body, const std::string& name, const std::vector<Value>& inputs,
                  const std::string& indent) {
    std::vector<std::string> parameters;
    for (Value input : inputs)
      parameters.push_back(fmt::format("{}: {}", names_.name(input), type_text(input.type())));
    name_results(body);
    text_ += fmt::format("{}{}({}):\n", indent, name, fmt::join(parameters, ", "));
    print_initializers(body, indent + "  ");
    print_nodes(body, indent + "  ");
    text_ += fmt::format("{}  Outputs: {}\n", indent, list(body.outputs()));
  }

  ViewNames names_{"_./:"};
  std::string text_;
  std::unordered_set<const ValueData*> transposed_;  // stored that way
};

}  // namespace

std::string show_as_onnx(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
