// training_data.h — the examples of an .npz in batches, in an order that a seed decides.
#pragma once

#include "cli/arrays.h"

namespace tenon::cli {

// Rows of some arrays, as many in each, which go together.
class TrainingData {
 public:
  struct Order {
    uint64_t seed = 0;
    bool shuffles = true;
  };
  TrainingData(std::vector<Tensor> arrays, int64_t batch, Order order);

  int64_t batches() const { return batches_; }  // of an epoch
  int64_t dropped() const { return dropped_; }  // examples of each epoch that do not fill a batch
  // The arrays for a step, by its number from 0. Each epoch has an order of its own.
  Data batch(int64_t step);

 private:
  void arrange(int64_t epoch);

  std::vector<Tensor> arrays_;
  int64_t batch_, batches_, dropped_;
  Order order_;
  int64_t epoch_ = -1;  // for which the rows are arranged
  std::vector<int64_t> rows_;
};

// Some rows of an array, those from `first` up to `end`.
Tensor rows_between(const Tensor& array, int64_t first, int64_t end);
Tensor first_rows(const Tensor& array, int64_t count);

}  // namespace tenon::cli
