#include "schedule/contraction_places.h"

namespace tenon {

using loops::Scalar;

bool ContractionPlaces::fills_lanes() const {
  return shape_.lanes == 1 || (group_size().is_constant() && *group_size().constant() % shape_.lanes == 0);
}
bool ContractionPlaces::fills_rows() const {
  return shape_.rows == 1 || (row_size().is_constant() && *row_size().constant() % shape_.rows == 0);
}

Dim ContractionPlaces::group() const {
  return shape_.groups == 1 ? Dim(0)
                            : floor_div(Dim::symbol(kLanesVariable), ceil_div(group_size(), shape_.lanes));
}

Dim ContractionPlaces::first_lane() const {
  const Dim at =
      (Dim::symbol(kLanesVariable) - group() * ceil_div(group_size(), shape_.lanes)) * shape_.lanes;
  // The last block goes back as far as it must to be whole; what it computes twice is the same.
  return group() * group_size() + (fills_lanes() ? at : min(at, group_size() - shape_.lanes));
}

// Of this block. A last one that is not whole goes back as far as it must, so that its rows are as far apart
// as those of others, or reads the last row again and again where running tells how many there are.
Dim ContractionPlaces::row(bool may_leave) const {
  const Dim first = Dim::symbol(kRowsVariable) * shape_.rows, number = Dim::symbol(kRowVariable);
  if (fills_rows())
    return first + number;
  if (row_size().is_constant())
    return min(first, row_size() - shape_.rows) + number;
  return may_leave ? first + number : min(first + number, row_size() - 1);
}

Dim ContractionPlaces::is_own_row() const {
  return row_size().is_constant() ? row(true) - Dim::symbol(kRowsVariable) * shape_.rows
                                  : row_size() - 1 - row(true);
}

Scalar ContractionPlaces::placed(const Scalar& scalar, bool may_leave) const {
  return placed_at(scalar, may_leave, first_lane() + Dim::symbol(kLaneVariable));
}

Scalar ContractionPlaces::placed_across() const {
  return shape_.both_along ? placed(*shape_.across, false) : placed_in_first_lane(*shape_.across);
}

Scalar ContractionPlaces::placed_in_first_lane(const Scalar& across) const {
  return placed_at(across, false, shape_.groups == 1 ? first_lane() : group() * group_size());
}

Scalar ContractionPlaces::placed_at(const Scalar& scalar, bool may_leave, const Dim& position) const {
  std::map<std::string, Dim> at;
  place_in_axes(at, position, shape_.first_lane_axis, sum_.axes.size());
  if (shape_.row)
    place_in_axes(at, row(may_leave), shape_.first_row_axis, *shape_.row + 1);
  return placed_in_panels(scalar.substitute(at));
}

void ContractionPlaces::place_in_axes(std::map<std::string, Dim>& at, Dim position, size_t first,
                                      size_t end) const {
  for (size_t i = end; i-- > first;) {
    const Dim outer = i == first ? Dim(0) : floor_div(position, sum_.axes[i].size);
    at.emplace(sum_.axes[i].variable, position - outer * sum_.axes[i].size);
    position = outer;
  }
}

// What lies in panels, in that of this block, and rows in theirs; see Panels and RowBlocks.
Scalar ContractionPlaces::placed_in_panels(const Scalar& scalar) const {
  if (!panels_)
    return scalar;
  return loops::replace_loads(scalar, [&](const Scalar& load) {
    std::vector<Scalar> place = load.operands();
    if (row_blocks_ && load.name() == row_blocks_->buffer) {
      place.front() = Scalar::index(Dim::symbol(kRowsVariable));
      place.back() = Scalar::index(Dim::symbol(kRowVariable));
      return Scalar::load(load.name(), load.dtype(), std::move(place));
    }
    if (load.name() != panels_->buffer)
      return load;
    place.back() = Scalar::index(Dim::symbol(kLaneVariable));
    place[place.size() - 2 - sum_.reduced.size()] = Scalar::index(Dim::symbol(kLanesVariable));
    return Scalar::load(load.name(), load.dtype(), std::move(place));
  });
}

std::vector<Scalar> ContractionPlaces::place_of_sum() const {
  std::vector<Scalar> place;
  if (shape_.row)
    place.push_back(Scalar::index(Dim::symbol(kRowVariable)));
  place.push_back(Scalar::index(Dim::symbol(kLaneVariable)));
  return place;
}

}  // namespace tenon
