// examples.h — for every op that has a gradient or a decomposition, small graphs that show its variations.
#pragma once

#include <string>
#include <vector>

namespace tenon {

// graph(INPUTS) { NODES return %y }, with inputs drawn evenly from low … high.
struct Example {
  std::string op;
  std::string inputs, nodes;
  double low = -2, high = 2;
  // Why the gradient needs sizes that are known before the graph runs; empty where it does not.
  std::string needs_sizes = "";
  // Without known sizes, every dimension has a symbol of its own; but nested graphs ask for dimensions that
  // are provably equal.
  bool one_symbol_per_size = false;

  std::string text() const { return "graph main(" + inputs + ") {\n" + nodes + "\nreturn %y\n}"; }
};

std::vector<Example> all_examples();

}  // namespace tenon
