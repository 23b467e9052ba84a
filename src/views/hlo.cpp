// hlo.cpp — a graph as XLA's HLO: few primitive instructions, typed, with every broadcast written out.
#include <algorithm>
#include <numeric>

#include "ir/print.h"
#include "views/axes.h"
#include "views/constants.h"
#include "views/forms.h"
#include "views/hlo_computation.h"
#include "views/hlo_formulas.h"
#include "views/hlo_loops.h"
#include "views/hlo_move.h"
#include "views/hlo_reduce.h"
#include "views/hlo_types.h"
#include "views/hlo_window.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

// Elementwise instructions; what follows the name in a comparison is its direction.
const Vocabulary& elementwise_instructions() {
  static const Vocabulary vocabulary({
      {"abs", "abs"},
      {"add", "add"},
      {"and", "and"},
      {"bit_and", "and"},
      {"bit_cast", "bitcast-convert", {{"to", ""}}},
      {"bit_not", "not"},
      {"bit_or", "or"},
      {"bit_xor", "xor"},
      {"cast", "convert", {{"to", ""}}},
      {"ceil", "ceil"},
      {"copy", "copy"},
      {"cos", "cosine"},
      {"div", "divide"},
      {"equal", "compare EQ"},
      {"erf", "erf"},
      {"exp", "exponential"},
      {"floor", "floor"},
      {"greater", "compare GT"},
      {"greater_equal", "compare GE"},
      {"less", "compare LT"},
      {"less_equal", "compare LE"},
      {"log", "log"},
      {"max", "maximum"},
      {"min", "minimum"},
      {"mul", "multiply"},
      {"neg", "negate"},
      {"not", "not"},
      {"or", "or"},
      {"round", "round-nearest-even"},
      {"sigmoid", "logistic"},
      {"sign", "sign"},
      {"sin", "sine"},
      {"sqrt", "sqrt"},
      {"sub", "subtract"},
      {"tan", "tan"},
      {"tanh", "tanh"},
      {"where", "select"},
      {"xor", "xor"},
  });
  return vocabulary;
}

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

class Writer {
 public:
  explicit Writer(HloComputation& out) : out_(out) {}

  // The program: its inputs and then its weights are the parameters.
  std::string write_entry(const Graph& graph) {
    for (Value input : graph.inputs())
      out_.define(input, out_.parameter("", input.type(), input.name()));
    for (const Node* node : graph.nodes())
      if (node->is("parameter"))
        out_.define(node->result(),
                    out_.parameter("", node->result().type(), node->attr("name").as<std::string>()));
    return write_body(graph, "ENTRY main", true);
  }

  // A nested graph, whose inputs come as one tuple.
  std::string write_called(const Graph& graph, const std::string& name) {
    Types types;
    for (Value input : graph.inputs())
      types.push_back(input.type());
    const std::string tuple = out_.emit("p", hlo_tuple(types), "parameter(0)");
    for (Value input : graph.inputs())
      out_.define(input, element(tuple, input.type(), input.index(), input.name()));
    return write_body(graph, name, false);
  }

 private:
  using Method = void (Writer::*)(const Node&);

  std::string element(const std::string& tuple, const Type& type, int64_t index, const std::string& wanted) {
    return out_.emit(wanted.empty() ? "gte" : wanted, type,
                     fmt::format("get-tuple-element({}), index={}", tuple, index));
  }

  std::string write_body(const Graph& graph, const std::string& head, bool has_parameters) {
    write_nodes(graph, has_parameters);
    std::vector<std::string> roots;
    for (Value output : graph.outputs())
      roots.push_back(out_.use(output));
    return out_.finish(head, roots, graph.output_types());
  }

  void write_nodes(const Graph& graph, bool has_parameters) {
    for (const Node* node : graph.nodes())
      if (node->is("parameter") && !has_parameters)
        define(*node, "constant", hlo_constant(*literal_of(node->result())));
      else if (literal_of(*node) == nullptr)
        write(*node);
  }

