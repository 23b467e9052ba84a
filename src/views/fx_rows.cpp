#include "views/fx_rows.h"

#include <algorithm>
#include <map>

#include "views/constants.h"
#include "views/naming.h"
#include "views/torch_calls.h"
#include "views/users.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

using NamedArguments = std::vector<std::pair<std::string, FxArgument>>;

// The rows of one graph, and the nested graphs that its rows name.
class Listing {
 public:
  Listing(const Graph& graph, Returns returns) : user_counts_(graph) {
    for (std::string_view word : python_words())
      names_.take(word);
    keep_names(graph);
    for (Value input : graph.inputs())
      rows_.push_back({.opcode = "placeholder",
                       .name = names_.name(input),
                       .target = identifier(input.name()),
                       .users = user_counts_.of(input),
                       .result = input});
    for (const Node* node : graph.nodes())
      add(*node);
    add_output(graph, returns);
  }

  FxRows take() { return {std::move(rows_), std::move(returned_), std::move(nested_)}; }

 private:
  // What has a name keeps it; the others are named after the functions that make them.
  void keep_names(const Graph& graph) {
    for (Value input : graph.inputs())
      names_.name(input);
    for (const Node* node : graph.nodes())
      if (!node->is("constant"))
        for (Value result : node->results())
          if (!result.name().empty())
            names_.name(result);
  }

  const std::string& name(Value value, std::string_view function) {
    if (value.name().empty())
      names_.set(value, names_.take(function.substr(function.rfind('.') + 1)));
    return names_.name(value);
  }

  // As fx does, without the percent signs here.
  void add_output(const Graph& graph, Returns returns) {
    std::vector<FxArgument> outputs;
    for (Value output : graph.outputs())
      outputs.push_back(returns == Returns::Value ? argument(output) : tensor_argument(output));
    if (returns == Returns::List)
      returned_ = FxArgument::list(outputs);
    else
      returned_ = returns == Returns::Value && outputs.size() == 1 ? outputs[0] : FxArgument::tuple(outputs);
    rows_.push_back({.opcode = "output", .name = "output", .target = "output", .args = {returned_}});
  }

  static FxArgument reference(const std::string& name, Value value = {}) {
    return {.kind = FxArgument::Kind::Node, .node = name, .value = value};
  }

  FxArgument argument(Value value, TorchSlot slot = TorchSlot::TensorOrNumber) {
    FxArgument argument = short_constant(value, kPythonNumbers)
                              ? FxArgument{.kind = FxArgument::Kind::ShortConstant, .value = value}
                              : reference(names_.name(value), value);
    argument.slot = slot;
    return argument;
  }

  void add(const Node& node) {
    if (node.is("constant")) {
      // A short one stands where it is used.
      if (!short_constant(node.result(), kPythonNumbers))
        tensor_constant(node.result());
    } else if (node.is("parameter")) {
      const std::string path = node.attr("name");
      rows_.push_back({.opcode = "get_attr",
                       .name = name(node.result(), identifier(path)),
                       .target = path,
                       .users = user_counts_.of(node.result()),
                       .node = &node,
                       .result = node.result()});
    } else if (const auto call = higher_order_call(node)) {
      add_higher_order(node, *call);
    } else {
      add_call(node);
    }
  }

  // _tensor_constant0, _tensor_constant1, …
  std::string take_numbered(std::string_view name, std::string_view before_number) {
    return names_.take(fmt::format("{}{}{}", name, before_number, numbers_[std::string(name)]++));
  }

  // A constant as a tensor of its own, fetched where it is first used.
  FxArgument tensor_constant(Value value) {
    const auto [it, is_new] = tensor_constants_.try_emplace(value.data());
    if (is_new) {
      it->second = take_numbered("_tensor_constant", "");
      names_.set(value, it->second);
      rows_.push_back({.opcode = "get_attr",
                       .name = it->second,
                       .target = it->second,
                       .users = user_counts_.of(value),
                       .node = value.node(),
                       .result = value});
    }
    return reference(it->second, value);
  }

  // A constant that PyTorch takes no number for is a tensor; Python's operators take one on either side.
  FxArgument argument_of(const Node& node, std::string_view operand, Value value,
                         const Counterpart& counterpart) {
    TorchSlot slot = torch_slot(node, operand);
    const auto is_computed = [](Value v) { return !short_constant(v, kPythonNumbers); };
    const std::vector<Value> operands = node.operands();
    if (slot == TorchSlot::Tensor && counterpart.name.starts_with("operator.") &&
        std::any_of(operands.begin(), operands.end(), is_computed))
      slot = TorchSlot::TensorOrNumber;
    FxArgument given = is_number_for(slot, value) ? argument(value) : tensor_argument(value);
    given.slot = slot;
    return given;
  }

  FxArgument tensor_argument(Value value) {
    return short_constant(value, kPythonNumbers) ? tensor_constant(value)
                                                 : argument(value, TorchSlot::Tensor);
  }

