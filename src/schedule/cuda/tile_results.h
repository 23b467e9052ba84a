// tile_results.h — a tile of a product on its way from registers to memory, through the pointwise epilogue.
#pragma once

#include <set>

#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

class TileResults {
 public:
  // Of tiles of m rows by n columns. The definitions are the product and its epilogue; of these, `outputs`
  // are stored.
  TileResults(const std::vector<loops::Definition>& definitions, const std::set<std::string>& outputs,
              const MatrixProduct& product, int64_t m, int64_t n);

  // Whether the last tile of rows, or of columns, overlaps the one before (copied_factor.h).
  void overlap(bool rows, bool columns) {
    rows_overlap_ = rows;
    columns_overlap_ = columns;
  }

  // Columns that can be stored together, at most so many.
  int64_t vector(int64_t most) const;

  // The body in a row of the tile, where the result has it.
  std::vector<loops::Statement> at_row(const Dim& row, std::vector<loops::Statement> body) const;
  // Stores `sum`, of the columns from this one on: those of a vector, in kLane. Within a row.
  std::vector<loops::Statement> store_columns(const Dim& column, int64_t vector,
                                              const loops::Scalar& sum) const;

 private:
  const std::vector<loops::Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const MatrixProduct& product_;
  int64_t m_, n_;
  bool rows_overlap_ = false, columns_overlap_ = false;
};

// Thread blocks of so many threads for all tiles of a product, which are numbered by kTileM and kTileN.
loops::Statement over_tiles(const MatrixProduct& product, int64_t m, int64_t n, int64_t threads,
                            const std::vector<loops::Statement>& block);

}  // namespace tenon::schedule::cuda
