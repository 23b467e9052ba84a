#include "lowering/kernel_graph.h"

#include "base/error.h"

namespace tenon::lowering {

using loops::Scalar;

std::set<std::string> buffers_read(const Stage& stage) {
  std::set<std::string> names;
  for (const Scalar& value : stage.definition.values)
    loops::for_each_load(value, [&](const Scalar& load) { names.insert(load.name()); });
  return names;
}

std::optional<BufferId> KernelBuffer::made_of() const {
  if (const auto* packed = std::get_if<PackedWeights>(&layout))
    return packed->weights;
  if (const auto* transformed = std::get_if<TransformedWeights>(&layout))
    return transformed->weights;
  return std::nullopt;
}

BufferId BufferTable::add(KernelBuffer buffer) {
  const BufferId id{buffers_.size()};
  const bool is_new = ids_.emplace(buffer.name(), id).second;
  CHECK(is_new, "two buffers are called {}", buffer.name());
  buffers_.push_back(std::move(buffer));
  return id;
}

std::optional<BufferId> BufferTable::find(const std::string& name) const {
  const auto id = ids_.find(name);
  return id == ids_.end() ? std::nullopt : std::optional(id->second);
}

BufferId BufferTable::id_of(const std::string& name) const {
  const auto id = ids_.find(name);
  CHECK(id != ids_.end(), "no buffer is called {}", name);
  return id->second;
}

KernelNode make_node(Stage stage, const BufferTable& buffers) {
  KernelNode node;
  for (const loops::Buffer& result : stage.definition.results)
    node.writes.insert(buffers.id_of(result.name));
  node.stage = std::move(stage);
  update_reads(node, buffers);
  return node;
}

void update_reads(KernelNode& node, const BufferTable& buffers) {
  node.reads.clear();
  for (const std::string& name : buffers_read(*node.stage))
    node.reads.insert(buffers.id_of(name));
}

bool KernelGraph::is_constant(const std::string& buffer) const {
  const std::optional<BufferId> id = buffers.find(buffer);
  return id && buffers[*id].home == Home::Constant && !buffers[*id].made_of();
}

}  // namespace tenon::lowering
