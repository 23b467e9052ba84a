#include "schedule/cuda/tile_results.h"

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/copied_factor.h"
#include "schedule/cuda/tile_statements.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Definition;
using loops::Scalar;
using loops::Statement;

namespace {

const std::string kRow = "row0", kColumn = "column0";

}  // namespace

TileResults::TileResults(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
                         const MatrixProduct& product, int64_t m, int64_t n)
    : definitions_(definitions), outputs_(outputs), product_(product), m_(m), n_(n) {}

int64_t TileResults::vector(int64_t most) const {
  int64_t vector = most;
  while (vector > 1 && !divide_exactly(product_.n().back().size, vector))
    vector /= 2;
  return vector;
}

std::vector<Statement> TileResults::at_row(const Dim& row, std::vector<Statement> body) const {
  const Dim own = symbol(kTileM) * m_;
  if (!divide_exactly(size_of(product_.m()), m_))
    body = guarded({rows_overlap_ ? symbol(kRow) - own : size_of(product_.m()) - 1 - symbol(kRow)},
                   std::move(body));
  return where(kRow, (rows_overlap_ ? first_row_of_tile(kTileM, m_, product_.m()) : own) + row,
               std::move(body));
}

std::vector<Statement> TileResults::store_columns(const Dim& column, int64_t vector,
                                                  const Scalar& sum) const {
  const VectorAxes rows = in_vectors(product_.m(), 1, kRow),
                   columns = in_vectors(product_.n(), vector, kColumn);
  std::map<std::string, Dim> variables = rows.variables;
  variables.insert(columns.variables.begin(), columns.variables.end());
  std::vector<Statement> stores;
  for (Assign& each : build_epilogue(definitions_, outputs_, sum,
                                     [&](const Scalar& scalar) { return scalar.substitute(variables); }))
    stores.emplace_back(std::move(each));
  std::vector<Statement> body = in_lanes(vector, std::move(stores));
  const Dim own = symbol(kTileN) * (n_ / vector);
  if (!divide_exactly(size_of(product_.n()), n_))
    body = guarded({columns_overlap_ ? symbol(kColumn) - own : columns.vectors - 1 - symbol(kColumn)},
                   std::move(body));
  const Dim first = columns_overlap_ ? floor_div(first_row_of_tile(kTileN, n_, product_.n()), vector) : own;
  return where(kColumn, first + floor_div(column, vector), std::move(body));
}

Statement over_tiles(const MatrixProduct& product, int64_t m, int64_t n, int64_t threads,
                     const std::vector<Statement>& block) {
  std::vector<Axis> blocks = product.batch;
  blocks.push_back({kTileM, ceil_div(size_of(product.m()), m)});
  blocks.push_back({kTileN, ceil_div(size_of(product.n()), n)});
  std::map<std::string, Dim> only;  // those of one iteration
  for (const Axis& axis : blocks)
    if (axis.size == Dim(1))
      only.emplace(axis.variable, 0);
  std::erase_if(blocks, [](const Axis& axis) { return axis.size == Dim(1); });
  return over_blocks(blocks, threads, substitute(block, only));
}

}  // namespace tenon::schedule::cuda
