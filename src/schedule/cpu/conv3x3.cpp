#include "schedule/cpu/conv3x3.h"

#include <algorithm>

#include "loops/contraction.h"
#include "lowering/image_access.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Definition;
using loops::mentions;
using loops::Scalar;
using lowering::is_zero;
using lowering::KernelGraph;
using lowering::kFirstSpatial;

namespace {

// The axis along which an index moves; nothing where there are several, or none.
const Axis* only_axis_in(const std::vector<Axis>& axes, const Scalar& index) {
  const Axis* found = nullptr;
  for (const Axis& axis : axes)
    if (mentions(index, axis.variable)) {
      if (found != nullptr)
        return nullptr;
      found = &axis;
    }
  return found;
}

// The size of the axis that an index is.
std::optional<int64_t> size_along(const std::vector<Axis>& axes, const Scalar& index) {
  const std::optional<size_t> axis = loops::axis_of(axes, index);
  return axis ? axes[*axis].size.constant() : std::nullopt;
}
// The size of the axis that an index moves along.
std::optional<int64_t> size_of_move(const std::vector<Axis>& axes, const Scalar& index) {
  const Axis* axis = only_axis_in(axes, index);
  return axis != nullptr ? axis->size.constant() : std::nullopt;
}

class Matcher {
 public:
  Matcher(const Definition& sum, const KernelGraph& graph) : sum_(sum), graph_(graph) {}

  std::optional<MatchedConv3x3> run() {
    if (!find_operands() || !has_channels_last() || !has_window_of_3x3())
      return std::nullopt;
    const std::optional<int64_t> planes = planes_of_window();
    const size_t dims = sum_.at.size();
    const std::optional<int64_t> height = size_of_move(sum_.axes, sum_.at[dims - 3]),
                                 width = size_of_move(sum_.axes, sum_.at[dims - 2]),
                                 filters = size_along(sum_.axes, of_[0]),
                                 channels = size_along(sum_.reduced, of_[1]);
    if (!planes || !height || !width || !filters || channels.value_or(0) < kLeastChannels)
      return std::nullopt;
    return MatchedConv3x3{
        {.height = *height, .width = *width, .channels = *channels, .filters = *filters, .planes = *planes},
        *image_,
        *weights_,
        of_};
  }

 private:
  const std::vector<Scalar>& from() const { return image_->operands(); }
  // Dimensions of an image in memory are [batch, planes…, height, width, channels], and of weights in the
  // graph [filters, channels, planes…, height, width].
  static size_t of_weights(size_t dim) { return dim + 1; }

  bool find_operands() {
    const std::optional<loops::Contraction> contraction = match_contraction(sum_);
    if (!contraction || !contraction->product().multiplies() || sum_.at.size() < kFirstSpatial + 2 ||
        !is_zero(sum_.initial.front()))
      return false;
    for (const size_t i : {0, 1}) {
      const Scalar &weights = contraction->product().operand(i),
                   &image = contraction->product().operand(1 - i);
      if (weights.kind() == Scalar::Kind::Load && image.kind() == Scalar::Kind::Load &&
          graph_.is_constant(weights.name()) && is_image(image.name()) &&
          is_image(sum_.results.front().name) && image.dtype() == DType::F32 &&
          weights.dtype() == DType::F32 && image.operands().size() == sum_.at.size() &&
          weights.operands().size() == sum_.at.size()) {
        image_ = image;
        weights_ = weights;
        find_weight_indices();
        return true;
      }
    }
    return false;
  }

  bool is_image(const std::string& buffer) const {
    return graph_.buffers[graph_.buffers.id_of(buffer)].is_image();
  }

  void find_weight_indices() {
    of_ = weights_->operands();
    const lowering::Layout& layout = graph_.buffers[graph_.buffers.id_of(weights_->name())].layout;
    if (const auto* permuted = std::get_if<lowering::PermutedLayout>(&layout))
      for (size_t i = 0; i < of_.size(); ++i)
        of_[permuted->order[i]] = weights_->operands()[i];
  }

  bool has_channels_last() const {
    return from().front() == sum_.at.front() && of_[0] == sum_.at.back() && of_[1] == from().back() &&
           loops::axis_of(sum_.axes, of_[0]) && loops::axis_of(sum_.reduced, of_[1]);
  }

  // With stride 1, along the height and the width, which no other index of the image mentions.
  bool has_window_of_3x3() const {
    const size_t dims = sum_.at.size();
    for (const size_t dim : {dims - 3, dims - 2}) {
      const Scalar& place = of_[of_weights(dim)];
      if (size_along(sum_.reduced, place) != 3 || from()[dim].kind() != Scalar::Kind::Index ||
          !graph_.buffers.at(image_->name()).sizes[dim].is_constant() ||
          !(from()[dim].index() - sum_.at[dim].index() - place.index()).is_constant())
        return false;
      const std::string& variable = sum_.reduced[*loops::axis_of(sum_.reduced, place)].variable;
      for (size_t other = 0; other < dims; ++other)
        if (other != dims - 3 && other != dims - 2 && mentions(from()[other], variable))
          return false;
    }
    return true;
  }

  // As many as a window reads; nothing where other axes than those of window and channels are reduced.
  std::optional<int64_t> planes_of_window() const {
    size_t reduced = 3;
    int64_t planes = 1;
    for (size_t dim = 1; dim + 3 < sum_.at.size(); ++dim) {
      const Axis* axis = only_axis_in(sum_.axes, sum_.at[dim]);
      if (axis == nullptr || only_axis_in(sum_.axes, from()[dim]) != axis)
        return std::nullopt;
      if (of_[of_weights(dim)] == Scalar::index(0))  // of one plane
        continue;
      const std::optional<int64_t> seen = size_along(sum_.reduced, of_[of_weights(dim)]);
      if (!seen)
        return std::nullopt;
      planes *= *seen;
      ++reduced;
    }
    return reduced == sum_.reduced.size() ? std::optional(planes) : std::nullopt;
  }

  const Definition& sum_;
  const KernelGraph& graph_;
  std::optional<Scalar> image_, weights_;
  std::vector<Scalar> of_;  // the indices of the weights, in the order of the graph
};

}  // namespace

std::optional<MatchedConv3x3> match_conv3x3(const Definition& definition, const KernelGraph& graph) {
  return Matcher(definition, graph).run();
}

}  // namespace tenon::schedule
