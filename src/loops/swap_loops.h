// swap_loops.h — two loops, one within the other, in the other order.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// The loops without what is in them: `outer` becomes the inner one, and the other way round. Bounds that
// depend on the other loop change:
//
//   for i in 0..8 {  for j in i..2*i+1 {    →    for j in 0..15 {  for i in ceil(j/2)..min(8,j+1) {
//
// Declined where there are no such bounds.
void swap_loops(Loop& outer, Loop& inner);

}  // namespace tenon::loops
