#include "rewrite/quantised.h"

#include <unordered_set>

namespace tenon {

bool is_quantised(Value value) {
  std::vector<Value> waiting = {value};
  std::unordered_set<const Node*> seen;
  while (!waiting.empty()) {
    const Value next = waiting.back();
    waiting.pop_back();
    if (next.is_input() || !seen.insert(next.node()).second)
      continue;
    if (next.node()->is("dequantize"))
      return true;
    for (Value operand : next.node()->operands())
      waiting.push_back(operand);
  }
  return false;
}

Condition is_not_quantised(const Pattern& w) {
  return {w.to_string() + " is not made of quantised numbers",
          [=](const Match& m) { return !is_quantised(m[w]); }, true};
}

}  // namespace tenon
