// transform.h — loop nests rearranged. Each function takes a kernel and gives another, or says why not: what
// a request needs and does not find, or the dependence that forbids it (order.h).
//
// Loops are named by their variables. What is not asked for right (a loop that is not there, a size below 1)
// is the user's fault.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// The kernel rearranged, or the reason why it was not.
struct Transformed {
  std::optional<Kernel> kernel;
  std::string declined;
};

// for i in 0..100 → for i_o in 0..100 step 8 { for i in i_o..min(i_o+8,100)
Transformed split(const Kernel& kernel, const std::string& loop, int64_t size);
// Splits loops within each other, and puts the outer halves around all inner ones, and around the loops
// between them that are not named. Statements beside the inner loops are given loops of their own.
Transformed tile(const Kernel& kernel, const std::vector<std::string>& loops,
                 const std::vector<int64_t>& sizes);
// Loops within each other in this order, outermost first.
Transformed permute(const Kernel& kernel, const std::vector<std::string>& loops);
// `times` iterations at once, and a loop for the rest; without `times`, all iterations.
Transformed unroll(const Kernel& kernel, const std::string& loop, std::optional<int64_t> times);
Transformed vectorise(const Kernel& kernel, const std::string& loop);
Transformed parallelise(const Kernel& kernel, const std::string& loop);
// Two loops of the same range, one behind the other, as one.
Transformed fuse(const Kernel& kernel, const std::string& first, const std::string& second);
// A loop for each statement within.
Transformed fission(const Kernel& kernel, const std::string& loop);
// The inner loop begins `factor` later in each iteration of the outer: i, j → i, j + factor·i.
Transformed skew(const Kernel& kernel, const std::string& outer, const std::string& inner, int64_t factor);
// One loop below `at`, one from there on; guards that then always hold, or never, go.
Transformed divide(const Kernel& kernel, const std::string& loop, const Dim& at);
// The first `iterations` in a loop of their own, or the last, where that is below 0.
Transformed peel(const Kernel& kernel, const std::string& loop, int64_t iterations);
// What each iteration of the loop reads of a buffer is copied before, close together.
Transformed cache(const Kernel& kernel, const std::string& buffer, const std::string& loop);
// A local buffer loses the dimensions of which each iteration of the loops around uses one element.
Transformed shrink(const Kernel& kernel, const std::string& buffer);

// "tile(i,j,2,2); unroll(j,4)": the kernel after each step; the last may have been declined.
struct Step {
  std::string text;
  Transformed result;
};
std::vector<Step> apply_steps(const Kernel& kernel, std::string_view steps);

}  // namespace tenon::loops
