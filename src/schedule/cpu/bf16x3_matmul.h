// bf16x3_matmul.h — products of f32 by instructions that multiply tiles of bf16, without loss.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// An f32 is the sum of three bf16: the first half of its bits, that of what is then left, and the rest. The
// product of two is the sum of nine products of their parts, of which those of the first parts with all, and
// of the second with each other, leave out less than f32 rounds away. Where instructions multiply tiles of
// bf16, computing these six may take less time than one in f32. It often does not, where two threads share
// the unit that does so, or where factors come from memory, of which they take half as much again: so it is
// for those who measured it.
//
// Lets products whose weights lie in panels do so, where that was chosen: an item of its own for each part
// computes those of the other factor, and weights are split when the program is compiled.
void bf16x3_matmul(lowering::LoweredGraph& lowered, const Target& target);

}  // namespace tenon::schedule
