#include "passes/target/embed_constants.h"

#include <algorithm>

#include "base/error.h"
#include "ops/data.h"
#include "passes/remake_control.h"

namespace tenon {

void embed_constants(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!is_control(*node))
      continue;
    Remade remade(*node);
    const std::vector<Value> operands = handed_in(*node);
    for (size_t i = carried_count(*node) + scanned_count(*node); i < operands.size(); ++i)
      if (literal_of(operands[i]) != nullptr)
        remade.inputs[i] = Remade::Fate::IsConstant;
    if (std::find(remade.inputs.begin(), remade.inputs.end(), Remade::Fate::IsConstant) ==
        remade.inputs.end())
      continue;
    if (!journal.is_open())
      return;
    try {
      Node* const copy = make_anew(node, remade);
      journal.applied("embed-constants", {node}, Numerics::BitExact);
      hand_over(node, remade, copy);
      graph.erase(node);
    } catch (const UserError&) {
      // As it is: a nested graph may know a size from what is handed in alone.
    }
  }
}

}  // namespace tenon