  void define(const Node& node, std::string_view wanted, const std::string& instruction) {
    out_.define(node.result(), out_.emit(wanted, node.result().type(), instruction));
  }

  void write(const Node& node) {
    static const std::map<std::string_view, Method> methods = {
        {"batch_norm", &Writer::write_batch_norm},
        {"broadcast", &Writer::write_broadcast},
        {"clip", &Writer::write_clip},
        {"concat", &Writer::write_concat},
        {"conv", &Writer::write_conv},
        {"if", &Writer::write_if},
        {"linear", &Writer::write_linear},
        {"matmul", &Writer::write_matmul},
        {"pow", &Writer::write_pow},
        {"reciprocal", &Writer::write_reciprocal},
        {"relu", &Writer::write_relu},
        {"reshape", &Writer::write_reshape},
        {"squeeze", &Writer::write_reshape},
        {"transpose", &Writer::write_transpose},
        {"unsqueeze", &Writer::write_reshape},
    };
    const bool is_plain = node.late_names().empty() && node.result_count() > 0 && is_ranked(node);
    if (const Counterpart* counterpart = elementwise_instructions().find(node);
        is_plain && counterpart != nullptr)
      return write_elementwise(node, *counterpart);
    if (const auto it = methods.find(node.op().name); is_plain && it != methods.end())
      return (this->*it->second)(node);
    if (is_plain && (write_hlo_formula(out_, node) || write_hlo_move(out_, node) ||
                     write_hlo_reduction(out_, node) || write_hlo_window(out_, node)))
      return;
    const auto write_nested = [](HloComputation& out, const Graph& graph) {
      Writer(out).write_nodes(graph, false);
    };
    if (is_plain && write_hlo_loop(out_, node, write_nested))
      return;
    write_custom_call(node);
  }

  // Whether every tensor it takes and gives has a known number of dimensions.
  static bool is_ranked(const Node& node) {
    const auto ranked = [](Value v) { return !v.type().is_tensor() || v.shape().ranked(); };
    const std::vector<Value> operands = node.operands(), results = node.results();
    return std::all_of(operands.begin(), operands.end(), ranked) &&
           std::all_of(results.begin(), results.end(), ranked);
  }

  void write_elementwise(const Node& node, const Counterpart& counterpart) {
    std::vector<std::string> operands;
    for (Value operand : node.operands())
      operands.push_back(out_.use_as(operand, node.result().type()));
    std::string name(counterpart.name), direction;
    if (const size_t blank = name.find(' '); blank != std::string::npos) {
      direction = ", direction=" + name.substr(blank + 1);
      name.resize(blank);
    }
    define(node, name, fmt::format("{}({}){}", name, fmt::join(operands, ", "), direction));
  }

  void write_relu(const Node& node) {
    define(node, "relu",
           fmt::format("maximum({}, {})", out_.use(node.in("x")), hlo_splat(0, node.result().type())));
  }

  void write_reciprocal(const Node& node) {
    define(node, "divide",
           fmt::format("divide({}, {})", hlo_splat(1, node.result().type()), out_.use(node.in("x"))));
  }

  // Both of one type: that of the result, or that of the exponent where only it is one of fractions.
  void write_pow(const Node& node) {
    const Value a = node.in("a"), b = node.in("b");
    const Shape& shape = node.result().shape();
    const DType dtype = is_float(b.dtype()) && !is_float(a.dtype()) ? b.dtype() : a.dtype();
    const Type type = Type::tensor(dtype, shape);
    const auto operand = [&](Value value) {
      const std::string name = out_.use_as(value, type);
      return value.dtype() == dtype ? name : out_.emit("convert", type, fmt::format("convert({})", name));
    };
    const std::string base = operand(a), exponent = operand(b);
    const std::string power = out_.emit("power", type, fmt::format("power({}, {})", base, exponent));
    if (dtype == a.dtype())
      return out_.define(node.result(), power);
    define(node, "convert", fmt::format("convert({})", power));
  }

