// order.h — whether a kernel that was rearranged still computes what it did.
//
// Every statement that computes runs many times, once for each value of the loops around it. Two of these
// runs depend on each other if they use the same element and at least one writes it; what they compute stays
// the same as long as such runs keep their order. So a rearrangement, which runs the same statements for the
// same values, each once, is legal if no two dependent runs change places. This holds for any rearrangement
// whatever, so one check serves all of them; the integer set library decides it for all sizes at once.
//
// To know which run became which, the statements are numbered before (`stamp`), each with the variables of
// the loops around it; what moves a statement rewrites these as it rewrites its indices.
//
//   for t in 1..8 {
//     for i in 1..9 {
//       y[t,i] = y[t-1,i]      origin: statement 0 at (t, i)
//     }
//   }
//
// skewed by 1:
//
//   for t in 1..8 {
//     for i in t+1..t+9 {
//       y[t,i-t] = y[t-1,i-t]  origin: statement 0 at (t, i-t)
//     }
//   }
//
// Only statements are looked at whose order has changed, two by two: the runs of both that use one element,
// that came in one order, and come in the other. Each of these is a condition, so that the library has
// to say whether a set is empty and never what is left of one without another, which may take it long.
//
// Runs that combine into one place by the same function may change places among themselves, if that is built
// in (+, max, …) or said to be unordered: that differs by rounding alone. But no two of them may run at once.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// The kernel, with its statements numbered.
Kernel stamp(Kernel kernel);
// The kernel, with those of its statements numbered that have no number yet, from `first` on.
Kernel stamp_new(Kernel kernel, int64_t first);
// `after`, made from the stamped `kernel`, with the origins that statements of the kernel itself had: of an
// earlier form, if any, in terms of the loops of now.
Kernel restore_origins(const Kernel& kernel, Kernel after);

// Why `after`, made from the stamped `before`, is not the same: in words, with one example. Nothing where it
// is.
std::optional<std::string> find_violation(const Kernel& before, const Kernel& after);

}  // namespace tenon::loops
