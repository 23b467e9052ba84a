// relay.cpp — a graph as a Relay function: weights are arguments, the last expression is the result, and a
// loop is a function that calls itself.
#include "ir/print.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/relay_words.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

const Vocabulary& relay_ops() {
  static const Vocabulary vocabulary({
      {"abs", "abs"},
      {"acos", "acos"},
      {"acosh", "acosh"},
      {"add", "add"},
      {"and", "logical_and"},
      {"arg_max", "argmax", {{"axis", "axis"}, {"keep_dims", "keepdims"}, {"last", "select_last_index"}}},
      {"arg_min", "argmin", {{"axis", "axis"}, {"keep_dims", "keepdims"}, {"last", "select_last_index"}}},
      {"asin", "asin"},
      {"asinh", "asinh"},
      {"atan", "atan"},
      {"atanh", "atanh"},
      {"average_pool",
       "nn.avg_pool#d",
       {{"kernel", "pool_size"},
        {"strides", "strides"},
        {"dilations", "dilation"},
        {"pads", "padding"},
        {"round_up", "ceil_mode"},
        {"count_padding", "count_include_pad"}}},
      {"batch_norm", "nn.batch_norm", {{"epsilon", "epsilon"}}},
      {"bit_and", "bitwise_and"},
      {"bit_cast", "reinterpret", {{"to", "dtype"}}},
      {"bit_not", "bitwise_not"},
      {"bit_or", "bitwise_or"},
      {"bit_xor", "bitwise_xor"},
      {"broadcast", "broadcast_to"},
      {"cast", "cast", {{"to", "dtype"}}},
      {"ceil", "ceil"},
      {"concat", "concatenate", {{"axis", "axis"}}},
      {"conv",
       "nn.conv#d",
       {{"groups", "groups"}, {"strides", "strides"}, {"dilations", "dilation"}, {"pads", "padding"}}},
      {"conv_transpose",
       "nn.conv#d_transpose",
       {{"groups", "groups"},
        {"output_padding", "output_padding"},
        {"strides", "strides"},
        {"dilations", "dilation"},
        {"pads", "padding"}}},
      {"copy", "copy"},
      {"cos", "cos"},
      {"cosh", "cosh"},
      {"cumulative_prod", "cumprod", {{"axis", "axis"}, {"exclusive", "exclusive"}}},
      {"cumulative_sum", "cumsum", {{"axis", "axis"}, {"exclusive", "exclusive"}}},
      {"div", "divide"},
      {"einsum", "einsum", {{"equation", "equation"}}},
      {"equal", "equal"},
      {"erf", "erf"},
      {"exp", "exp"},
      {"floor", "floor"},
      {"gather", "take", {{"axis", "axis"}}},
      {"gather_elements", "gather", {{"axis", "axis"}}},
      {"greater", "greater"},
      {"greater_equal", "greater_equal"},
      {"group_norm", "nn.group_norm", {{"groups", "num_groups"}, {"epsilon", "epsilon"}}},
      {"instance_norm", "nn.instance_norm", {{"epsilon", "epsilon"}}},
      {"is_inf", "isinf"},
      {"is_nan", "isnan"},
      {"layer_norm", "nn.layer_norm", {{"axis", "axis"}, {"epsilon", "epsilon"}}},
      {"leaky_relu", "nn.leaky_relu", {{"alpha", "alpha"}}},
      {"less", "less"},
      {"less_equal", "less_equal"},
      {"local_response_norm",
       "nn.lrn",
       {{"size", "size"}, {"alpha", "alpha"}, {"beta", "beta"}, {"bias", "bias"}}},
      {"log", "log"},
      {"log_softmax", "nn.log_softmax", {{"axis", "axis"}}},
      {"matmul", "nn.matmul", {{"transpose_a", "transpose_a"}, {"transpose_b", "transpose_b"}}},
      {"max", "maximum"},
      {"min", "minimum"},
      {"mul", "multiply"},
      {"neg", "negative"},
      {"not", "logical_not"},
      {"or", "logical_or"},
      {"pow", "power"},
      {"reduce_log_sum_exp", "logsumexp", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_max", "max", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_mean", "mean", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_min", "min", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_prod", "prod", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_sum", "sum", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"relu", "nn.relu"},
      {"reshape", "reshape", {{"allow_zero", "allowzero"}}},
      {"reverse_sequence", "reverse_sequence", {{"time_axis", "seq_axis"}, {"batch_axis", "batch_axis"}}},
      {"round", "round"},
      {"shape", "shape_of"},
      {"sigmoid", "sigmoid"},
      {"sign", "sign"},
      {"sin", "sin"},
      {"sinh", "sinh"},
      {"softmax", "nn.softmax", {{"axis", "axis"}}},
      {"split", "split", {{"axis", "axis"}}},
      {"sqrt", "sqrt"},
      {"squeeze", "squeeze", {{"axes", "axis"}}},
      {"sub", "subtract"},
      {"tan", "tan"},
      {"tanh", "tanh"},
      {"tile", "tile"},
      {"transpose", "transpose", {{"permutation", "axes"}}},
      {"unsqueeze", "expand_dims", {{"axes", "axis", ShownAs::Element}}},
      {"unsqueeze", "reshape", {{"axes", "newshape", ShownAs::Shape}}},
      {"where", "where"},
      {"xor", "logical_xor"},
  });
  return vocabulary;
}

const Counterpart kMaxPool = {"max_pool",
                              "nn.max_pool#d",
                              {{"kernel", "pool_size"},
                               {"strides", "strides"},
                               {"dilations", "dilation"},
                               {"pads", "padding"},
                               {"round_up", "ceil_mode"}}};

// Relay has no indices of the greatest elements, and no pads that depend on sizes.
const Counterpart* find_max_pool(const Node& node) {
  const bool can_tell = node.result(1).use_count() == 0 && node.attr("padding") == Attribute("explicit");
  return can_tell && fill_in_dims(kMaxPool.name, node) ? &kMaxPool : nullptr;
}

// Relay multiplies matrices, or batches of them along one dimension.
const Counterpart* find_relay_op(const Node& node) {
  static const Counterpart batched = {
      "matmul", "nn.batch_matmul", {{"transpose_a", "transpose_a"}, {"transpose_b", "transpose_b"}}};
  if (node.is("max_pool"))
    return find_max_pool(node);
  if (!node.is("matmul"))
    return relay_ops().find(node);
  const Shape &a = node.in("a").shape(), &b = node.in("b").shape();
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank() || a.rank() < 2 || a.rank() > 3)
    return nullptr;
  return a.rank() == 3 ? &batched : relay_ops().find(node);
}

