// loss.h — losses, composed of other ops.
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

// Of scores of classes, which are dimension 1, the mean (or sum) of -log softmax(logits)[n, target[n, d…],
// d…] over all targets that count. With smoothing s, a target is 1 - s + s/classes of its class, and
// s/classes of others.
struct CrossEntropy {
  double smoothing = 0;
  std::optional<int64_t> ignored = {};  // a target that does not count
  ClassLoss::Reduction reduction = ClassLoss::Reduction::Mean;
};
Value cross_entropy(Value logits, Value target, const CrossEntropy& options);

// -target · log sigmoid(logits) - (1 - target) · log(1 - sigmoid(logits)), element by element; what stands
// for 1 is weighted where there is a weight.
Value binary_cross_entropy_with_logits(Value logits, Value target, Value positive_weight = {});

}  // namespace tenon
