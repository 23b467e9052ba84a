// gemm_indices.h — the indices of a tile of a contraction, in terms of its loops.
#pragma once

#include "lowering/contraction_plan.h"

namespace tenon::schedule {

// Loop variables, which end in a number: no size of the user's does when it gets here.
constexpr const char *kRowsVariable = "rows0", *kRowVariable = "row0", *kLanesVariable = "lanes0",
                     *kLaneVariable = "lane0";

class GemmIndices {
 protected:
  GemmIndices(const loops::Definition& sum, lowering::GemmTile tile,
              std::optional<lowering::PackedB> packed_b = {}, std::optional<lowering::PackedA> packed_a = {});

  Dim lane_size() const { return tile_.lane_size(sum_); }
  Dim row_size() const { return tile_.row_size(sum_); }
  Dim row_blocks() const { return ceil_div(row_size(), tile_.mr); }
  Dim group_size() const { return floor_div(lane_size(), tile_.groups); }
  // In each group, except one that overlaps the one before.
  Dim whole_panels_of_group() const { return floor_div(group_size(), tile_.nr); }
  Dim whole_panels() const { return whole_panels_of_group() * tile_.groups; }

  // The axes besides rows and lanes; those along which the same panel is read.
  std::vector<size_t> outer_axes() const;
  std::vector<size_t> axes_within_panel() const;

  // Whether tiles divide the lanes and the rows exactly.
  bool fills_lanes() const;
  bool fills_rows() const;
  // At least 0 where a row belongs to this block alone.
  Dim is_own_row() const;

  // The expression with the indices of this tile for the axes of rows and lanes.
  loops::Scalar placed(const loops::Scalar& scalar, bool may_leave) const;
  // The factor across the lanes; where it is the same in all of a group, as it is in the first.
  loops::Scalar placed_across() const;
  loops::Scalar placed_in_first_lane(const loops::Scalar& across) const;
  // Where a position among those of all these axes is along each.
  void place_in_axes(std::map<std::string, Dim>& at, Dim position, size_t first, size_t end) const;
  std::vector<loops::Scalar> place_of_sum() const;

  const loops::Definition& sum_;
  const std::optional<lowering::PackedB> packed_b_;
  const std::optional<lowering::PackedA> packed_a_;
  lowering::GemmTile tile_;  // of the block that is being made
  // Where there are rows: the operand indexed by the lanes, and the one indexed by the rows.
  std::optional<loops::Scalar> along_, across_;

 private:
  Dim group() const;
  Dim first_lane() const;
  Dim row(bool may_leave) const;
  loops::Scalar placed_at(const loops::Scalar& scalar, bool may_leave, const Dim& position) const;
  loops::Scalar placed_in_panels(const loops::Scalar& scalar) const;
};

}  // namespace tenon::schedule
