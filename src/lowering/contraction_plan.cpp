#include "lowering/contraction_plan.h"

namespace tenon::lowering {

using loops::Definition;

Dim GemmTile::lane_size(const Definition& sum) const {
  Dim size = 1;
  for (size_t i = first_lane_axis; i < sum.axes.size(); ++i)
    size = size * sum.axes[i].size;
  return size;
}

Dim GemmTile::row_size(const Definition& sum) const {
  Dim size = 1;
  for (size_t i = first_row_axis; i <= *row; ++i)
    size = size * sum.axes[i].size;
  return size;
}

}  // namespace tenon::lowering