  void add_call(const Node& node) {
    if (const std::vector<TorchCall> calls = torch_calls(node); !calls.empty())
      return add_calls(node, calls);
    std::vector<FxArgument> args;
    NamedArguments kwargs;
    for (size_t i = 0; i < node.regions().size(); ++i)
      args.push_back(add_handed(node, {fmt::format("{}_{}_graph", node.op().name, node.op().regions[i]),
                                       borrow(*node.regions()[i])}));
    const Counterpart* counterpart = torch_functions().find(node);
    if (counterpart != nullptr && !counterpart->arguments.empty()) {
      for (const auto& [name, value, constant] : shown_arguments(node, *counterpart))
        args.push_back(value      ? argument_of(node, name, value, *counterpart)
                       : constant ? FxArgument::of(*constant)
                                  : FxArgument::none());
    } else {
      add_operands(node, counterpart, args, kwargs);
      for (const auto& [name, value] : shown_attributes(node, counterpart))
        kwargs.emplace_back(name, FxArgument::of(value));
    }
    add_results(node, word_for(node, counterpart), args, kwargs);
  }

  void add_function(const Node& node, const std::string& name, const std::string& target,
                    std::vector<FxArgument> args, NamedArguments kwargs, size_t users, Value result = {}) {
    rows_.push_back(
        {"call_function", name, target, std::move(args), std::move(kwargs), users, &node, result});
  }

  // The last call for a node: its result, or its results one by one.
  void add_results(const Node& node, const std::string& target, std::vector<FxArgument> args,
                   NamedArguments kwargs) {
    if (shown_result_count(node) == 1)
      return add_function(node, name(node.result(), target), target, std::move(args), std::move(kwargs),
                          user_counts_.of(node.result()), node.result());
    const std::string call = names_.take(target.substr(target.rfind('.') + 1));
    add_function(node, call, target, std::move(args), std::move(kwargs),
                 static_cast<size_t>(node.result_count()));
    for (Value result : node.results())
      add_element(result, call, result.index());
  }

  void add_element(Value result, const std::string& call, int64_t index) {
    add_function(*result.node(), name(result, "getitem"), "operator.getitem",
                 {reference(call), FxArgument::of(index)}, {}, user_counts_.of(result), result);
  }

  // Its graphs are fetched by name. It gives a tuple, even of one value.
  void add_higher_order(const Node& node, const HigherOrderCall& call) {
    std::vector<FxArgument> args, carried, scanned, captured;
    for (const Start& start : call.carried)
      carried.push_back(start.value ? tensor_argument(start.value) : new_tensor(node, *start.constant));
    for (size_t i = 0; i < call.scanned.size(); ++i)
      scanned.push_back(add_scanned(node, i));
    if (call.count)
      scanned.push_back(add_step(node, "torch.arange",
                                 {call.count->value ? argument(call.count->value, TorchSlot::Int)
                                                    : FxArgument::of(*call.count->constant)}));
    for (Value value : call.captured)
      captured.push_back(tensor_argument(value));
    if (call.condition)
      args.push_back(tensor_argument(call.condition));
    for (const HandedGraph& handed : call.graphs)
      args.push_back(add_handed(node, handed));
    if (!scanned.empty()) {
      args.push_back(FxArgument::list(carried));
      args.push_back(FxArgument::list(scanned));
    } else if (call.op != "cond") {
      args.push_back(FxArgument::tuple(carried));
    }
    args.push_back(FxArgument::tuple(captured));
    const std::string given = names_.take(call.op);
    add_function(node, given, fmt::format("torch.ops.higher_order.{}", call.op), args, {},
                 static_cast<size_t>(node.result_count()));
    for (Value result : node.results())
      add_result_of(node, result, given, call.first_result + result.index());
  }

  FxArgument add_handed(const Node& node, const HandedGraph& handed) {
    const std::string name = take_numbered(handed.name, "_");
    nested_.push_back({name, handed.graph, handed.returns});
    rows_.push_back({.opcode = "get_attr", .name = name, .target = name, .users = 1, .node = &node});
    return reference(name);
  }

  // A step on the way to a call, which nothing else uses.
  FxArgument add_step(const Node& node, const std::string& function, std::vector<FxArgument> args) {
    const std::string name = names_.take(function.substr(function.rfind('.') + 1));
    add_function(node, name, function, std::move(args), {}, 1);
    return reference(name);
  }

  FxArgument new_tensor(const Node& node, const Attribute& value) {
    return add_step(node, "torch.tensor", {FxArgument::of(value)});
  }

  // PyTorch's scan goes along the first axis, from its start.
  FxArgument add_scanned(const Node& node, size_t place) {
    const std::vector<int64_t>&axes = node.attr("axes"), &reversed = node.attr("reversed");
    FxArgument x = tensor_argument(node.ins("scanned")[place]);
    if (axes[place] != 0)
      x = add_step(node, "torch.movedim", {x, FxArgument::of(axes[place]), FxArgument::of(0)});
    return reversed[place] != 0 ? add_step(node, "torch.flip", {x, first_axis()}) : x;
  }

