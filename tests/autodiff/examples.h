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
  std::string text() const { return "graph main(" + inputs + ") {\n" + nodes + "\nreturn %y\n}"; }
};

std::vector<Example> all_examples();

}  // namespace tenon
