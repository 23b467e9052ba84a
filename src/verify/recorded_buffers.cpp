#include "verify/recorded_buffers.h"

namespace tenon {

void RecordedBuffers::note_copies(const lowering::KernelGraph& graph) {
  for (const lowering::KernelNode& node : graph.nodes) {
    if (!node.stage || node.stage->definition.reduces() || node.stage->definition.results.size() != 1)
      continue;
    const loops::Definition& definition = node.stage->definition;
    const loops::Scalar& value = definition.values.front();
    if (value.kind() != loops::Scalar::Kind::Load || value.operands() != definition.at)
      continue;
    const lowering::KernelBuffer& from = graph.buffers[graph.buffers.id_of(value.name())];
    const lowering::KernelBuffer& to = graph.buffers[*node.writes.begin()];
    const bool is_plain = std::holds_alternative<lowering::PlainLayout>(from.layout) &&
                          std::holds_alternative<lowering::PlainLayout>(to.layout);
    if (to.value && !from.value && is_plain && from.elements.sizes == to.elements.sizes)
      copied_.emplace(from.name(), to.value);
  }
}

const Tensor* RecordedBuffers::find(const lowering::KernelBuffer& buffer) const {
  const auto copied = copied_.find(buffer.name());
  const Value value = buffer.value ? buffer.value : copied != copied_.end() ? copied->second : Value();
  const auto found = value ? recorded_.find(value.data()) : recorded_.end();
  return found == recorded_.end() ? nullptr : std::get_if<Tensor>(&found->second);
}

}  // namespace tenon
