// choose_layouts.h — memory layouts of images and weights.
#pragma once

#include "lowering/lower_graph.h"
#include "rewrite/journal.h"

namespace tenon::schedule {

// Around convolutions, images are NHWC, so that vectors hold channels whatever the size of the image; they
// are zero-padded where windows reach beyond their edges; and weights are stored in the order in which they
// are read. Stages are rewritten accordingly. Buffers in `kept`, and those of host steps, keep the layout of
// the graph and are copied. Convolutions that are faster by Winograd (schedule/cpu/winograd.h) use it, where
// numerics allow.
void choose_layouts(lowering::LoweredGraph& lowered, const std::set<std::string>& kept,
                    NumericsBudget numerics, const Target& target);

}  // namespace tenon::schedule
