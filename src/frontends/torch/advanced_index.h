// advanced_index.h — x[i, :, j]: some dimensions indexed by tensors, as NumPy and PyTorch do.
#pragma once

#include "frontends/torch/node_view.h"

namespace tenon::torch {

// The tensors of indices broadcast to each other. Their dimensions stand in the result where the first of
// them stands in x, if the indexed dimensions are neighbours, and in front of all others if not. A tensor of
// truths stands for as many dimensions as it has, and names the elements where it holds.
class AdvancedIndex {
 public:
  AdvancedIndex(const NodeView& n, Value x, const std::vector<Value>& indices);

  Value read() const;
  // x with these values, which broadcast to the result of read, in their places; "add" adds them.
  Value write(Value values, std::string_view reduction) const { return write(x_, values, reduction); }
  // The same for another tensor of x's shape.
  Value write(Value base, Value values, std::string_view reduction) const;

 private:
  // The order of x's dimensions that has the indexed ones first.
  std::vector<int64_t> indexed_first() const;
  // The order of the dimensions of what gather_nd gives (those of the indices, then the rest of x) in the
  // result.
  std::vector<int64_t> result_order() const;

  Value x_;
  std::vector<int64_t> axes_;   // that are indexed
  std::vector<Value> indices_;  // for each of them, i64
  Value tuples_;                // all of them, broadcast: [dimensions of the indices…, axes]
  int64_t index_rank_ = 0;
};

}  // namespace tenon::torch
