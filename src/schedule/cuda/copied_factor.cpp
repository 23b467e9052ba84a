#include "schedule/cuda/copied_factor.h"

#include <algorithm>

#include "schedule/cuda/blocks.h"
#include "schedule/cuda/tile_statements.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Copy;
using loops::Scalar;
using loops::Statement;

namespace {

// Whether index number `at` of the load, and no other, moves along the axis, element by element.
bool moves_by_one(const Scalar& load, size_t at, const Axis& axis) {
  for (size_t i = 0; i < load.operands().size(); ++i)
    if (i != at && loops::mentions(load.operands()[i], axis.variable))
      return false;
  const Scalar& index = load.operands()[at];
  return index.kind() == Scalar::Kind::Index &&
         index.index().substitute({{axis.variable, symbol(axis.variable) + 1}}) - index.index() == Dim(1);
}

// A tile has rows of one matrix of a stack, where the rows of all are those of the product.
bool are_boxes(const std::vector<Axis>& rows, int64_t of_tile) {
  const std::optional<int64_t> last = rows.back().size.constant();
  return last && (rows.size() == 1 ? *last >= of_tile : *last % of_tile == 0);
}

}  // namespace

Dim first_row_of_tile(const std::string& tile, int64_t rows, const std::vector<Axis>& axes) {
  const int64_t size = *size_of(axes).constant();
  if (size % rows == 0)
    return symbol(tile) * rows;
  const int64_t vector = size % kMostInVector == 0 ? kMostInVector : 1;
  return min(symbol(tile) * (rows / vector), Dim((size - rows) / vector)) * vector;
}

bool can_copy(const TiledFactor& from, const std::vector<Axis>& k, int64_t rows, int64_t products) {
  const Scalar& load = from.value;
  if (load.kind() != Scalar::Kind::Load || load.operands().size() < 2 || !from.conditions.empty() ||
      from.vector * info(load.dtype()).bytes < kBytesOfVector || k.size() != 1 || from.rows.empty() ||
      k.front().size.constant().value_or(1) % products != 0 || !size_of(from.rows).is_constant() ||
      !are_boxes(from.rows, rows))
    return false;
  const size_t last = load.operands().size() - 1;
  return moves_by_one(load, from.is_along_k ? last : last - 1, k.front()) &&
         moves_by_one(load, from.is_along_k ? last - 1 : last, from.rows.back()) &&
         std::ranges::all_of(load.operands(),
                             [](const Scalar& index) { return index.kind() == Scalar::Kind::Index; });
}

std::vector<Statement> copy_tile(const TiledFactor& from, const Axis& k, int64_t rows, int64_t products,
                                 const std::string& tile, const Buffer& to, const Dim& step) {
  const std::string row = "row0";
  const bool has_panels = to.sizes.size() > 2;
  const int64_t of_box = has_panels ? *to.sizes.back().constant() : rows;
  std::vector<Statement> copies;
  for (int64_t first = 0; first < rows; first += of_box) {
    std::map<std::string, Dim> variables{{k.variable, step * products}};
    for (const auto& [axis, of_row] : flatten(from.rows, row).variables)
      variables.emplace(axis, of_row.substitute({{row, first_row_of_tile(tile, rows, from.rows) + first}}));
    Copy copy{.to = {to.name, {Scalar::index(0), Scalar::index(0)}},
              .from = {from.value.name(), {}},
              .sizes = {from.is_along_k ? of_box : products, from.is_along_k ? products : of_box}};
    if (has_panels)
      copy.to.at.insert(copy.to.at.begin(), Scalar::index(first / of_box));
    for (const Scalar& index : from.value.operands())
      copy.from.at.push_back(index.substitute(variables));
    copies.emplace_back(std::move(copy));
  }
  return copies;
}

}  // namespace tenon::schedule::cuda
