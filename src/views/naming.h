// naming.h — names for values where another tool would give them: after the op that makes them.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"

namespace tenon {

// `name` with every character but letters, digits and those of `allowed` made an underscore; one that starts
// with a digit gets an underscore first.
std::string identifier(std::string_view name, std::string_view allowed = "_");
// What torch.fx gives no value as its name: keywords of Python, and its own functions.
std::span<const std::string_view> python_words();
std::string camel_case(std::string_view name);  // resnet_block → ResnetBlock

// Names that are unique in one print-out. A name that is taken gets a number: relu, relu_1, relu_2.
class ViewNames {
 public:
  // `allowed` are the characters that may stand in a name besides letters and digits, `before_number` stands
  // between a name and its number. A name that is one of `keywords` gets an underscore at its end.
  explicit ViewNames(std::string_view allowed = "_", std::string_view before_number = "_",
                     std::span<const std::string_view> keywords = {})
      : allowed_(allowed), before_number_(before_number), keywords_(keywords) {}

  std::string take(std::string_view wanted);
  const std::string& name(Value value);  // its own name or that of its op, taken when it is first asked for
  void set(Value value, std::string name) { names_[value.data()] = std::move(name); }
  void name_all(const Graph& graph);  // in the order of the graph; constants excepted

 private:
  std::string_view allowed_, before_number_;
  std::span<const std::string_view> keywords_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> repeats_;
  std::unordered_map<const ValueData*, std::string> names_;
};

}  // namespace tenon
