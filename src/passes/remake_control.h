// remake_control.h — control flow made anew: an if, a while or a scan whose nested graphs are handed other
// values, or give fewer.
//
// The inputs of the nested graphs after the leading ones (a loop's iteration) stand for operands of the node,
// and the outputs after the leading ones (whether a loop goes on) for its results.
#pragma once

#include "ir/graph.h"

namespace tenon {

bool is_control(const Node& node);
size_t leading_count(const Node& node);  // of inputs that no operand, and outputs that no result stands for
std::vector<Value> handed_in(const Node& node);  // the operands, in the order of the inputs
size_t carried_count(const Node& node);          // of a loop; those are the first handed in and given
size_t scanned_count(const Node& node);          // of a scan; those come next
// The first of those that are neither carried nor scanned and have the same operand as this one of them.
size_t first_of(const Node& node, size_t input);

struct Remade {
  enum class Fate : uint8_t {
    Stays,
    Goes,        // nothing that stays reads it
    IsConstant,  // the operand is a constant, of which the nested graphs get a copy
    IsAnother,   // the operand is handed in before: see first_of
  };
  std::vector<Fate> inputs;   // for each operand that is handed in
  std::vector<bool> results;  // whether each result stays
  // What is handed in besides, at the end: the value, and which input of the nested graphs it stands for
  // (the leading ones are counted).
  struct Captured {
    Value value;
    size_t input;
  };
  std::vector<Captured> captured = {};

  explicit Remade(const Node& node)  // as it is
      : inputs(handed_in(node).size(), Fate::Stays),
        results(static_cast<size_t>(node.result_count()), true) {}
};

// Makes it before the node; a UserError where the nested graphs cannot do without what goes.
Node* make_anew(Node* node, const Remade& remade);
// Gives it the uses of the results that stay.
void hand_over(Node* node, const Remade& remade, Node* anew);

}  // namespace tenon
