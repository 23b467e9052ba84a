// contraction_tiles.h — a contraction as a matrix product for thread blocks, and the tiles they take of it.
#pragma once

#include "loops/contraction.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// One factor as a matrix of rows by k, whose tiles are copied to shared memory.
struct TiledFactor {
  loops::Scalar value;
  std::vector<Dim> conditions;    // it is 0 where one of them is negative, as in padding
  std::vector<loops::Axis> rows;  // of the result: those that this factor alone has
  bool is_along_k = false;        // consecutive threads load consecutive elements of k; else of rows
  int64_t vector = 1;             // elements in that direction that a thread may load together
};

constexpr int64_t kBytesOfVector = 16;  // that one instruction loads at most
constexpr int64_t kMostInVector = 8;    // of 16 bits each

// result[batch, m, n] += first[batch, m, k] * second[batch, n, k]
struct MatrixProduct {
  TiledFactor first, second;
  std::vector<loops::Axis> batch, k;

  const std::vector<loops::Axis>& m() const { return first.rows; }
  const std::vector<loops::Axis>& n() const { return second.rows; }
};

// Nothing where tiles have nothing to share. The elements of a result are contiguous along n, if possible.
// `buffers` are those that the factors read.
std::optional<MatrixProduct> match_matrix_product(const loops::Definition& sum,
                                                  const std::vector<loops::Buffer>& buffers);

// Rows of the result, its columns and products that a thread block takes at a time; of these each thread has
// sums of so many rows and columns.
struct ContractionTile {
  int64_t m, n, k;
  int64_t thread_m, thread_n;

  int64_t threads() const { return m / thread_m * (n / thread_n); }

  friend bool operator==(const ContractionTile&, const ContractionTile&) = default;
};
ContractionTile choose_tile(const MatrixProduct& product, const Gpu& gpu);
// Of arithmetic, against that of the largest tile.
double rate_of_tile(const ContractionTile& tile);

Dim size_of(const std::vector<loops::Axis>& axes);

}  // namespace tenon::schedule::cuda
