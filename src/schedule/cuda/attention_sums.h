// attention_sums.h — the sums of the two products of attention, which the threads of a block have in
// registers: which rows and columns each thread has, and how it adds up.
#pragma once

#include "fusion/attention_tile.h"
#include "loops/definition.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

class AttentionSums {
 public:
  enum class Of : uint8_t { Scores, Results };

  // So many columns by the queries of the tile.
  AttentionSums(const fusion::AttentionTile& tile, Of of, int64_t columns, const std::string& name);

  const loops::Buffer& buffer() const { return buffer_; }
  // Where the element of a thread is, at its row and column of the loops below.
  const std::vector<Dim>& at() const { return at_; }
  loops::Scalar value() const;

  // Within the tile. A column is one of so many of a vector.
  const Dim& row() const { return row_; }
  Dim column() const { return vector_of_column_ * lanes_ + lane(); }
  const Dim& vector_of_column() const { return vector_of_column_; }
  int64_t lanes() const { return lanes_; }
  static Dim lane();
  // Which of the threads of a row it is.
  Dim thread_of_row() const;

  // A number of a thread for each of its rows.
  loops::Buffer of_rows(const std::string& name) const;
  std::vector<Dim> at_row() const;

  std::vector<loops::Statement> for_each_row(std::vector<loops::Statement> body) const;
  std::vector<loops::Statement> for_each_vector(std::vector<loops::Statement> body) const;
  std::vector<loops::Statement> for_each_column(std::vector<loops::Statement> body) const;

  // sums[row,column] += a[row,k] * b[column,k] of scores, b[k,column] of results, over so many k. Of
  // warpgroups, what is along k lies in panels of it, [panel,row,k]; what is along columns in panels of
  // these.
  std::vector<loops::Statement> add_products(const loops::Buffer& a, const loops::Buffer& b, int64_t k) const;

 private:
  std::vector<loops::Statement> add_in_tiles(const loops::Buffer& a, const loops::Buffer& b, int64_t k) const;
  std::vector<loops::Statement> add_by_warpgroups(const loops::Buffer& a, const loops::Buffer& b,
                                                  int64_t k) const;
  loops::Statement add_tile(const loops::Scalar& a, const loops::Scalar& b, int64_t k) const;
  std::vector<loops::Statement> add_in_vectors(const loops::Buffer& a, const loops::Buffer& b,
                                               int64_t k) const;
  std::vector<Dim> at_b(const Dim& k) const;

  const fusion::AttentionTile tile_;
  const Of of_;
  loops::Buffer buffer_;
  std::vector<loops::Axis> rows_, columns_;
  int64_t lanes_ = 1;
  Dim row_, vector_of_column_;
  std::vector<Dim> at_;
};

}  // namespace tenon::schedule::cuda
