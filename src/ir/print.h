// print.h — the text form of a graph. parse(print(g)) is g again: see parse.h for the grammar.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>

#include "ir/graph.h"

namespace tenon {

std::string print(const Graph& graph);
// The same, but large constants that are in files are printed by hash, too: text that needs no file to be
// read.
std::string print_by_hash(const Graph& graph);
std::string print(const Attribute& attribute);
// One node as a statement, where values have these names.
std::string print(const Node& node, const std::function<std::string(Value)>& name);

// Constants up to this many elements are printed one by one, even where they are in a file.
constexpr int64_t kPrintedElements = 16;

// Large constants that are in no file, and those that would not read back bit by bit, are printed by their
// hash only; the table finds them again when the text is parsed.
bool is_printed_by_hash(const Literal& literal);
using LiteralTable = std::unordered_map<uint64_t, Literal>;
LiteralTable large_literals(const Graph& graph);

// Writes the text form to a file that reads back anywhere: those constants go to PATH.weights.
void save(const Graph& graph, const std::filesystem::path& path);

// `text` in double quotes, with \" \\ \n \t and \xNN for what would not read back.
std::string quote(std::string_view text);

// Gives every value of a graph a name that is unique in it: its own where it has one, else a number.
class ValueNames {
 public:
  explicit ValueNames(const Graph& graph);
  // As it is printed after the %: in quotes where it needs them.
  std::string of(Value value) const;
  // What parsing gives the value as its name: nothing where a number is printed.
  const std::string& name(Value value) const { return names_.at(value.data()).name; }

 private:
  struct Name {
    std::string name;    // empty: unnamed
    int64_t number = 0;  // of an unnamed value
  };
  std::unordered_map<const ValueData*, Name> names_;
};

}  // namespace tenon
