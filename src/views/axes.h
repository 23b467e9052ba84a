// axes.h — axes as other tools count them: from the front.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

inline int64_t from_the_front(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

inline std::vector<int64_t> all_from_the_front(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes)
    axis = from_the_front(axis, rank);
  return axes;
}

}  // namespace tenon
