// conditioning.h — what a model makes of rounding: whether results that differ do so by no more than those of
// the model itself do, once the floats on their way move by a rounding step.
#pragma once

#include <random>
#include <span>

#include "ir/evaluate.h"

namespace tenon {

// A float tensor, each element moved up or down by a rounding step at random. Integers, be they of a float
// dtype, are exact however they are computed, and stay; so does everything that is no float of 16 bits or
// more.
Datum nudged(const Datum& datum, std::mt19937_64& random);

// The outputs of so many runs of the model on these inputs, in each of which the inputs, the weights and
// every float that is computed of inputs are nudged. A model that draws random numbers, or does not run so,
// has none.
constexpr int64_t kNudgedRuns = 4;
std::vector<Data> run_nudged(const Graph& model, const Data& inputs, int64_t runs = kNudgedRuns);

enum class Explanation : uint8_t {
  None,      // the model's own roundings do not explain it
  Rounding,  // elements are off that the model's own roundings move too, or others that are as few
  Unsteady,  // the model's own roundings move most of the elements, so that comparing proves nothing
};

// Why results differ by more than `tolerance` of the largest that was expected, given what nudged runs make
// of the same output. Another type is never explained.
//
// What nudging moves is of two kinds. Some elements always move: a query of which all keys are masked by
// -1e9 attends to rounding errors. A rewrite may change those, but no others. Others move by chance, where a
// quantised number flips: then a rewrite may flip some that no nudged run has, but no more than a few times
// as many as each nudged run has that no other has. With kNudgedRuns, where all elements are off but most do
// not move, that is never so.
Explanation explain(const Datum& actual, const Datum& expected, std::span<const Datum> nudged,
                    double tolerance);

}  // namespace tenon
