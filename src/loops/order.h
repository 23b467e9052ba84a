// order.h — whether a kernel that was rearranged still computes what it did.
//
// Every statement that computes runs many times, once for each value of the loops around it. Two of these
// runs depend on each other if they use the same element and at least one writes it; what they compute stays
// the same as long as such runs keep their order. So a rearrangement is legal if it runs the same statements
// for the same values, each once, and no two dependent runs change places. This holds for any rearrangement
// whatever, so one check serves all of them; the integer set library decides it for all sizes at once.
//
// To know which run became which, the statements are numbered before (`stamp`), each with the variables of
// the loops around it; what moves a statement rewrites these as it rewrites its indices.
//
//   for i in 0..8 {            origin: statement 0 at (i)
//     y[i] = x[i]
//   }
//
// unrolled by 2:
//
//   for i in 0..8 step 2 {
//     y[i] = x[i]              origin: statement 0 at (i)
//     y[i+1] = x[i+1]          origin: statement 0 at (i+1)
//   }
//
// Runs that combine into one place by the same function may change places among themselves, if that is built
// in (+, max, …) or said to be unordered: that differs by rounding alone. But no two of them may run at once.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// The kernel, with its statements numbered.
Kernel stamp(Kernel kernel);
// The kernel without these numbers.
Kernel unstamp(Kernel kernel);

// Why `after`, made from the stamped `before`, is not the same: in words, with one example. Nothing where it
// is.
std::optional<std::string> find_violation(const Kernel& before, const Kernel& after);

}  // namespace tenon::loops
