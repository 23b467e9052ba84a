// ml.h — classical machine learning: decision trees and tables of labels.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& ml_ops();

// For every element of x the value beside its key, or `otherwise` (one element) where there is none.
Value map_labels(Value x, Literal keys, Literal values, Literal otherwise);

// How a decision tree compares a feature with a node's split.
enum class SplitMode : uint8_t { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };

// Trees as the op tree_ensemble takes them; see its attributes.
struct Trees {
  std::vector<int64_t> roots, features, modes, on_true, on_false, missing_is_true;
  std::vector<double> splits, members;
  std::vector<int64_t> leaf_starts, leaf_targets;
  std::vector<double> leaf_weights;
};

Value tree_ensemble(Value x, const Trees& trees, int64_t targets, std::string_view aggregate, DType dtype);

}  // namespace tenon
