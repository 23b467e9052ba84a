// dimensions.h — lists of axes, and shapes that are partly those of an input.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tenon {

// The axes from `first` to before `end`.
std::vector<int64_t> axes_between(int64_t first, int64_t end);

// x in another shape, in which a 0 copies the dimension of x in that place, and -1 takes the rest.
Value reshape_copying(Value x, const std::vector<int64_t>& shape);

// [batch, spatial…, channels] as [batch, channels, spatial…], and back.
Value channels_first(Value x, int64_t rank);
Value channels_last(Value x, int64_t rank);

// y: [batch, channels, spatial…] + bias: [channels]; y itself where the bias is left out.
Value add_along_channels(Value y, Value bias, int64_t spatial_rank);

}  // namespace tenon