  void write_clip(const Node& node) {
    const Type& type = node.result().type();
    std::string y = out_.use(node.in("x"));
    if (node.has("min"))
      y = out_.emit("maximum", type, fmt::format("maximum({}, {})", y, out_.use_as(node.in("min"), type)));
    if (node.has("max"))
      y = out_.emit("minimum", type, fmt::format("minimum({}, {})", y, out_.use_as(node.in("max"), type)));
    out_.define(node.result(), y);
  }

  void write_linear(const Node& node) {
    const Value x = node.in("x"), bias = node.in("bias");
    const Type& type = node.result().type();
    const std::string dot =
        out_.emit("dot", type,
                  fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{1}}",
                              out_.use(x), out_.use(node.in("weight")), x.rank() - 1));
    if (!bias)
      return out_.define(node.result(), dot);
    const std::string broadcast = out_.use_as(bias, type);
    define(node, "add", fmt::format("add({}, {})", dot, broadcast));
  }

  void write_matmul(const Node& node) {
    const Value a = node.in("a"), b = node.in("b");
    const bool transpose_a = node.attr("transpose_a"), transpose_b = node.attr("transpose_b");
    std::string left = out_.use(a), right = out_.use(b);
    int64_t left_rank = a.rank(), right_rank = b.rank();
    std::string batch;
    const auto leading = [](Value v) {
      const std::vector<Dim>& dims = v.shape().dims();
      return std::vector<Dim>(dims.begin(), dims.end() - std::min<int64_t>(2, v.rank()));
    };
    if (b.rank() > 2 || (a.rank() > 2 && transpose_a)) {
      // Both get the same batch dimensions.
      const std::vector<Dim>& dims = node.result().shape().dims();
      const int64_t matrix_dims = (a.rank() > 1) + (b.rank() > 1);
      const std::vector<Dim> common(dims.begin(), dims.end() - matrix_dims);
      const auto spread = [&](Value v, std::string& name, int64_t& rank) {
        std::vector<Dim> wanted = common;
        wanted.insert(wanted.end(), v.shape().dims().begin() + static_cast<int64_t>(leading(v).size()),
                      v.shape().dims().end());
        rank = static_cast<int64_t>(wanted.size());
        name = out_.broadcast(name, v.type(), Type::tensor(v.dtype(), wanted));
      };
      spread(a, left, left_rank);
      spread(b, right, right_rank);
      const std::string dims_text = hlo_list(count_up(static_cast<int64_t>(common.size())));
      batch = fmt::format("lhs_batch_dims={0}, rhs_batch_dims={0}, ", dims_text);
    }
    const int64_t left_inner = transpose_a ? left_rank - 2 : left_rank - 1;
    const int64_t right_inner = b.rank() == 1 || transpose_b ? right_rank - 1 : right_rank - 2;
    define(node, "dot",
           fmt::format("dot({}, {}), {}lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", left, right,
                       batch, left_inner, right_inner));
  }

  void write_conv(const Node& node) {
    const Value x = node.in("x"), w = node.in("w");
    const std::vector<int64_t>&strides = node.attr("strides"), &dilations = node.attr("dilations"),
          &pads = node.attr("pads");
    const auto rank = static_cast<size_t>(x.rank() - 2);
    if (node.attr("padding").as<std::string>() != "explicit" || strides.size() != rank ||
        dilations.size() != rank)
      return write_custom_call(node);
    std::vector<std::string> sizes, padding, labels;
    for (size_t i = 0; i < rank; ++i) {
      sizes.push_back(w.dim(static_cast<int64_t>(i) + 2).to_string());
      padding.push_back(pads.empty() ? "0_0" : fmt::format("{}_{}", pads[i], pads[rank + i]));
      labels.push_back(fmt::format("{}", i));
    }
    define(node, "convolution",
           fmt::format("convolution({0}, {1}), window={{size={2} stride={3} pad={4} rhs_dilate={5}}}, "
                       "dim_labels=bf{6}_oi{6}->bf{6}, feature_group_count={7}",
                       out_.use(x), out_.use(w), fmt::join(sizes, "x"), fmt::join(strides, "x"),
                       fmt::join(padding, "x"), fmt::join(dilations, "x"), fmt::join(labels, ""),
                       node.attr("groups").as<int64_t>()));
  }

  void write_batch_norm(const Node& node) {
    std::vector<std::string> operands;
    for (Value operand : node.operands())
      operands.push_back(out_.use(operand));
    define(node, "batch_norm",
           fmt::format("batch-norm-inference({}), epsilon={}, feature_index=1", fmt::join(operands, ", "),
                       print(node.attr("epsilon"))));
  }

  void write_reshape(const Node& node) {
    define(node, node.op().name, fmt::format("reshape({})", out_.use(node.in("x"))));
  }

  void write_transpose(const Node& node) {
    define(node, "transpose",
           fmt::format("transpose({}), dimensions={}", out_.use(node.in("x")),
                       hlo_list(node.attr("permutation"))));
  }

  void write_broadcast(const Node& node) {
    out_.define(node.result(), out_.use_as(node.in("x"), node.result().type()));
  }

  void write_concat(const Node& node) {
    std::vector<std::string> operands;
    for (Value operand : node.ins("x"))
      operands.push_back(out_.use(operand));
    const int64_t axis = node.attr("axis"), rank = node.result().rank();
    define(node, "concatenate",
           fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(operands, ", "),
                       from_the_front(axis, rank)));
  }

  // The results of a node whose instruction gives a tuple, unless it is just one.
  void define_results(const Node& node, std::string_view wanted, const std::string& instruction) {
    const Types types = node.result_types();
    if (types.size() == 1)
      return define(node, wanted, instruction);
    const std::string tuple = out_.emit(wanted, hlo_tuple(types), instruction);
    for (Value result : node.results())
      out_.define(result, element(tuple, result.type(), result.index(), result.name()));
  }

  std::string tuple_of(const std::vector<Value>& values) {
    std::vector<std::string> names;
    Types types;
    for (Value value : values) {
      names.push_back(out_.use(value));
      types.push_back(value.type());
    }
    return out_.emit("tuple", hlo_tuple(types), fmt::format("tuple({})", fmt::join(names, ", ")));
  }

  std::string call_region(const Graph& region, std::string_view wanted) {
    const std::string name = out_.module().take_name(wanted);
    HloComputation called(out_.module());
    out_.module().add(Writer(called).write_called(region, name));
    return name;
  }

  void write_if(const Node& node) {
    const std::string inputs = tuple_of(node.ins("inputs"));
    const std::string then = call_region(node.region("then"), "then"),
                      otherwise = call_region(node.region("else"), "else");
    define_results(node, "conditional",
                   fmt::format("conditional({0}, {1}, {1}), true_computation={2}, false_computation={3}",
                               out_.use(node.in("condition")), inputs, then, otherwise));
  }

  void write_custom_call(const Node& node) {
    std::vector<std::string> operands, settings, called;
    for (Value operand : node.operands())
      operands.push_back(out_.use(operand));
    for (const auto& [name, value] : shown_attributes(node, nullptr))
      settings.push_back(fmt::format("{}={}", name, print(value)));
    for (size_t i = 0; i < node.regions().size(); ++i)
      called.push_back(call_region(*node.regions()[i], node.op().regions[i]));
    std::string call = fmt::format("custom-call({}), custom_call_target=\"tenon.{}\"",
                                   fmt::join(operands, ", "), node.op().name);
    if (!settings.empty())
      call += fmt::format(", backend_config={}", quote(fmt::format("{}", fmt::join(settings, ", "))));
    if (!called.empty())
      call += fmt::format(", called_computations={{{}}}", fmt::join(called, ", "));
    define_results(node, node.op().name, call);
  }

  HloComputation& out_;
};

}  // namespace

std::string show_as_hlo(const Graph& graph) {
  HloModule module;
  module.take_name("main");
  HloComputation main(module);
  const std::string entry = Writer(main).write_entry(graph);
  std::string text = fmt::format("HloModule {}\n\n", identifier(graph.name()));
  for (const std::string& computation : module.computations())
    text += computation + "\n";
  return text + entry;
}

}  // namespace tenon
