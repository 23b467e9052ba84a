// random.h — numbers drawn at random. Equal seeds give equal numbers on every machine and device: element i
// of a call is Philox4x32-10 of the seed, the number of the call and i (base/philox.h).
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& random_ops();

// A seed is not negative; without one the numbers come from the evaluator's generator.
inline constexpr int64_t kUnseeded = -1;

// Whether a node, or one in its nested graphs, takes a call number from the evaluator's generator: without
// it, those that come after it would draw other numbers.
bool takes_call(const Node& node);

struct Interval {
  double low = 0, high = 1;
};
struct Bell {
  double mean = 0, deviation = 1;
};
Value random_uniform(Value shape, DType dtype, const Interval& range = {}, int64_t seed = kUnseeded);
Value random_normal(Value shape, DType dtype, const Bell& bell = {}, int64_t seed = kUnseeded);
// For each row of `logits` that many indices into it, index i as often as exp(logits[i]) says.
Value multinomial(Value logits, Value samples, DType dtype, int64_t seed = kUnseeded);
// True with probability `p`, for each element.
Value bernoulli(Value p, int64_t seed = kUnseeded);

}  // namespace tenon
