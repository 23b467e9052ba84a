// fx.cpp — a graph as torch.fx shows it: as a table, or as code.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "views/constants.h"
#include "views/forms.h"
#include "views/fx_rows.h"

namespace tenon {
namespace {

// Code has a percent sign before the names of nodes.
enum class Form : uint8_t { Table, Code };

std::string argument_text(const FxArgument& argument, Form form);

std::string texts_of(const std::vector<FxArgument>& arguments, Form form) {
  std::vector<std::string> texts;
  for (const FxArgument& argument : arguments)
    texts.push_back(argument_text(argument, form));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string tuple_text(const std::vector<FxArgument>& parts, Form form) {
  return fmt::format("({}{})", texts_of(parts, form), parts.size() == 1 ? "," : "");
}

std::string argument_text(const FxArgument& argument, Form form) {
  switch (argument.kind) {
    case FxArgument::Kind::None:
      return "None";
    case FxArgument::Kind::Node:
      return (form == Form::Code ? "%" : "") + argument.node;
    case FxArgument::Kind::Constant:
      return python_text(*argument.constant);
    case FxArgument::Kind::ShortConstant:
      return *short_constant(argument.value, kPythonNumbers);
    case FxArgument::Kind::List:
      return fmt::format("[{}]", texts_of(argument.parts, form));
    case FxArgument::Kind::Tuple:
      return tuple_text(argument.parts, form);
    case FxArgument::Kind::Slice:
      return fmt::format("slice({})", texts_of(argument.parts, form));
  }
  CHECK(false, "an argument is of no kind");
}

std::string named_text(const std::vector<std::pair<std::string, FxArgument>>& named, Form form) {
  std::vector<std::string> texts;
  for (const auto& [name, argument] : named)
    texts.push_back((form == Form::Code ? name : fmt::format("'{}'", name)) + ": " +
                    argument_text(argument, form));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

constexpr size_t kWidestColumn = 100;

// The columns as wide as what stands in them; a very long cell sticks out, as all rows padded to it would be
// long too.
std::string print_table(const Graph& graph, Returns returns = Returns::Value) {
  const FxRows listing = fx_rows(graph, returns);
  using Columns = std::array<std::string, 5>;
  std::vector<Columns> rows = {{"opcode", "name", "target", "args", "kwargs"}};
  for (const FxRow& row : listing.rows)
    rows.push_back({row.opcode, row.name, row.target, tuple_text(row.args, Form::Table),
                    named_text(row.kwargs, Form::Table)});
  std::array<size_t, 5> widths{};
  for (const Columns& row : rows)
    for (size_t i = 0; i < widths.size(); ++i)
      if (const size_t size = row[i].size(); size <= kWidestColumn)
        widths[i] = std::max(widths[i], size);
  const auto line = [&](const Columns& columns) {
    std::string text;
    for (size_t i = 0; i + 1 < widths.size(); ++i)
      text += fmt::format("{:<{}}  ", columns[i], widths[i]);
    return text + columns.back() + "\n";
  };
  std::string text;
  for (const Columns& row : rows) {
    text += line(row);
    if (&row == &rows.front()) {
      Columns rules;
      for (size_t i = 0; i < widths.size(); ++i)
        rules[i] = std::string(widths[i], '-');
      text += line(rules);
    }
  }
  for (const auto& [name, nested, nested_returns] : listing.nested)
    text += fmt::format("\n{}:\n{}", name, print_table(*nested, nested_returns));
  return text;
}

std::string print_code(const Graph& graph, Returns returns = Returns::Value) {
  const FxRows listing = fx_rows(graph, returns);
  std::string text = "graph():\n";
  for (const FxRow& row : listing.rows) {
    if (row.opcode == "output")
      continue;
    text +=
        fmt::format("    %{} : [num_users={}] = {}[target={}]", row.name, row.users, row.opcode, row.target);
    if (row.opcode == "call_function")
      text += fmt::format("(args = {}, kwargs = {})", tuple_text(row.args, Form::Code),
                          named_text(row.kwargs, Form::Code));
    text += "\n";
  }
  text += fmt::format("    return {}\n", argument_text(listing.returned, Form::Table));
  for (const auto& [name, nested, nested_returns] : listing.nested)
    text += fmt::format("\n{} = {}", name, print_code(*nested, nested_returns));
  return text;
}

}  // namespace

std::string show_as_fx(const Graph& graph) { return print_table(graph); }
std::string show_as_fx_code(const Graph& graph) { return print_code(graph); }

}  // namespace tenon
