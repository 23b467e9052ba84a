// torchscript.cpp — a graph as TorchScript prints it: weights fetched from the module by name, attributes as
// constants of their own, control flow as blocks that see the values around them.
#include <map>

#include "ir/print.h"
#include "ops/control.h"
#include "views/constants.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/script_text.h"
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

constexpr NumberStyle kScriptNumbers = {"1", "0", true};

constexpr std::string_view kKeywords[] = {
    "and",  "as",     "assert", "async", "await",  "break", "class",  "continue", "def",   "del",    "elif",
    "else", "except", "for",    "from",  "global", "if",    "import", "in",       "is",    "lambda", "None",
    "not",  "or",     "pass",   "raise", "return", "try",   "while",  "with",     "yield", "True",   "False"};

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    names_.take("self");
    text_ = fmt::format("graph(%self : __torch__.{}", camel_case(graph.name()));
    for (Value input : graph.inputs())
      text_ += fmt::format(",\n      %{} : {}", names_.name(input), script_type(input.type()));
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
      else if (node->is("while"))
        print_while(*node, indent);
      else if (node->is("scan"))
        print_scan(*node, indent);
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
                         script_type(node.result().type()), quote(part), module);
  }

  void line(const std::string& indent, const std::string& results, std::string_view op,
            const std::vector<std::string>& arguments) {
    text_ += fmt::format("{}{} = {}({})\n", indent, results, op, fmt::join(arguments, ", "));
  }

  // The result of an op that stands for nothing of ours.
  std::string step(const std::string& wanted, std::string_view type, std::string_view op,
                   const std::vector<std::string>& arguments, const std::string& indent) {
    const std::string name = "%" + names_.take(wanted);
    line(indent, fmt::format("{} : {}", name, type), op, arguments);
    return name;
  }

  // %name, after printing a constant that has not been printed in this block yet.
  std::string reference(Value value, const std::string& indent) {
    if (value.node() != nullptr && value.node()->is("constant") && printed_.insert(value.data()).second)
      text_ += fmt::format("{}%{} : {} = prim::Constant[value={}]()\n", indent, names_.name(value),
                           script_type(*literal_of(value)), script_tensor(*literal_of(value)));
    return "%" + names_.name(value);
  }

  // The same as a number, or as a list of them.
  std::string number(Value value, const std::string& indent) {
    const auto [it, is_new] = numbers_.try_emplace(value.data());
    if (is_new)
      it->second =
          constant(value.name().empty() ? "constant" : value.name(), script_number_type(*literal_of(value)),
                   *short_constant(value, kScriptNumbers), indent);
    return it->second;
  }

  std::string argument(Value value, TorchSlot slot, const std::string& wanted, const std::string& indent) {
    if (is_number_for(slot, value) || is_strings(value))
      return number(value, indent);
    const std::string tensor = reference(value, indent);
    if (slot == TorchSlot::Int)
      return step(wanted, "int", "aten::Int", {tensor}, indent);
    if (slot == TorchSlot::Number)
      return step(wanted, "Scalar", "aten::item", {tensor}, indent);
    if (slot != TorchSlot::Ints)
      return tensor;
    const std::string rank = constant("dim", "int", "1", indent),
                      of_ints = constant("type", "int", "0", indent);
    return step(wanted, "int[]", "prim::tolist", {tensor, rank, of_ints}, indent);
  }

  static bool is_strings(Value value) {
    const Literal* literal = literal_of(value);
    return literal != nullptr && literal->dtype() == DType::String &&
           short_constant(value, kScriptNumbers).has_value();
  }

  std::string list(const std::vector<Value>& values, const std::string& indent) {
    std::vector<std::string> texts;
    for (Value value : values)
      texts.push_back(reference(value, indent));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string tensor_list(const std::string& wanted, const std::vector<Value>& values,
                          const std::string& indent) {
    const std::string elements = list(values, indent);
    return step(wanted, "Tensor[]", "prim::ListConstruct", {elements}, indent);
  }

  std::string result(Value value) {
    return fmt::format("%{} : {}", names_.name(value), script_type(value.type()));
  }

  std::string results(const Node& node) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < shown_result_count(node); ++i)
      texts.push_back(result(node.result(i)));
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
    return value ? constant(std::string(name), script_type(*value), script_text(*value), indent)
                 : constant(std::string(name), "NoneType", "", indent);
  }

  // A custom call takes numbers wherever they are short.
  static TorchSlot slot_of(const Node& node, std::string_view operand, const Counterpart* counterpart) {
    return counterpart == nullptr ? TorchSlot::TensorOrNumber : torch_slot(node, operand);
  }

  // Operands and attributes in the order of our declaration, or in theirs.
  std::vector<std::string> print_our_arguments(const Node& node, const Counterpart* counterpart,
                                               const std::string& indent) {
    std::vector<std::string> arguments;
    for (const OperandDecl& decl : node.op().operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (decl.arity == Arity::Many) {
        arguments.push_back(tensor_list(std::string(decl.name), values, indent));
      } else {
        arguments.push_back(values.empty() ? constant(decl.name, std::nullopt, indent)
                                           : argument(values[0], slot_of(node, decl.name, counterpart),
                                                      std::string(decl.name), indent));
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
      arguments.push_back(value ? argument(value, torch_slot(node, name), std::string(name), indent)
                                : constant(name, fixed, indent));
    return arguments;
  }

  void print_call(const Node& node, const std::string& indent) {
    if (const std::vector<TorchCall> calls = torch_calls(node); !calls.empty())
      return print_calls(node, calls, indent);
    const Counterpart* counterpart = aten_ops().find(node);
    const std::vector<std::string> arguments = counterpart != nullptr && !counterpart->arguments.empty()
                                                   ? print_their_arguments(node, *counterpart, indent)
                                                   : print_our_arguments(node, counterpart, indent);
    print_results(node, counterpart, arguments, indent);
    for (size_t i = 0; i < node.regions().size(); ++i)
      print_block(*node.regions()[i], i, node.regions()[i]->inputs(), indent);
  }

  // Sizes, lengths and parts come in other types than ours.
  void print_results(const Node& node, const Counterpart* counterpart,
                     const std::vector<std::string>& arguments, const std::string& indent) {
    const std::string word = word_for(node, counterpart, "tenon::");
    if (word == "aten::size") {
      const std::string sizes = step("size", "int[]", word, arguments, indent);
      line(indent, results(node), "aten::tensor",
           {sizes, constant("dtype", "NoneType", "", indent), constant("device", "NoneType", "", indent),
            constant("requires_grad", "bool", "0", indent)});
    } else if (word == "aten::len") {
      line(indent, results(node), "prim::NumToTensor", {step("len", "int", word, arguments, indent)});
    } else if (word == "aten::split") {
      line(indent, results(node), "prim::ListUnpack", {step("split", "Tensor[]", word, arguments, indent)});
    } else {
      line(indent, results(node), word, arguments);
    }
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
      line(indent, result, call.aten, arguments);
    }
  }

  std::string print_operand(const TorchArgument& operand, const std::vector<std::string>& earlier,
                            const std::string& indent) {
    const std::string wanted(operand.name);
    if (const auto* value = std::get_if<Value>(&operand.operand))
      return argument(*value, wanted == "other" ? TorchSlot::TensorOrNumber : TorchSlot::Tensor, wanted,
                      indent);
    if (const auto* element = std::get_if<OnlyElement>(&operand.operand))
      return argument(element->value, is_integer(element->value.dtype()) ? TorchSlot::Int : TorchSlot::Number,
                      wanted, indent);
    if (const auto* elements = std::get_if<AllElements>(&operand.operand))
      return argument(elements->value, TorchSlot::Ints, wanted, indent);
    if (const auto* list = std::get_if<TensorList>(&operand.operand))
      return tensor_list(wanted, list->values, indent);
    if (const auto* call = std::get_if<EarlierCall>(&operand.operand))
      return "%" + earlier[call->number];
    const auto* fixed = std::get_if<Attribute>(&operand.operand);
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
    line(indent, results(node), "prim::If", {flag(node.in("condition"), indent)});
    for (size_t i = 0; i < 2; ++i) {
      const Graph& branch = *node.regions()[i];
      for (size_t k = 0; k < inputs.size(); ++k)
        names_.set(branch.input(static_cast<int64_t>(k)), names_.name(inputs[k]));
      print_block(branch, i, {}, indent);
    }
  }

  // The bool that a condition or a loop goes by.
  std::string flag(Value value, const std::string& indent) {
    if (is_number_for(TorchSlot::Number, value))
      return number(value, indent);
    const std::string tensor = reference(value, indent);
    return step("bool", "bool", "aten::Bool", {tensor}, indent);
  }

  // prim::Loop carries values from iteration to iteration. What a loop collects is appended to lists.
  struct LoopParts {
    std::string count, condition;
    std::vector<std::string> carried, lists;
    std::string iteration;  // its number, inside
  };

  LoopParts start_loop(const Node& node, size_t collected, const std::string& indent) {
    LoopParts parts;
    for (Value value : node.ins("carried"))
      parts.carried.push_back(reference(value, indent));
    list(node.ins("captured"), indent);
    for (size_t i = 0; i < collected; ++i)
      parts.lists.push_back(step("collected", "Tensor[]", "prim::ListConstruct", {}, indent));
    return parts;
  }

  // The head, and the names of what the body takes besides the iteration and the `slices`.
  void print_loop_head(const Node& node, LoopParts& parts, const std::string& indent) {
    std::vector<std::string> given, arguments = {parts.count, parts.condition};
    arguments.insert(arguments.end(), parts.carried.begin(), parts.carried.end());
    for (size_t i = 0; i < parts.carried.size(); ++i)
      given.push_back(result(node.result(static_cast<int64_t>(i))));
    line(indent, fmt::format("{}", fmt::join(given, ", ")), "prim::Loop", arguments);
    const LoopBody body(node);
    const std::vector<Value> captured = node.ins("captured");
    parts.iteration = "%" + names_.take("iteration");
    std::vector<std::string> taken = {parts.iteration + " : int"};
    for (Value input : body.carried)
      taken.push_back(result(input));
    for (size_t i = 0; i < captured.size(); ++i)
      names_.set(body.captured[i], names_.name(captured[i]));
    text_ += fmt::format("{}  block0({}):\n", indent, fmt::join(taken, ", "));
  }

  // The nodes of the body, what it collects, and what it carries on: the last of its outputs.
  void print_loop_body(const Node& node, const LoopParts& parts, const std::string& indent) {
    const LoopBody body(node);
    print_nodes(body.graph, indent);
    for (size_t i = 0; i < parts.lists.size(); ++i) {
      const std::string part = reference(body.collected[i], indent);
      step("append", "Tensor[]", "aten::append", {parts.lists[i], part}, indent);
    }
    std::vector<std::string> next = {body.go_on ? flag(body.go_on, indent)
                                                : constant("true", "bool", "1", indent)};
    for (Value value : body.next)
      next.push_back(reference(value, indent));
    text_ += fmt::format("{}-> ({})\n", indent, fmt::join(next, ", "));
  }

  void print_while(const Node& node, const std::string& indent) {
    const LoopBody body(node);
    LoopParts parts = start_loop(node, body.collected.size(), indent);
    parts.count = node.has("trip_count")
                      ? argument(node.in("trip_count"), TorchSlot::Int, "trip_count", indent)
                      : constant("max_trip_count", "int", "9223372036854775807", indent);
    parts.condition =
        node.has("condition") ? flag(node.in("condition"), indent) : constant("true", "bool", "1", indent);
    print_loop_head(node, parts, indent);
    const std::string inner = indent + "    ";
    if (body.iteration.use_count() > 0)
      line(inner, result(body.iteration), "prim::NumToTensor", {parts.iteration});
    print_loop_body(node, parts, inner);
    for (size_t i = 0; i < parts.lists.size(); ++i)
      line(indent, result(node.result(static_cast<int64_t>(parts.carried.size() + i))), "aten::stack",
           {parts.lists[i], constant("dim", "int", "0", indent)});
  }

  void print_scan(const Node& node, const std::string& indent) {
    const std::vector<Value> scanned = node.ins("scanned");
    const std::vector<int64_t>&axes = node.attr("axes"), &output_axes = node.attr("output_axes");
    LoopParts parts = start_loop(node, output_axes.size(), indent);
    std::vector<std::string> dims;
    list(scanned, indent);
    for (int64_t axis : axes)
      dims.push_back(constant("dim", "int", fmt::format("{}", axis), indent));
    parts.count = step("size", "int", "aten::size", {reference(scanned[0], indent), dims[0]}, indent);
    parts.condition = constant("true", "bool", "1", indent);
    print_loop_head(node, parts, indent);
    for (size_t i = 0; i < scanned.size(); ++i)
      print_slice(node, i, parts, dims[i], indent + "    ");
    print_loop_body(node, parts, indent + "    ");
    for (size_t i = 0; i < output_axes.size(); ++i)
      print_collected(node, i, parts.lists[i], indent);
  }

  // From the end, the slice of iteration t is that at -1 - t.
  void print_slice(const Node& node, size_t place, const LoopParts& parts, const std::string& dim,
                   const std::string& indent) {
    const std::vector<int64_t>& reversed = node.attr("reversed");
    std::string index = parts.iteration;
    if (reversed[place] != 0)
      index = step("index", "int", "aten::sub", {constant("last", "int", "-1", indent), index}, indent);
    line(indent, result(LoopBody(node).slices[place]), "aten::select",
         {"%" + names_.name(node.ins("scanned")[place]), dim, index});
  }

  void print_collected(const Node& node, size_t place, const std::string& parts, const std::string& indent) {
    const std::vector<int64_t>&axes = node.attr("output_axes"), &reversed = node.attr("output_reversed");
    const Value collected = node.result(static_cast<int64_t>(node.ins("carried").size() + place));
    const std::string axis = fmt::format("{}", axes[place]), dim = constant("dim", "int", axis, indent);
    if (reversed[place] == 0)
      return line(indent, result(collected), "aten::stack", {parts, dim});
    const std::string stack = step("stack", "Tensor", "aten::stack", {parts, dim}, indent);
    line(indent, result(collected), "aten::flip",
         {stack, constant("dims", "int[]", fmt::format("[{}]", axis), indent)});
  }

  void print_block(const Graph& block, size_t number, const std::vector<Value>& inputs,
                   const std::string& indent) {
    std::vector<std::string> parameters;
    for (Value input : inputs)
      parameters.push_back(result(input));
    text_ += fmt::format("{}  block{}({}):\n", indent, number, fmt::join(parameters, ", "));
    print_nodes(block, indent + "    ");
    const std::string outputs = list(block.outputs(), indent + "    ");
    text_ += fmt::format("{}    -> ({})\n", indent, outputs);
  }

  ViewNames names_{"_", ".", kKeywords};
  std::string text_;
  std::map<std::string, std::string> modules_, classes_;       // by dotted path: the value, the class
  std::unordered_set<const ValueData*> printed_;               // constants
  std::unordered_map<const ValueData*, std::string> numbers_;  // those that were printed as numbers
};

}  // namespace

std::string show_as_torchscript(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
