#include "schedule/cpu/gemm_indices.h"

#include "loops/contraction.h"

namespace tenon::schedule {

using loops::Scalar;

GemmIndices::GemmIndices(const loops::Definition& sum, lowering::GemmTile tile,
                         std::optional<lowering::PackedB> packed_b, std::optional<lowering::PackedA> packed_a)
    : sum_(sum), packed_b_(std::move(packed_b)), packed_a_(std::move(packed_a)), tile_(std::move(tile)) {
  if (tile_.row) {
    const loops::Product product = loops::match_products(sum.values.front()).front();
    along_ = product.operand(tile_.along);
    across_ = product.operand(1 - tile_.along);
  }
}

std::vector<size_t> GemmIndices::outer_axes() const {
  std::vector<size_t> axes;
  for (size_t i = 0; i < tile_.first_lane_axis; ++i)
    if (!tile_.row || i < tile_.first_row_axis || i > *tile_.row)
      axes.push_back(i);
  return axes;
}

std::vector<size_t> GemmIndices::axes_within_panel() const {
  std::vector<size_t> axes;
  for (size_t i : outer_axes())
    if (!loops::mentions(*along_, sum_.axes[i].variable))
      axes.push_back(i);
  return axes;
}

bool GemmIndices::fills_lanes() const {
  return tile_.nr == 1 || (group_size().is_constant() && *group_size().constant() % tile_.nr == 0);
}
bool GemmIndices::fills_rows() const {
  return tile_.mr == 1 || (row_size().is_constant() && *row_size().constant() % tile_.mr == 0);
}

Dim GemmIndices::group() const {
  return tile_.groups == 1 ? Dim(0)
                           : floor_div(Dim::symbol(kLanesVariable), ceil_div(group_size(), tile_.nr));
}

Dim GemmIndices::first_lane() const {
  const Dim at = (Dim::symbol(kLanesVariable) - group() * ceil_div(group_size(), tile_.nr)) * tile_.nr;
  // The last block is shifted back to be whole; what it recomputes is the same.
  return group() * group_size() + (fills_lanes() ? at : min(at, group_size() - tile_.nr));
}

// Of this block. A partial last block is shifted back, so that its rows have the stride of the others; where
// their number is dynamic, it repeats the last row.
Dim GemmIndices::row(bool may_leave) const {
  const Dim first = Dim::symbol(kRowsVariable) * tile_.mr, number = Dim::symbol(kRowVariable);
  if (fills_rows())
    return first + number;
  if (row_size().is_constant())
    return min(first, row_size() - tile_.mr) + number;
  return may_leave ? first + number : min(first + number, row_size() - 1);
}

Dim GemmIndices::is_own_row() const {
  return row_size().is_constant() ? row(true) - Dim::symbol(kRowsVariable) * tile_.mr
                                  : row_size() - 1 - row(true);
}

Scalar GemmIndices::placed(const Scalar& scalar, bool may_leave) const {
  return placed_at(scalar, may_leave, first_lane() + Dim::symbol(kLaneVariable));
}

Scalar GemmIndices::placed_across() const {
  return tile_.both_along ? placed(*across_, false) : placed_in_first_lane(*across_);
}

Scalar GemmIndices::placed_in_first_lane(const Scalar& across) const {
  return placed_at(across, false, tile_.groups == 1 ? first_lane() : group() * group_size());
}

Scalar GemmIndices::placed_at(const Scalar& scalar, bool may_leave, const Dim& position) const {
  std::map<std::string, Dim> at;
  place_in_axes(at, position, tile_.first_lane_axis, sum_.axes.size());
  if (tile_.row)
    place_in_axes(at, row(may_leave), tile_.first_row_axis, *tile_.row + 1);
  return placed_in_panels(scalar.substitute(at));
}

void GemmIndices::place_in_axes(std::map<std::string, Dim>& at, Dim position, size_t first,
                                size_t end) const {
  for (size_t i = end; i-- > first;) {
    const Dim outer = i == first ? Dim(0) : floor_div(position, sum_.axes[i].size);
    at.emplace(sum_.axes[i].variable, position - outer * sum_.axes[i].size);
    position = outer;
  }
}

// Loads of packed operands, from the panel and row block of this tile; see PackedB and PackedA.
Scalar GemmIndices::placed_in_panels(const Scalar& scalar) const {
  if (!packed_b_)
    return scalar;
  return loops::replace_loads(scalar, [&](const Scalar& load) {
    std::vector<Scalar> place = load.operands();
    if (packed_a_ && load.name() == packed_a_->buffer) {
      place.front() = Scalar::index(Dim::symbol(kRowsVariable));
      place.back() = Scalar::index(Dim::symbol(kRowVariable));
      return Scalar::load(load.name(), load.dtype(), std::move(place));
    }
    if (load.name() != packed_b_->buffer)
      return load;
    place.back() = Scalar::index(Dim::symbol(kLaneVariable));
    place[place.size() - 2 - sum_.reduced.size()] = Scalar::index(Dim::symbol(kLanesVariable));
    return Scalar::load(load.name(), load.dtype(), std::move(place));
  });
}

std::vector<Scalar> GemmIndices::place_of_sum() const {
  std::vector<Scalar> place;
  if (tile_.row)
    place.push_back(Scalar::index(Dim::symbol(kRowVariable)));
  place.push_back(Scalar::index(Dim::symbol(kLaneVariable)));
  return place;
}

}  // namespace tenon::schedule
