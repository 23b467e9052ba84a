// fx.cpp — a graph as torch.fx shows it: as a table, or as code.
#include <algorithm>
#include <array>
#include <map>

#include "views/constants.h"
#include "views/forms.h"
#include "views/higher_order.h"
#include "views/naming.h"
#include "views/torch_calls.h"
#include "views/torch_words.h"
#include "views/users.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

enum class Form : uint8_t { Table, Code };

struct Row {
  std::string opcode, name, target, args, kwargs;
  size_t users;
};

// The rows of one graph, and the nested graphs that its rows name.
class Listing {
 public:
  Listing(const Graph& graph, Form form, Returns returns) : form_(form), user_counts_(graph) {
    for (std::string_view word : python_words())
      names_.take(word);
    keep_names(graph);
    for (Value input : graph.inputs())
      rows_.push_back(
          {"placeholder", names_.name(input), identifier(input.name()), "()", "{}", user_counts_.of(input)});
    for (const Node* node : graph.nodes())
      add(*node);
    add_output(graph, returns);
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::string& returned() const { return returned_; }
  const std::vector<HandedGraph>& nested() const { return nested_; }

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
    std::vector<std::string> outputs;
    for (Value output : graph.outputs()) {
      const auto text = short_constant(output, kPythonNumbers);
      if (text && returns != Returns::Value)
        tensor_constant(output);
      outputs.push_back(text && returns == Returns::Value ? *text : names_.name(output));
    }
    if (returns == Returns::List)
      returned_ = fmt::format("[{}]", fmt::join(outputs, ", "));
    else
      returned_ = returns == Returns::Value && outputs.size() == 1 ? outputs[0] : tuple(outputs);
    rows_.push_back({"output", "output", "output", fmt::format("({},)", returned_), "{}", 0});
  }

  static std::string tuple(const std::vector<std::string>& parts) {
    return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
  }

  std::string reference(const std::string& name) const { return (form_ == Form::Code ? "%" : "") + name; }

  std::string argument(Value value) {
    if (auto text = short_constant(value, kPythonNumbers))
      return *text;
    return reference(names_.name(value));
  }

  std::string key(std::string_view name) const {
    return form_ == Form::Code ? std::string(name) : fmt::format("'{}'", name);
  }

