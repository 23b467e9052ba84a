// choose_layouts.h — how images lie in memory.
#pragma once

#include "lowering/lower_graph.h"
#include "rewrite/journal.h"

namespace tenon::schedule {

// Around convolutions, the channels of a pixel lie side by side, so that vectors hold channels whatever the
// size of the image is; images have zeros around them where windows reach beyond their edges; and weights lie
// in the order in which they are read. Stages are rewritten for it. What the caller, who gets `kept`, or a
// step that is no stage sees keeps the order that the graph gives it, and is copied.
// Convolutions that take less time in tiles (schedule/cpu/winograd.h) are computed so, where they may round
// otherwise.
void choose_layouts(lowering::LoweredGraph& lowered, const std::set<std::string>& kept,
                    NumericsBudget numerics, const Target& target);

}  // namespace tenon::schedule
