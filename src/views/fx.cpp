// fx.cpp — a graph as torch.fx shows it: as a table, or as code.
#include <algorithm>
#include <array>

#include "views/constants.h"
#include "views/forms.h"
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
  Listing(const Graph& graph, Form form) : form_(form), user_counts_(graph) {
    name_calls(graph);
    names_.name_all(graph);
    for (Value input : graph.inputs())
      rows_.push_back(
          {"placeholder", names_.name(input), names_.name(input), "()", "{}", user_counts_.of(input)});
    for (const Node* node : graph.nodes())
      add(*node);
    // As fx does, without the percent signs here.
    std::vector<std::string> outputs;
    for (Value output : graph.outputs()) {
      const auto text = short_constant(output, kPythonNumbers);
      outputs.push_back(text ? *text : names_.name(output));
    }
    returned_ = outputs.size() == 1 ? outputs[0] : tuple(outputs);
    rows_.push_back({"output", "output", "output", fmt::format("({},)", returned_), "{}", 0});
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::string& returned() const { return returned_; }
  const std::vector<std::pair<std::string, const Graph*>>& nested() const { return nested_; }

 private:
  // A node of several results is one call, and then one getitem for each.
  void name_calls(const Graph& graph) {
    for (Value input : graph.inputs())
      names_.name(input);
    for (const Node* node : graph.nodes())
      if (shown_result_count(*node) != 1) {
        calls_[node] = names_.take(node->op().name);
        for (Value result : node->results())
          if (result.name().empty())
            names_.set(result, names_.take("getitem"));
      }
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
      if (!short_constant(node.result(), kPythonNumbers)) {
        const std::string name = names_.take("_tensor_constant");
        names_.set(node.result(), name);
        rows_.push_back({"get_attr", name, name, "()", "{}", user_counts_.of(node.result())});
      }
      return;
    }
    if (node.is("parameter")) {
      rows_.push_back({"get_attr", names_.name(node.result()), node.attr("name").as<std::string>(), "()",
                       "{}", user_counts_.of(node.result())});
      return;
    }
    add_call(node);
  }

  void add_call(const Node& node) {
    if (const std::vector<TorchCall> calls = torch_calls(node); !calls.empty())
      return add_calls(node, calls);
    std::vector<std::string> args, kwargs;
    for (size_t i = 0; i < node.regions().size(); ++i) {
      const std::string name = names_.take(fmt::format("{}_graph", node.op().regions[i]));
      nested_.emplace_back(name, node.regions()[i].get());
      rows_.push_back({"get_attr", name, name, "()", "{}", 1});
      args.push_back(reference(name));
    }
    const Counterpart* counterpart = torch_functions().find(node);
    if (counterpart != nullptr && !counterpart->arguments.empty()) {
      for (const auto& [name, value, constant] : shown_arguments(node, *counterpart))
        args.push_back(value ? argument(value) : constant ? python_text(*constant) : "None");
    } else {
      add_operands(node, args, kwargs);
      for (const auto& [name, value] : shown_attributes(node, counterpart))
        kwargs.push_back(fmt::format("{}: {}", key(name), python_text(value)));
    }
    if (node.is("if"))  // the condition comes before the branches
      std::rotate(args.begin(), args.begin() + 2, args.begin() + 3);
    add_results(node, word_for(node, counterpart), args, kwargs);
  }

  // The last call for a node: its result, or its results one by one.
  void add_results(const Node& node, const std::string& target, const std::vector<std::string>& args,
                   const std::vector<std::string>& kwargs) {
    const std::string call_args = tuple(args), call_kwargs = fmt::format("{{{}}}", fmt::join(kwargs, ", "));
    if (shown_result_count(node) == 1) {
      rows_.push_back({"call_function", names_.name(node.result()), target, call_args, call_kwargs,
                       user_counts_.of(node.result())});
      return;
    }
    const std::string& call = calls_.at(&node);
    rows_.push_back(
        {"call_function", call, target, call_args, call_kwargs, static_cast<size_t>(node.result_count())});
    for (Value result : node.results())
      rows_.push_back({"call_function", names_.name(result), "operator.getitem",
                       fmt::format("({}, {})", reference(call), result.index()), "{}",
                       user_counts_.of(result)});
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
      rows_.push_back({"call_function", earlier.back(), target, tuple(args),
                       fmt::format("{{{}}}", fmt::join(kwargs, ", ")), 1});
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
    if (const auto* constant = std::get_if<Attribute>(&operand))
      return python_text(*constant);
    if (const auto* call = std::get_if<EarlierCall>(&operand))
      return reference(earlier[call->number]);
    return "None";
  }

  // In order until one is left out; from there on by name.
  void add_operands(const Node& node, std::vector<std::string>& args, std::vector<std::string>& kwargs) {
    bool positional = true;
    for (const OperandDecl& decl : node.op().operands) {
      std::vector<std::string> texts;
      for (Value value : node.ins(decl.name))
        texts.push_back(argument(value));
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
  std::unordered_map<const Node*, std::string> calls_;  // of several results
  std::vector<Row> rows_;
  std::string returned_;
  std::vector<std::pair<std::string, const Graph*>> nested_;
};

constexpr size_t kWidestColumn = 100;

// The columns as wide as what stands in them; a very long cell sticks out, as all rows padded to it would be
// long too.
std::string print_table(const Graph& graph) {
  const Listing listing(graph, Form::Table);
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
  for (const auto& [name, nested] : listing.nested())
    text += fmt::format("\n{}:\n{}", name, print_table(*nested));
  return text;
}

std::string print_code(const Graph& graph) {
  const Listing listing(graph, Form::Code);
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
  for (const auto& [name, nested] : listing.nested())
    text += fmt::format("\n{} = {}", name, print_code(*nested));
  return text;
}

}  // namespace

std::string show_as_fx(const Graph& graph) { return print_table(graph); }
std::string show_as_fx_code(const Graph& graph) { return print_code(graph); }

}  // namespace tenon
