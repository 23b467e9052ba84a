#include "ops/data.h"
#include "passes/passes.h"

namespace tenon {

void freeze_parameters(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) {
    for (Node* node : each.nodes()) {
      if (!node->is("parameter"))
        continue;
      if (!journal.is_open())
        return;
      journal.applied("freeze", {node}, Numerics::BitExact);
      const InsertBefore here(node);
      const Value frozen = constant(each, node->attr("value").as<Literal>());
      frozen.set_name(node->attr("name"));
      each.replace(node, {frozen});
    }
  });
}

}  // namespace tenon
