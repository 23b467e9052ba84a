// loss.h — losses of classifiers, composed of other ops.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace tenon {

struct ClassLoss {
  enum class Reduction : uint8_t { None, Sum, Mean };  // the mean is weighted, where there are weights

  Value weight = {};                    // one for each class; empty: all are 1
  std::optional<int64_t> ignored = {};  // a target that does not count
  Reduction reduction = Reduction::Mean;
};

// -log_probabilities[n, target[n, d…], d…] · weight[target[n, d…]]: the classes are dimension 1.
Value negative_log_likelihood(Value log_probabilities, Value target, const ClassLoss& options);

}  // namespace tenon
