#include "lowering/unpack.h"

#include <algorithm>
#include <cstring>

#include "passes/target/constant_pieces.h"

namespace tenon::lowering {

using loops::Axis;
using loops::Definition;
using loops::Scalar;

namespace {

// --- constants in the layout of their buffer ---

// The tensor of these extents whose elements are those of another: at(index) says which.
template <class At>
Tensor gathered(const Tensor& from, const Extents& extents, const At& at) {
  Tensor to(from.dtype(), extents);
  const Extents strides = row_major_strides(from.extents());
  const auto bytes = static_cast<size_t>(from.element_size());
  Extents index(extents.size());
  for (int64_t i = 0; i < to.count(); ++i) {
    int64_t left = i;
    for (size_t dim = extents.size(); dim-- > 0; left /= extents[dim])
      index[dim] = left % extents[dim];
    const Extents source = at(index);
    int64_t offset = 0;
    for (size_t dim = 0; dim < source.size(); ++dim)
      offset += source[dim] * strides[dim];
    std::memcpy(to.mutable_bytes().data() + static_cast<size_t>(i) * bytes,
                from.bytes().data() + static_cast<size_t>(offset) * bytes, bytes);
  }
  return to;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  Extents extents;
  for (size_t dim : order)
    extents.push_back(tensor.extents()[dim]);
  return gathered(tensor, extents, [&](const Extents& index) {
    Extents source(index.size());
    for (size_t i = 0; i < order.size(); ++i)
      source[order[i]] = index[i];
    return source;
  });
}

Tensor packed(const Tensor& tensor, const PackedBLayout& layout) {
  const size_t lane_at = layout.order.size() - 1 - layout.reduced;
  Extents extents;
  for (size_t dim : layout.order)
    extents.push_back(tensor.extents()[dim]);
  extents[lane_at] = layout.groups * layout.panels_of_group(tensor.extents()[layout.lane_dim()]);
  extents.push_back(layout.lanes);
  return gathered(tensor, extents,
                  [&](const Extents& index) { return index_in_weights(layout, tensor.extents(), index); });
}

// Consecutive elements along a dimension as words of 32 bits.
Tensor in_words(const Tensor& tensor, size_t dim) {
  const int64_t each = info(DType::I32).bytes / tensor.element_size();
  Extents extents = tensor.extents();
  extents[dim] /= each;
  Extents by_element = extents;
  by_element.push_back(each);
  const Tensor elements = gathered(tensor, by_element, [&](const Extents& index) {
    Extents source(index.begin(), index.end() - 1);
    source[dim] = source[dim] * each + index.back();
    return source;
  });
  return Tensor(DType::I32, extents, std::make_shared<Tensor>(elements), elements.bytes());
}

// --- definitions that read packed operands where their elements are ---

// The block of a row or lane, and its place there, where the last block begins so early that it is whole.
std::pair<Dim, Dim> split_in_blocks(const Dim& index, const Dim& all, int64_t block) {
  const Dim number = floor_div(index, block);
  return {number, index - min(number * block, all - block)};
}

// Stages read the panels as if all lanes were in the first, and row blocks as if all rows were.
class Unpacking {
 public:
  Unpacking(const KernelGraph& graph, const Stage& stage) : graph_(graph), stage_(stage) {}

  Definition run() const {
    Definition definition = stage_.definition;
    for (Scalar& value : definition.values)
      value = loops::replace_loads(value, [&](const Scalar& load) {
        if (stage_.packed_b && load.name() == stage_.packed_b->buffer)
          return read_panels(load);
        if (stage_.packed_a && load.name() == stage_.packed_a->buffer)
          return read_row_blocks(load);
        return load;
      });
    return definition;
  }

 private:
  Scalar read_panels(const Scalar& load) const {
    const BufferTable& buffers = graph_.buffers;
    const auto& layout = std::get<PackedWeights>(buffers[buffers.id_of(load.name())].layout);
    const int64_t
        lanes =
            *buffers[layout.weights].value.shape()[static_cast<int64_t>(layout.order.lane_dim())].constant(),
        group_lanes = lanes / layout.order.groups;
    std::vector<Scalar> at = load.operands();
    const Dim lane = at.back().index(), group = floor_div(lane, group_lanes);
    const auto [panel, place] = split_in_blocks(lane - group * group_lanes, group_lanes, layout.order.lanes);
    at[at.size() - 2 - layout.order.reduced] =
        Scalar::index(group * layout.order.panels_of_group(lanes) + panel);
    at.back() = Scalar::index(place);
    return Scalar::load(load.name(), load.dtype(), std::move(at));
  }

  Scalar read_row_blocks(const Scalar& load) const {
    std::map<std::string, Dim> last;
    for (const Axis& axis : stage_.definition.axes)
      last.emplace(axis.variable, axis.size - 1);
    const Dim index = load.operands().back().index();
    const auto [block, row] = split_in_blocks(index, index.substitute(last) + 1, stage_.packed_a->rows);
    return Scalar::load(load.name(), load.dtype(),
                        {Scalar::index(block), load.operands()[1], Scalar::index(row)});
  }

  const KernelGraph& graph_;
  const Stage& stage_;
};

}  // namespace

bool is_readable_constant(const KernelGraph& graph, BufferId id) {
  const KernelBuffer& buffer = graph.buffers[id];
  const auto* panels = std::get_if<PackedWeights>(&buffer.layout);
  return buffer.home == Home::Constant && (!buffer.made_of() || (panels != nullptr && !panels->split));
}

Tensor constant_elements(const KernelGraph& graph, BufferId id) {
  const KernelBuffer& source = graph.buffers[graph.buffers[id].made_of().value_or(id)];
  const Tensor whole = join(*pieces_of(source.value));
  return source.vnni_dim ? in_words(whole, *source.vnni_dim) : whole;
}

Tensor constant_in_memory(const KernelGraph& graph, BufferId id) {
  const Layout& layout = graph.buffers[id].layout;
  const Tensor elements = constant_elements(graph, id);
  if (const auto* panels = std::get_if<PackedWeights>(&layout))
    return packed(elements, panels->order);
  if (const auto* order = std::get_if<PermutedLayout>(&layout))
    return permuted(elements, order->order);
  return elements;
}

// The last panel of each group begins so early that it is whole.
Extents index_in_weights(const PackedBLayout& layout, const Extents& weights,
                         std::span<const int64_t> index) {
  const int64_t lanes = weights[layout.lane_dim()], group_lanes = lanes / layout.groups,
                panels = layout.panels_of_group(lanes),
                panel = index[layout.order.size() - 1 - layout.reduced];
  Extents source(layout.order.size());
  for (size_t i = 0; i < layout.order.size(); ++i)
    source[layout.order[i]] = index[i];
  source[layout.lane_dim()] = panel / panels * group_lanes +
                              std::min(panel % panels * layout.lanes, group_lanes - layout.lanes) +
                              index.back();
  return source;
}

Definition readable_definition(const KernelGraph& graph, const Stage& stage) {
  const auto* panels =
      stage.packed_b
          ? std::get_if<PackedWeights>(&graph.buffers[graph.buffers.id_of(stage.packed_b->buffer)].layout)
          : nullptr;
  const bool as_written = stage.winograd_tile || (panels != nullptr && panels->split);
  return as_written ? *stage.as_written : Unpacking(graph, stage).run();
}

}  // namespace tenon::lowering
