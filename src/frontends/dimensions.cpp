#include "frontends/dimensions.h"

#include <algorithm>

#include "base/error.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"

namespace tenon {

std::vector<int64_t> axes_between(int64_t first, int64_t end) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < end; ++axis)
    axes.push_back(axis);
  return axes;
}

Value reshape_copying(Value x, const std::vector<int64_t>& shape) {
  return x.graph()
      .create("reshape", {{"x", x}, {"shape", int_vector(x.graph(), shape)}}, {{"allow_zero", false}})
      ->result();
}

namespace {

void check_has_channels(Value x, int64_t rank) {
  if (rank < 3)
    throw user_error("{} has rank {}, but must have a batch, channels and what they lie along", x.type(),
                     rank);
}

}  // namespace

Value channels_first(Value x, int64_t rank) {
  check_has_channels(x, rank);
  std::vector<int64_t> order = axes_between(0, rank);
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return transpose(x, order);
}

Value channels_last(Value x, int64_t rank) {
  check_has_channels(x, rank);
  std::vector<int64_t> order = axes_between(0, rank);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return transpose(x, order);
}

Value add_along_channels(Value y, Value bias, int64_t spatial_rank) {
  return bias ? y + unsqueeze(bias, axes_between(1, 1 + spatial_rank)) : y;
}

}  // namespace tenon
