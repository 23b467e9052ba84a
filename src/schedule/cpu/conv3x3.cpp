#include "schedule/cpu/conv3x3.h"

#include <algorithm>

#include "lowering/image_access.h"
#include "lowering/image_layout.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Scalar;
using lowering::is_zero;
using lowering::kFirstSpatial;
using lowering::LoweredGraph;
using lowering::padded_load;

namespace {

// Whether the elements of the image are multiplied as they are.
bool multiplies_alone(const Definition& definition, const Scalar& image,
                      const std::map<std::string, Buffer>& buffers) {
  return std::ranges::any_of(definition.values.front().operands(), [&](const Scalar& factor) {
    return factor == image || (padded_load(factor, buffers) && factor.operands()[1] == image);
  });
}

bool is_axis(const std::vector<Axis>& axes, const Scalar& index) {
  return loops::axis_of(axes, index).has_value();
}

// The size of the axis that an index is.
std::optional<int64_t> size_along(const std::vector<Axis>& axes, const Scalar& index) {
  const std::optional<size_t> axis = loops::axis_of(axes, index);
  return axis ? axes[*axis].size.constant() : std::nullopt;
}

}  // namespace

const Scalar* find_weights(const Definition& definition, const LoweredGraph& lowered) {
  for (const Scalar& factor : definition.values.front().operands())
    if (factor.kind() == Scalar::Kind::Load && lowered.is_constant(factor.name()))
      return &factor;
  return nullptr;
}

std::optional<Conv3x3> match_conv3x3(const Definition& definition, const Scalar& image, const Scalar* weights,
                                     const std::map<std::string, Buffer>& buffers) {
  const std::vector<Scalar>&from = image.operands(), &to = definition.at;
  if (weights == nullptr || to.size() < kFirstSpatial + 2 || image.dtype() != DType::F32 ||
      weights->dtype() != DType::F32 || !is_zero(definition.initial.front()) ||
      !multiplies_alone(definition, image, buffers))
    return std::nullopt;
  // [filter, channel, and the place in a window], of which each is an axis of its own.
  const std::vector<Scalar>& of = weights->operands();
  if (of.size() != to.size() || of[0] != to[1] || !is_axis(definition.axes, of[0]) || of[1] != from[1] ||
      !is_axis(definition.reduced, of[1]))
    return std::nullopt;
  const size_t down = to.size() - 2, across = to.size() - 1;
  for (const size_t dim : {down, across}) {
    const Dim beyond = from[dim].index() - to[dim].index() - of[dim].index();
    const std::optional<size_t> place = loops::axis_of(definition.reduced, of[dim]);
    if (size_along(definition.reduced, of[dim]) != 3 || !beyond.is_constant() ||
        std::any_of(from.begin(), from.begin() + static_cast<int64_t>(down), [&](const Scalar& index) {
          return loops::mentions(index, definition.reduced[*place].variable);
        }))
      return std::nullopt;
  }
  size_t axes = 3;  // that are summed over: these, the channels, and those of planes
  int64_t planes = 1;
  for (size_t dim = kFirstSpatial; dim < down; ++dim) {
    if (!size_along(definition.axes, to[dim]))
      return std::nullopt;
    if (of[dim] == Scalar::index(0))  // of one plane
      continue;
    const std::optional<int64_t> seen = size_along(definition.reduced, of[dim]);
    if (!seen)
      return std::nullopt;
    planes *= *seen;
    ++axes;
  }
  const std::optional<int64_t> height = size_along(definition.axes, to[down]),
                               width = size_along(definition.axes, to[across]),
                               filters = size_along(definition.axes, to[1]),
                               channels = size_along(definition.reduced, of[1]);
  if (axes != definition.reduced.size() || !height || !width || !filters ||
      channels.value_or(0) < kLeastChannels)  // fewer do not come last
    return std::nullopt;
  return Conv3x3{
      .height = *height, .width = *width, .channels = *channels, .filters = *filters, .planes = planes};
}

}  // namespace tenon::schedule