  // What a scan collects along another axis, or backwards, is moved to its place.
  void add_result_of(const Node& node, Value result, const std::string& call, int64_t index) {
    const size_t carried = node.is("scan") ? node.ins("carried").size() : 0;
    const size_t place = static_cast<size_t>(result.index()) - carried;
    if (!node.is("scan") || static_cast<size_t>(result.index()) < carried)
      return add_element(result, call, index);
    const int64_t axis = node.attr("output_axes").as<std::vector<int64_t>>()[place];
    const bool is_reversed = node.attr("output_reversed").as<std::vector<int64_t>>()[place] != 0;
    if (axis == 0 && !is_reversed)
      return add_element(result, call, index);
    FxArgument y = add_step(node, "operator.getitem", {reference(call), FxArgument::of(index)});
    if (is_reversed && axis != 0)
      y = add_step(node, "torch.flip", {y, first_axis()});
    const std::string function = axis != 0 ? "torch.movedim" : "torch.flip";
    add_function(node, name(result, function), function,
                 axis != 0 ? std::vector<FxArgument>{y, FxArgument::of(0), FxArgument::of(axis)}
                           : std::vector<FxArgument>{y, first_axis()},
                 {}, user_counts_.of(result), result);
  }

  static FxArgument first_axis() { return FxArgument::of(Attribute::Ints{0}); }

  void add_calls(const Node& node, const std::vector<TorchCall>& calls) {
    std::vector<std::string> earlier;  // the names of those that are not the last
    for (const TorchCall& call : calls) {
      const std::vector<FxArgument> args = call_arguments(call, earlier);
      NamedArguments kwargs;
      for (const auto& [name, operand] : call.by_name)
        kwargs.emplace_back(name, operand_argument(operand, earlier));
      const std::string target(call.function);
      if (&call == &calls.back())
        return add_results(node, target, args, kwargs);
      earlier.push_back(names_.take(target.substr(target.rfind('.') + 1)));
      add_function(node, earlier.back(), target, args, kwargs, 1);
    }
  }

  std::vector<FxArgument> call_arguments(const TorchCall& call, const std::vector<std::string>& earlier) {
    std::vector<FxArgument> args;
    for (const TorchArgument& argument : call.arguments)
      args.push_back(operand_argument(argument.operand, earlier));
    if (!call.subscript_axis)
      return args;
    // Axes before the one that is meant are whole.
    std::vector<FxArgument> places(static_cast<size_t>(*call.subscript_axis),
                                   FxArgument::slice({{}, {}, {}}));
    places.push_back(args.size() == 2 ? args[1] : FxArgument::slice({args[1], args[2], args[3]}));
    return {args[0], places.size() == 1 ? places[0] : FxArgument::tuple(places)};
  }

  FxArgument operand_argument(const TorchOperand& operand, const std::vector<std::string>& earlier) {
    if (const auto* value = std::get_if<Value>(&operand))
      return argument(*value, TorchSlot::Tensor);
    if (const auto* element = std::get_if<OnlyElement>(&operand))
      return argument(element->value, TorchSlot::Number);
    if (const auto* elements = std::get_if<AllElements>(&operand))
      return argument(elements->value, TorchSlot::Ints);
    if (const auto* list = std::get_if<TensorList>(&operand)) {
      std::vector<FxArgument> parts;
      for (Value value : list->values)
        parts.push_back(argument(value, TorchSlot::Tensor));
      return FxArgument::list(parts);
    }
    if (const auto* constant = std::get_if<Attribute>(&operand))
      return FxArgument::of(*constant);
    if (const auto* call = std::get_if<EarlierCall>(&operand))
      return reference(earlier[call->number]);
    return FxArgument::none();
  }

  // In order until one is left out; from there on by name.
  void add_operands(const Node& node, const Counterpart* counterpart, std::vector<FxArgument>& args,
                    NamedArguments& kwargs) {
    bool positional = true;
    for (const OperandDecl& decl : node.op().operands) {
      std::vector<FxArgument> given;
      for (Value value : node.ins(decl.name))
        given.push_back(counterpart == nullptr ? argument(value)
                                               : argument_of(node, decl.name, value, *counterpart));
      if (given.empty() && decl.arity != Arity::Many) {
        positional = false;
        continue;
      }
      const FxArgument one = decl.arity == Arity::Many ? FxArgument::list(given) : given[0];
      if (positional)
        args.push_back(one);
      else
        kwargs.emplace_back(decl.name, one);
    }
    for (std::string_view late : node.late_names())
      kwargs.emplace_back(late, argument(node.late(late)));
  }

  UserCounts user_counts_;
  ViewNames names_;
  std::map<std::string, int64_t> numbers_;  // of those that are numbered from 0 on
  std::unordered_map<const ValueData*, std::string> tensor_constants_;
  std::vector<FxRow> rows_;
  FxArgument returned_;
  std::vector<HandedGraph> nested_;
};

}  // namespace

FxRows fx_rows(const Graph& graph, Returns returns) { return Listing(graph, returns).take(); }

}  // namespace tenon