  void add(const Node& node) {
    if (node.is("constant")) {
      // A short one stands where it is used.
      if (!short_constant(node.result(), kPythonNumbers))
        tensor_constant(node.result());
    } else if (node.is("parameter")) {
      const std::string path = node.attr("name");
      rows_.push_back({"get_attr", name(node.result(), identifier(path)), path, "()", "{}",
                       user_counts_.of(node.result())});
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
  std::string tensor_constant(Value value) {
    const auto [it, is_new] = tensor_constants_.try_emplace(value.data());
    if (is_new) {
      it->second = take_numbered("_tensor_constant", "");
      names_.set(value, it->second);
      rows_.push_back({"get_attr", it->second, it->second, "()", "{}", user_counts_.of(value)});
    }
    return reference(it->second);
  }

  // A constant that PyTorch takes no number for is a tensor; Python's operators take one on either side.
  std::string argument_of(const Node& node, std::string_view operand, Value value,
                          const Counterpart& counterpart) {
    TorchSlot slot = torch_slot(node, operand);
    const auto is_computed = [](Value v) { return !short_constant(v, kPythonNumbers); };
    const std::vector<Value> operands = node.operands();
    if (slot == TorchSlot::Tensor && counterpart.name.starts_with("operator.") &&
        std::any_of(operands.begin(), operands.end(), is_computed))
      slot = TorchSlot::TensorOrNumber;
    return is_number_for(slot, value) ? argument(value) : tensor_argument(value);
  }

  std::string tensor_argument(Value value) {
    return short_constant(value, kPythonNumbers) ? tensor_constant(value) : argument(value);
  }

  void add_call(const Node& node) {
    if (const std::vector<TorchCall> calls = torch_calls(node); !calls.empty())
      return add_calls(node, calls);
    std::vector<std::string> args, kwargs;
    for (size_t i = 0; i < node.regions().size(); ++i)
      args.push_back(add_handed(
          {fmt::format("{}_{}_graph", node.op().name, node.op().regions[i]), borrow(*node.regions()[i])}));
    const Counterpart* counterpart = torch_functions().find(node);
    if (counterpart != nullptr && !counterpart->arguments.empty()) {
      for (const auto& [name, value, constant] : shown_arguments(node, *counterpart))
        args.push_back(value      ? argument_of(node, name, value, *counterpart)
                       : constant ? python_text(*constant)
                                  : "None");
    } else {
      add_operands(node, counterpart, args, kwargs);
      for (const auto& [name, value] : shown_attributes(node, counterpart))
        kwargs.push_back(fmt::format("{}: {}", key(name), python_text(value)));
    }
    add_results(node, word_for(node, counterpart), args, kwargs);
  }

  void add_function(const std::string& name, const std::string& target, const std::vector<std::string>& args,
                    const std::vector<std::string>& kwargs, size_t users) {
    rows_.push_back(
        {"call_function", name, target, tuple(args), fmt::format("{{{}}}", fmt::join(kwargs, ", ")), users});
  }

  // The last call for a node: its result, or its results one by one.
  void add_results(const Node& node, const std::string& target, const std::vector<std::string>& args,
                   const std::vector<std::string>& kwargs) {
    if (shown_result_count(node) == 1)
      return add_function(name(node.result(), target), target, args, kwargs, user_counts_.of(node.result()));
    const std::string call = names_.take(target.substr(target.rfind('.') + 1));
    add_function(call, target, args, kwargs, static_cast<size_t>(node.result_count()));
    for (Value result : node.results())
      add_element(result, call, result.index());
  }

  void add_element(Value result, const std::string& call, int64_t index) {
    add_function(name(result, "getitem"), "operator.getitem", {reference(call), fmt::format("{}", index)}, {},
                 user_counts_.of(result));
  }

  // Its graphs are fetched by name. It gives a tuple, even of one value.
  void add_higher_order(const Node& node, const HigherOrderCall& call) {
    std::vector<std::string> args, carried, scanned, captured;
    for (const Start& start : call.carried)
      carried.push_back(start.value ? tensor_argument(start.value) : new_tensor(*start.constant));
    for (size_t i = 0; i < call.scanned.size(); ++i)
      scanned.push_back(add_scanned(node, i));
    if (call.count)
      scanned.push_back(add_step("torch.arange", {call.count->value ? argument(call.count->value)
                                                                    : python_text(*call.count->constant)}));
    for (Value value : call.captured)
      captured.push_back(tensor_argument(value));
    if (call.condition)
      args.push_back(tensor_argument(call.condition));
    for (const HandedGraph& handed : call.graphs)
      args.push_back(add_handed(handed));
    if (!scanned.empty()) {
      args.push_back(fmt::format("[{}]", fmt::join(carried, ", ")));
      args.push_back(fmt::format("[{}]", fmt::join(scanned, ", ")));
    } else if (call.op != "cond") {
      args.push_back(tuple(carried));
    }
    args.push_back(tuple(captured));
    const std::string given = names_.take(call.op);
    add_function(given, fmt::format("torch.ops.higher_order.{}", call.op), args, {},
                 static_cast<size_t>(node.result_count()));
    for (Value result : node.results())
      add_result_of(node, result, given, call.first_result + result.index());
  }

  std::string add_handed(const HandedGraph& handed) {
    const std::string name = take_numbered(handed.name, "_");
    nested_.push_back({name, handed.graph, handed.returns});
    rows_.push_back({"get_attr", name, name, "()", "{}", 1});
    return reference(name);
  }

  // A step on the way to a call, which nothing else uses.
  std::string add_step(const std::string& function, const std::vector<std::string>& args) {
    const std::string name = names_.take(function.substr(function.rfind('.') + 1));
    add_function(name, function, args, {}, 1);
    return reference(name);
  }

  std::string new_tensor(const Attribute& value) { return add_step("torch.tensor", {python_text(value)}); }

  // PyTorch's scan goes along the first axis, from its start.
  std::string add_scanned(const Node& node, size_t place) {
    const std::vector<int64_t>&axes = node.attr("axes"), &reversed = node.attr("reversed");
    std::string x = tensor_argument(node.ins("scanned")[place]);
    if (axes[place] != 0)
      x = add_step("torch.movedim", {x, fmt::format("{}", axes[place]), "0"});
    return reversed[place] != 0 ? add_step("torch.flip", {x, "[0]"}) : x;
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
    std::string y = add_step("operator.getitem", {reference(call), fmt::format("{}", index)});
    if (is_reversed && axis != 0)
      y = add_step("torch.flip", {y, "[0]"});
    const std::string function = axis != 0 ? "torch.movedim" : "torch.flip";
    add_function(name(result, function), function,
                 axis != 0 ? std::vector<std::string>{y, "0", fmt::format("{}", axis)}
                           : std::vector<std::string>{y, "[0]"},
                 {}, user_counts_.of(result));
  }

  void add_calls(const Node& node, const std::vector<TorchCall>& calls) {
    std::vector<std::string> earlier;  // the names of those that are not the last
    for (const TorchCall& call : calls) {
      const std::vector<std::string> args = call_arguments(call, earlier);
      std::vector<std::string> kwargs;
      for (const auto& [name, operand] : call.by_name)
        kwargs.push_back(fmt::format("{}: {}", key(name), operand_text(operand, earlier)));
      const std::string target(call.function);
      if (&call == &calls.back())
        return add_results(node, target, args, kwargs);
      earlier.push_back(names_.take(target.substr(target.rfind('.') + 1)));
      add_function(earlier.back(), target, args, kwargs, 1);
    }
  }

  std::vector<std::string> call_arguments(const TorchCall& call, const std::vector<std::string>& earlier) {
    std::vector<std::string> args;
    for (const TorchArgument& argument : call.arguments)
      args.push_back(operand_text(argument.operand, earlier));
    if (!call.subscript_axis)
      return args;
    // Axes before the one that is meant are whole.
    const std::string whole = "slice(None, None, None)";
    std::vector<std::string> places(static_cast<size_t>(*call.subscript_axis), whole);
    places.push_back(args.size() == 2 ? args[1]
                                      : fmt::format("slice({}, {}, {})", args[1], args[2], args[3]));
    return {args[0], places.size() == 1 ? places[0] : tuple(places)};
  }

  std::string operand_text(const TorchOperand& operand, const std::vector<std::string>& earlier) {
    if (const auto* value = std::get_if<Value>(&operand))
      return argument(*value);
    if (const auto* element = std::get_if<OnlyElement>(&operand))
      return argument(element->value);
    if (const auto* elements = std::get_if<AllElements>(&operand))
      return argument(elements->value);
    if (const auto* constant = std::get_if<Attribute>(&operand))
      return python_text(*constant);
    if (const auto* call = std::get_if<EarlierCall>(&operand))
      return reference(earlier[call->number]);
    return "None";
  }

  // In order until one is left out; from there on by name.
  void add_operands(const Node& node, const Counterpart* counterpart, std::vector<std::string>& args,
                    std::vector<std::string>& kwargs) {
    bool positional = true;
    for (const OperandDecl& decl : node.op().operands) {
      std::vector<std::string> texts;
      for (Value value : node.ins(decl.name))
        texts.push_back(counterpart == nullptr ? argument(value)
                                               : argument_of(node, decl.name, value, *counterpart));
      if (texts.empty() && decl.arity != Arity::Many) {
        positional = false;
        continue;
      }
      const std::string text =
          decl.arity == Arity::Many ? fmt::format("[{}]", fmt::join(texts, ", ")) : texts[0];
      if (positional)
        args.push_back(text);
      else
        kwargs.push_back(fmt::format("{}: {}", key(decl.name), text));
    }
    for (std::string_view late : node.late_names())
      kwargs.push_back(fmt::format("{}: {}", key(late), argument(node.late(late))));
  }

  Form form_;
  UserCounts user_counts_;
  ViewNames names_;
  std::map<std::string, int64_t> numbers_;  // of those that are numbered from 0 on
  std::unordered_map<const ValueData*, std::string> tensor_constants_;
  std::vector<Row> rows_;
  std::string returned_;
  std::vector<HandedGraph> nested_;
};

constexpr size_t kWidestColumn = 100;

// The columns as wide as what stands in them; a very long cell sticks out, as all rows padded to it would be
// long too.
std::string print_table(const Graph& graph, Returns returns = Returns::Value) {
  const Listing listing(graph, Form::Table, returns);
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs", 0}};
  rows.insert(rows.end(), listing.rows().begin(), listing.rows().end());
  std::array<size_t, 5> widths{};
  const auto cells = [](const Row& row) {
    return std::array<const std::string*, 5>{&row.opcode, &row.name, &row.target, &row.args, &row.kwargs};
  };
  for (const Row& row : rows)
    for (size_t i = 0; i < widths.size(); ++i)
      if (const size_t size = cells(row)[i]->size(); size <= kWidestColumn)
        widths[i] = std::max(widths[i], size);
  const auto line = [&](const std::array<std::string, 5>& columns) {
    std::string text;
    for (size_t i = 0; i + 1 < widths.size(); ++i)
      text += fmt::format("{:<{}}  ", columns[i], widths[i]);
    return text + columns.back() + "\n";
  };
  std::string text;
  for (const Row& row : rows) {
    text += line({row.opcode, row.name, row.target, row.args, row.kwargs});
    if (&row == &rows.front()) {
      std::array<std::string, 5> rules;
      for (size_t i = 0; i < widths.size(); ++i)
        rules[i] = std::string(widths[i], '-');
      text += line(rules);
    }
  }
  for (const auto& [name, nested, nested_returns] : listing.nested())
    text += fmt::format("\n{}:\n{}", name, print_table(*nested, nested_returns));
  return text;
}

std::string print_code(const Graph& graph, Returns returns = Returns::Value) {
  const Listing listing(graph, Form::Code, returns);
  std::string text = "graph():\n";
  for (const Row& row : listing.rows()) {
    if (row.opcode == "output")
      continue;
    text +=
        fmt::format("    %{} : [num_users={}] = {}[target={}]", row.name, row.users, row.opcode, row.target);
    if (row.opcode == "call_function")
      text += fmt::format("(args = {}, kwargs = {})", row.args, row.kwargs);
    text += "\n";
  }
  text += fmt::format("    return {}\n", listing.returned());
  for (const auto& [name, nested, nested_returns] : listing.nested())
    text += fmt::format("\n{} = {}", name, print_code(*nested, nested_returns));
  return text;
}

}  // namespace

std::string show_as_fx(const Graph& graph) { return print_table(graph); }
std::string show_as_fx_code(const Graph& graph) { return print_code(graph); }

}  // namespace tenon
