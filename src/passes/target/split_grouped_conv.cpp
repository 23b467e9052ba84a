#include "passes/target/split_grouped_conv.h"

#include "ops/data.h"
#include "ops/slice.h"

namespace tenon {
namespace {

constexpr int64_t kMostGroups = 16;   // for each of which a kernel is compiled
constexpr int64_t kLeastFilters = 4;  // that pay for reading the pixels of a group together

std::optional<Value> parts_of(const Node& node) {
  if (!node.is("conv"))
    return std::nullopt;
  const Value x = node.in("x"), w = node.in("w");
  const int64_t groups = node.attr("groups");
  if (groups < 2 || groups > kMostGroups || literal_of(w) != nullptr || !x.shape().ranked() ||
      !w.shape().ranked() || !w.dim(0).is_constant() || !w.dim(1).is_constant() ||
      x.dim(1) != w.dim(1) * groups)
    return std::nullopt;
  const int64_t filters = *w.dim(0).constant() / groups, channels = *w.dim(1).constant();
  if (filters < kLeastFilters)
    return std::nullopt;
  const WithSources sources(node);
  Attributes attributes = node.attributes();
  attributes.at("groups") = int64_t{1};
  std::vector<Value> parts;
  for (int64_t i = 0; i < groups; ++i)
    parts.push_back(x.graph()
                        .create("conv",
                                {{"x", slice(x, 1, i * channels, (i + 1) * channels)},
                                 {"w", slice(w, 0, i * filters, (i + 1) * filters)}},
                                attributes)
                        ->result());
  return concat(parts, 1);
}

}  // namespace

void split_grouped_conv(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    const InsertBefore here(node);
    if (const std::optional<Value> y = parts_of(*node); y && y->type() == node->result().type()) {
      if (!journal.is_open())
        return;
      journal.applied("split-grouped-conv", {node}, Numerics::BitExact);
      graph.replace(node, {*y});
    }
  }
}

}  // namespace tenon
