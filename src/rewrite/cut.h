// cut.h — slices whose bounds are known, and the one way to write them.
//
// Axes are counted from the front, in order, and those that are taken whole are left out. Where the size is
// known, start and end are positions in it: f32[6] from -4 to 100 in steps of 3 is from 2 to 6.
#pragma once

#include "ir/graph.h"

namespace tenon {

struct Cut {
  int64_t axis, start, end, step = 1;
  friend auto operator<=>(const Cut&, const Cut&) = default;
};
using Cuts = std::vector<Cut>;

// What a slice takes; nothing where a bound is not known.
std::optional<Cuts> known_cuts(const Node& slice);

// The slice of x, made at the insertion point; x itself for no cuts.
Value cut(Value x, Cuts cuts);

// Whether the slice is what `cut` would make.
bool is_written_as_cut(const Node& slice, const Cuts& cuts);

// One cut of what another leaves, along the same axis; nothing where it takes sizes to tell.
std::optional<Cut> cut_again(const Cut& first, const Cut& second);

}  // namespace tenon
