#include "fusion/index_constants.h"

#include <algorithm>

#include "ops/data.h"
#include "tensor/wide.h"

namespace tenon::fusion {

using loops::Scalar;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kMostElements = 1 << 20;  // that are looked at

// first + steps[0] * i0 + steps[1] * i1 + …
struct Progression {
  int64_t first = 0;
  std::vector<int64_t> steps;
};

std::optional<Progression> find_progression(const Tensor& tensor) {
  const Extents& extents = tensor.extents();
  const std::vector<int64_t> values = widen<int64_t>(tensor);
  Progression progression{.first = values.front(), .steps = std::vector<int64_t>(extents.size())};
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0; stride *= extents[i])
    if (extents[i] > 1)
      progression.steps[i] = values[static_cast<size_t>(stride)] - values.front();
  constexpr int64_t kFar = int64_t{1} << 40;
  const auto is_near = [&](int64_t value) { return value > -kFar && value < kFar; };
  if (!std::ranges::all_of(values, is_near))
    return std::nullopt;
  for (size_t element = 0; element < values.size(); ++element) {
    auto rest = static_cast<int64_t>(element);
    int64_t expected = progression.first;
    for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
      expected += rest % extents[i] * progression.steps[i];
    if (values[element] != expected)
      return std::nullopt;
  }
  return progression;
}

std::optional<Progression> find_progression(const KernelGraph& graph, const KernelBuffer& buffer) {
  if (buffer.elements.dtype != DType::I64 || buffer.elements.sizes.empty() || !buffer.value ||
      !graph.is_constant(buffer.name()))
    return std::nullopt;
  const Literal* literal = literal_of(buffer.value);
  if (literal == nullptr || literal->is_deferred() || literal->count() < 1 ||
      literal->count() > kMostElements)
    return std::nullopt;
  return find_progression(literal->tensor());
}

}  // namespace

void index_constants(KernelGraph& graph) {
  std::map<std::string, Progression> progressions;
  for (const KernelBuffer& buffer : graph.buffers)
    if (std::optional<Progression> progression = find_progression(graph, buffer))
      progressions.emplace(buffer.name(), std::move(*progression));
  if (progressions.empty())
    return;
  const auto as_index = [&](const Scalar& load) {
    const auto found = progressions.find(load.name());
    if (found == progressions.end())
      return load;
    Dim index = found->second.first;
    for (size_t i = 0; i < load.operands().size(); ++i) {
      if (load.operands()[i].kind() != Scalar::Kind::Index)
        return load;
      index = index + load.operands()[i].index() * found->second.steps[i];
    }
    return Scalar::index(index);
  };
  for (KernelNode& node : graph.nodes)
    if (node.stage) {
      for (Scalar& value : node.stage->definition.values)
        value = loops::replace_loads(value, as_index);
      update_reads(node, graph.buffers);
    }
}

}  // namespace tenon::fusion
