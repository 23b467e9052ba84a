#include "views/naming.h"

#include <algorithm>

namespace tenon {
namespace {

bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); }
bool is_digit(char c) { return '0' <= c && c <= '9'; }

}  // namespace

std::string identifier(std::string_view name, std::string_view allowed) {
  std::string result(name.empty() || is_digit(name[0]) ? 1 : 0, '_');
  for (const char c : name)
    result += is_letter(c) || is_digit(c) || allowed.find(c) != std::string_view::npos ? c : '_';
  return result;
}

std::string camel_case(std::string_view name) {
  std::string result;
  bool starts_word = true;
  for (const char c : identifier(name)) {
    if (c == '_') {
      starts_word = true;
      continue;
    }
    result += starts_word && 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    starts_word = false;
  }
  return result.empty() ? "Model" : result;
}

std::span<const std::string_view> python_words() {
  static constexpr std::string_view words[] = {
      "abs",      "all",    "and",   "any",    "assert", "bool",   "break",  "class",  "complex",
      "continue", "def",    "del",   "dict",   "elif",   "else",   "except", "filter", "float",
      "for",      "format", "from",  "global", "hash",   "help",   "id",     "if",     "import",
      "in",       "input",  "int",   "is",     "iter",   "lambda", "len",    "list",   "map",
      "max",      "min",    "next",  "not",    "object", "open",   "or",     "pass",   "pow",
      "print",    "raise",  "range", "return", "round",  "set",    "slice",  "sorted", "str",
      "sum",      "try",    "tuple", "type",   "vars",   "while",  "with",   "yield",  "zip"};
  return words;
}

std::string ViewNames::take(std::string_view wanted) {
  std::string base = identifier(wanted, allowed_);
  if (std::find(keywords_.begin(), keywords_.end(), base) != keywords_.end())
    base += '_';
  std::string name = base;
  while (!taken_.insert(name).second)
    name = fmt::format("{}{}{}", base, before_number_, ++repeats_[base]);
  return name;
}

const std::string& ViewNames::name(Value value) {
  const auto it = names_.find(value.data());
  if (it != names_.end())
    return it->second;
  const std::string wanted = !value.name().empty() ? value.name()
                             : value.is_input()    ? std::string("input")
                                                   : std::string(value.node()->op().name);
  return names_[value.data()] = take(wanted);
}

void ViewNames::name_all(const Graph& graph) {
  for (Value input : graph.inputs())
    name(input);
  for (const Node* node : graph.nodes())
    if (!node->is("constant"))
      for (Value result : node->results())
        name(result);
}

}  // namespace tenon
