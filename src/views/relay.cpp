// relay.cpp — a graph as a Relay function: weights are arguments, the last expression is the result, and a
// loop is a function that calls itself.
#include <algorithm>

#include "ir/print.h"
#include "ops/control.h"
#include "views/axes.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/relay_table.h"
#include "views/relay_words.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

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
    if (const auto text = short_constant(value, {"True", "False", false});
        text && literal->extents().empty() && kind(literal->dtype()) != DTypeKind::Complex)
      return *text + relay_suffix(literal->dtype());
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
           literal_of(*node) == nullptr && !node->is("while") && !node->is("scan");
  }

  void print_node(const Node& node, const std::string& indent, bool is_result) {
    if (node.is("linear") && node.result().shape().ranked())
      return print_linear(node, indent, is_result);
    if (node.is("if"))
      return print_if(node, indent, is_result);
    if ((node.is("while") || node.is("scan")) && can_collect(node))
      return print_loop(node, indent);
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
    const bool is_tuple = node.result_count() > 1 && !(node.is("max_pool") && find_relay_op(node));
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

  // What a loop collects starts as a tensor of no parts, so their sizes must be known.
  static bool can_collect(const Node& node) {
    const std::vector<Value> parts = LoopBody(node).collected;
    return std::all_of(parts.begin(), parts.end(), [](Value part) {
      const auto is_known = [](const Dim& dim) { return dim.is_constant(); };
      return part.type().is_tensor() && part.shape().ranked() &&
             std::all_of(part.shape().dims().begin(), part.shape().dims().end(), is_known);
    });
  }

  // One of the values that a loop collects: an argument of its function that grows from iteration to
  // iteration.
  struct Collected {
    std::string name;
    Value part;
    int64_t axis;
    bool is_reversed;
  };

  std::vector<Collected> find_collected(const Node& node) {
    const bool is_scan = node.is("scan");
    std::vector<Collected> found;
    for (Value part : LoopBody(node).collected) {
      const auto place = found.size();
      const int64_t axis = is_scan ? node.attr("output_axes").as<Attribute::Ints>()[place] : 0;
      found.push_back({names_.take("collected"), part, from_the_front(axis, part.rank() + 1),
                       is_scan && node.attr("output_reversed").as<Attribute::Ints>()[place] != 0});
    }
    return found;
  }

  // Of `length` parts along its axis.
  static Type stack_type(const Collected& collected, const Dim& length) {
    std::vector<Dim> dims = collected.part.shape().dims();
    dims.insert(dims.begin() + collected.axis, length);
    return Type::tensor(collected.part.dtype(), dims);
  }

  // let %loop = fn (%iteration, %go_on, carried…, collected…) { if (…) { … %loop(…) } else { … } }
  void print_loop(const Node& node, const std::string& indent) {
    const bool is_scan = node.is("scan");
    const LoopBody body(node);
    const std::vector<Value> carried = node.ins("carried"), captured = node.ins("captured");
    const std::string loop = names_.take(node.op().name);
    const std::string iteration = is_scan ? names_.take("iteration") : names_.name(body.iteration);
    std::vector<std::string> arguments = {fmt::format("%{}: int64", iteration)}, start = {"0i64"}, state;
    std::string condition;
    if (is_scan) {
      condition = fmt::format("less(%{}, {})", iteration, slice_count(node));
    } else {
      const std::string go_on = names_.take("go_on");
      arguments.push_back(fmt::format("%{}: bool", go_on));
      start.push_back(node.has("condition") ? use(node.in("condition")) : "True");
      condition = "%" + go_on;
      if (node.has("trip_count"))
        condition =
            fmt::format("logical_and({}, less(%{}, {}))", condition, iteration, use(node.in("trip_count")));
    }
    Types types;
    for (size_t k = 0; k < carried.size(); ++k) {
      const Value input = body.carried[k];
      arguments.push_back(argument(input));
      state.push_back(use(input));
      types.push_back(input.type());
      start.push_back(use(carried[k]));
    }
    const std::vector<Collected> collected = find_collected(node);
    for (const Collected& each : collected) {
      types.push_back(stack_type(each, Dim()));
      arguments.push_back(fmt::format("%{}: {}", each.name, type_text(types.back())));
      state.push_back("%" + each.name);
      const Type none = stack_type(each, 0);
      start.push_back(fmt::format("zeros(shape=[{}], dtype=\"{}\")",
                                  fmt::join(none.as_tensor().shape.dims(), ", "),
                                  words_for(each.part.dtype()).torch));
    }
    for (size_t k = 0; k < captured.size(); ++k)
      stands_for_[body.captured[k].data()] = use(captured[k]);
    const std::string inner = indent + "  ";
    text_ += fmt::format("{}let %{} = fn ({}) -> {} {{\n{}if ({}) {{\n", indent, loop,
                         fmt::join(arguments, ", "), tuple_type(types), inner, condition);
    print_iteration(node, iteration, collected, loop, inner + "  ");
    text_ += fmt::format("{0}}} else {{\n{0}  {1}\n{0}}}\n{2}}};\n", inner,
                         state.size() == 1 ? state[0] : fmt::format("({})", fmt::join(state, ", ")), indent);
    assign(node, fmt::format("%{}({})", loop, fmt::join(start, ", ")), indent, false);
  }

  // The slices, the body, and the call for the next iteration.
  void print_iteration(const Node& node, const std::string& iteration,
                       const std::vector<Collected>& collected, const std::string& loop,
                       const std::string& indent) {
    const LoopBody body(node);
    if (node.is("scan"))
      print_slices(node, iteration, indent);
    for (const Node* inside : body.graph.nodes())
      if (literal_of(*inside) == nullptr)
        print_node(*inside, indent, false);
    std::vector<std::string> next = {fmt::format("add(%{}, 1i64)", iteration)};
    if (body.go_on)
      next.push_back(use(body.go_on));
    for (Value value : body.next)
      next.push_back(use(value));
    for (const Collected& each : collected) {
      const std::string part =
          let(fmt::format("expand_dims({}, axis={})", use(each.part), each.axis), indent);
      const std::string parts = each.is_reversed ? fmt::format("({}, %{})", part, each.name)
                                                 : fmt::format("(%{}, {})", each.name, part);
      next.push_back(fmt::format("concatenate({}, axis={})", parts, each.axis));
    }
    text_ += fmt::format("{}%{}({})\n", indent, loop, fmt::join(next, ", "));
  }

  // How many iterations a scan has.
  std::string slice_count(const Node& node) {
    const Value x = node.ins("scanned").front();
    const int64_t axis = node.attr("axes").as<Attribute::Ints>().front();
    if (x.shape().ranked() && x.dim(axis).is_constant())
      return fmt::format("{}i64", *x.dim(axis).constant());
    return fmt::format("take(shape_of({}, dtype=\"int64\"), {}i64)", use(x), axis);
  }

  void print_slices(const Node& node, const std::string& iteration, const std::string& indent) {
    const std::vector<Value> scanned = node.ins("scanned"), slices = LoopBody(node).slices;
    const Attribute::Ints &axes = node.attr("axes"), &reversed = node.attr("reversed");
    for (size_t i = 0; i < scanned.size(); ++i) {
      std::string index = "%" + iteration;
      if (reversed[i] != 0)
        index = fmt::format("subtract({}, add({}, 1i64))", slice_count(node), index);
      stands_for_[slices[i].data()] =
          let(fmt::format("take({}, {}, axis={})", use(scanned[i]), index, axes[i]), indent);
    }
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