// Tensor[(1, 4), float32]; a size that is not known is ?
std::string type_text(const Type& type) {
  if (type.is_sequence())
    return fmt::format("List[{}]", type_text(type.element()));
  if (type.is_optional())
    return fmt::format("Option[{}]", type_text(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return fmt::format("Tensor[?, {}]", words_for(dtype).torch);
  if (shape.rank() == 0)
    return std::string(words_for(dtype).torch);
  std::vector<std::string> sizes;
  for (const Dim& dim : shape.dims())
    sizes.push_back(dim.is_constant() ? dim.to_string() : "?");
  return fmt::format("Tensor[({}), {}]", fmt::join(sizes, ", "), words_for(dtype).torch);
}

std::string tuple_type(const Types& types) {
  std::vector<std::string> texts;
  for (const Type& type : types)
    texts.push_back(type_text(type));
  return types.size() == 1 ? texts[0] : fmt::format("({})", fmt::join(texts, ", "));
}

std::string attribute_text(const Attribute& attribute) {
  if (attribute.kind() == AttributeKind::DType)
    return fmt::format("\"{}\"", words_for(attribute.as<DType>()).torch);
  if (attribute.kind() == AttributeKind::Bool)
    return attribute.as<bool>() ? "True" : "False";
  return print(attribute);
}

class Printer {
 public:
  std::string print_function(const Graph& graph) {
    arguments_of_ = &graph;
    std::vector<std::string> arguments;
    for (Value input : graph.inputs())
      arguments.push_back(argument(input));
    for (const Node* node : graph.nodes())
      if (node->is("parameter"))
        arguments.push_back(argument(node->result()));
    text_ = fmt::format("fn ({}) {{\n", fmt::join(arguments, ",\n    "));
    print_body(graph, "  ");
    return text_ + "}\n";
  }

 private:
  std::string argument(Value value) {
    return fmt::format("%{}: {}", names_.name(value), type_text(value.type()));
  }

  // Weights of the function itself are its arguments; those of a nested graph stand where they are used.
  std::string use(Value value) {
    if (const auto it = stands_for_.find(value.data()); it != stands_for_.end())
      return it->second;
    const Literal* literal = literal_of(value);
    if (literal == nullptr || (value.node()->is("parameter") && &value.graph() == arguments_of_))
      return "%" + names_.name(value);
    if (literal->extents().empty() && kind(literal->dtype()) != DTypeKind::Complex)
      return *short_constant(value, {"True", "False", false}) + relay_suffix(literal->dtype());
    if (const auto text = short_constant(value, kPythonNumbers); text && is_integer(literal->dtype()))
      return *text;
    const auto it = constants_.emplace(value.data(), constants_.size()).first;
    return fmt::format("meta[relay.Constant][{}]", it->second);
  }

  std::string list(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (Value value : values)
      texts.push_back(use(value));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string tuple(const std::vector<Value>& values) {
    return values.size() == 1 ? use(values[0]) : fmt::format("({})", list(values));
  }

  // The result of a body is its last expression: the last node's, when that is what is returned.
  void print_body(const Graph& graph, const std::string& indent) {
    const std::vector<Value> outputs = graph.outputs();
    const Node* last = outputs.size() == 1 && outputs[0].has_one_use() && is_last(outputs[0].node())
                           ? outputs[0].node()
                           : nullptr;
    for (const Node* node : graph.nodes())
      if (literal_of(*node) == nullptr)
        print_node(*node, indent, node == last);
    if (last == nullptr)
      text_ += fmt::format("{}{}\n", indent, tuple(outputs));
  }

  static bool is_last(const Node* node) {
    return node != nullptr && node->result_count() == 1 && node->next() == node->graph().return_node() &&
           literal_of(*node) == nullptr && !node->is("while");
  }

  void print_node(const Node& node, const std::string& indent, bool is_result) {
    if (node.is("linear") && node.result().shape().ranked())
      return print_linear(node, indent, is_result);
    if (node.is("if"))
      return print_if(node, indent, is_result);
    if (node.is("while") && node.result_count() == static_cast<int64_t>(node.ins("carried").size()))
      return print_while(node, indent);
    const RelayWriter writer = {[this](Value value) { return use(value); },
                                [&](const std::string& part) { return let(part, indent); }};
    const auto written = written_in_relay(node, writer);
    std::string expression = written ? *written : call(node, indent);
    if (node.is("batch_norm"))  // which gives a tuple: the result, and the statistics
      expression = let(expression, indent) + ".0";
    assign(node, expression, indent, is_result);
  }

  std::string let(const std::string& expression, const std::string& indent) {
    const std::string name = "%" + number();
    text_ += fmt::format("{}{} = {};\n", indent, name, expression);
    return name;
  }

  std::string number() { return fmt::format("{}", next_number_++); }

  void assign(const Node& node, const std::string& expression, const std::string& indent, bool is_result) {
    if (is_result) {
      text_ += fmt::format("{}{}\n", indent, expression);
      return;
    }
    const std::string name = number();
    text_ += fmt::format("{}%{} = {};\n", indent, name, expression);
    const bool is_tuple = node.result_count() > 1 && find_relay_op(node) != &kMaxPool;
    for (Value result : node.results())
      names_.set(result, is_tuple ? fmt::format("{}.{}", name, result.index()) : name);
  }

  void print_linear(const Node& node, const std::string& indent, bool is_result) {
    const std::string dense = fmt::format("nn.dense({}, {}, units={})", use(node.in("x")),
                                          use(node.in("weight")), node.result().dim(-1));
    if (!node.has("bias"))
      return assign(node, dense, indent, is_result);
    const std::string name = number();
    text_ += fmt::format("{}%{} = {};\n", indent, name, dense);
    const int64_t rank = node.result().rank();
    assign(node,
           fmt::format("nn.bias_add(%{}, {}{})", name, use(node.in("bias")),
                       rank == 2 ? "" : fmt::format(", axis={}", rank - 1)),
           indent, is_result);
  }

  std::string call(const Node& node, const std::string& indent) {
    const Counterpart* counterpart = find_relay_op(node);
    std::vector<std::string> arguments;
    bool positional = true;
    for (const OperandDecl& decl : node.op().operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (values.empty() && decl.arity != Arity::Many) {
        positional = false;
        continue;
      }
      const std::string text = decl.arity == Arity::Many ? fmt::format("({})", list(values)) : use(values[0]);
      arguments.push_back(positional ? text : fmt::format("{}={}", decl.name, text));
    }
    for (std::string_view late : node.late_names())
      arguments.push_back(fmt::format("{}={}", late, use(node.late(late))));
    for (const auto& [name, value] : shown_attributes(node, counterpart))
      arguments.push_back(fmt::format("{}={}", name, attribute_text(value)));
    for (size_t i = 0; i < node.regions().size(); ++i)
      arguments.push_back(
          fmt::format("{}={}", node.op().regions[i], print_nested(*node.regions()[i], indent)));
    if (counterpart == nullptr)
      return fmt::format("call_extern({}{}{})", quote(word_for(node, counterpart)),
                         arguments.empty() ? "" : ", ", fmt::join(arguments, ", "));
    return fmt::format("{}({})", word_for(node, counterpart), fmt::join(arguments, ", "));
  }

  // A nested graph as a function, printed apart so that it can stand in a call.
  std::string print_nested(const Graph& graph, const std::string& indent) {
    std::vector<std::string> arguments;
    for (Value input : graph.inputs())
      arguments.push_back(argument(input));
    std::string before = std::move(text_);
    text_ = fmt::format("fn ({}) {{\n", fmt::join(arguments, ", "));
    print_body(graph, indent + "  ");
    std::string nested = std::move(text_) + indent + "}";
    text_ = std::move(before);
    return nested;
  }

  void print_if(const Node& node, const std::string& indent, bool is_result) {
    const std::vector<Value> inputs = node.ins("inputs");
    std::string before = std::move(text_);
    text_ = fmt::format("if ({}) {{\n", use(node.in("condition")));
    for (size_t i = 0; i < 2; ++i) {
      const Graph& branch = *node.regions()[i];
      // A branch sees the values around it.
      for (size_t k = 0; k < inputs.size(); ++k)
        stands_for_[branch.input(static_cast<int64_t>(k)).data()] = use(inputs[k]);
      print_body(branch, indent + "  ");
      text_ += fmt::format("{}}}{}", indent, i == 0 ? " else {\n" : "");
    }
    const std::string expression = std::move(text_);
    text_ = std::move(before);
    assign(node, expression, indent, is_result);
  }

  // let %while = fn (%turn, %go_on, carried…) { if (%go_on) { … %while(…) } else { carried… } }
  void print_while(const Node& node, const std::string& indent) {
    const Graph& body = node.region("body");
    const std::vector<Value> carried = node.ins("carried"), captured = node.ins("captured");
    const std::string loop = names_.take("while"), go_on = names_.take("go_on");
    std::vector<std::string> arguments = {argument(body.input(0)), fmt::format("%{}: bool", go_on)};
    std::vector<Value> state;
    Types types;
    for (size_t k = 0; k < carried.size(); ++k) {
      state.push_back(body.input(static_cast<int64_t>(k) + 1));
      arguments.push_back(argument(state.back()));
      types.push_back(state.back().type());
    }
    for (size_t k = 0; k < captured.size(); ++k)
      stands_for_[body.input(static_cast<int64_t>(carried.size() + k) + 1).data()] = use(captured[k]);
    std::string condition = "%" + go_on;
    if (node.has("trip_count"))
      condition = fmt::format("logical_and({}, less({}, {}))", condition, use(body.input(0)),
                              use(node.in("trip_count")));
    const std::string inner = indent + "  ";
    text_ += fmt::format("{}let %{} = fn ({}) -> {} {{\n{}if ({}) {{\n", indent, loop,
                         fmt::join(arguments, ", "), tuple_type(types), inner, condition);
    for (const Node* inside : body.nodes())
      if (literal_of(*inside) == nullptr)
        print_node(*inside, inner + "  ", false);
    text_ += fmt::format("{0}  %{1}(add({2}, 1i64), {3})\n{0}}} else {{\n{0}  {4}\n{0}}}\n{5}}};\n", inner,
                         loop, use(body.input(0)), list(body.outputs()), tuple(state), indent);
    const std::string start = node.has("condition") ? use(node.in("condition")) : "True";
    assign(node, fmt::format("%{}(0i64, {}{}{})", loop, start, carried.empty() ? "" : ", ", list(carried)),
           indent, false);
  }

  ViewNames names_{"_."};
  std::string text_;
  int64_t next_number_ = 0;
  const Graph* arguments_of_ = nullptr;  // the graph whose weights are arguments
  std::unordered_map<const ValueData*, std::string>
      stands_for_;  // inputs of nested graphs that are values outside
  std::unordered_map<const ValueData*, size_t> constants_;
};

}  // namespace

std::string show_as_relay(const Graph& graph) { return Printer().print_function(graph); }

}  // namespace tenon
