#include "schedule/cuda/contraction_tiles.h"

#include <algorithm>
#include <array>

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;

namespace {

constexpr int64_t kLeastRows = 8;       // and columns: fewer do not share enough
constexpr double kSizeOfUnknown = 512;  // that tiles are chosen for

// Whether a load finds the next element in memory in the next iteration of the axis.
bool is_contiguous_along(const Scalar& load, const Axis& axis) {
  if (load.operands().empty() || load.operands().back().kind() != Scalar::Kind::Index)
    return false;
  for (size_t i = 0; i + 1 < load.operands().size(); ++i)
    if (loops::mentions(load.operands()[i], axis.variable))
      return false;
  const Dim& last = load.operands().back().index();
  return last.substitute({{axis.variable, Dim::symbol(axis.variable) + 1}}) - last == Dim(1);
}

bool reads_along(const Scalar& factor, const Axis& axis) {
  bool any = false, all = true;
  loops::for_each_load(factor, [&](const Scalar& load) {
    if (!loops::mentions(load, axis.variable))
      return;
    any = true;
    all = all && is_contiguous_along(load, axis);
  });
  return any && all;
}

// Moves an axis that the factor reads along to the end.
void put_contiguous_last(std::vector<Axis>& axes, const Scalar& factor) {
  const auto found = std::ranges::find_if(axes, [&](const Axis& axis) { return reads_along(factor, axis); });
  if (found != axes.end())
    std::rotate(found, found + 1, axes.end());
}

std::optional<Dim> as_index(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Index)
    return scalar.index();
  if (scalar.kind() == Scalar::Kind::Number && scalar.dtype() == DType::I64)
    return std::get<int64_t>(scalar.value());
  return std::nullopt;
}

// Adds what must be at least 0 for a condition to hold. False where it asks for something else.
bool add_conditions(const Scalar& condition, std::vector<Dim>& conditions) {
  if (condition.kind() != Scalar::Kind::Apply)
    return false;
  const auto& operands = condition.operands();
  if (condition.function() == Function::And)
    return add_conditions(operands[0], conditions) && add_conditions(operands[1], conditions);
  const bool is_less = condition.function() == Function::Less;
  if (!is_less && condition.function() != Function::LessEqual)
    return false;
  const std::optional<Dim> left = as_index(operands[0]), right = as_index(operands[1]);
  if (!left || !right)
    return false;
  conditions.push_back(*right - *left - (is_less ? 1 : 0));
  return true;
}

// The factor with the condition of its padding apart.
TiledFactor make_factor(const Scalar& value, std::vector<Axis> rows) {
  std::vector<Dim> conditions;
  const bool is_padded = value.kind() == Scalar::Kind::Apply && value.function() == Function::Select &&
                         value.operands()[2] == Scalar::zero(value.dtype()) &&
                         add_conditions(value.operands()[0], conditions);
  return is_padded ? TiledFactor{value.operands()[1], std::move(conditions), std::move(rows)}
                   : TiledFactor{value, {}, std::move(rows)};
}

// Whether vectors of elements along an axis, from a multiple of their number on, are loads that are aligned.
bool has_vectors(const TiledFactor& factor, const Axis& along, int64_t vector,
                 const std::vector<Buffer>& buffers) {
  const auto divides = [&](const Dim& size) { return divide_exactly(size, vector).has_value(); };
  bool all = divides(along.size) && std::ranges::none_of(factor.conditions, [&](const Dim& condition) {
               return condition.mentions(along.variable);
             });
  loops::for_each_load(factor.value, [&](const Scalar& load) {
    const auto buffer = std::ranges::find(buffers, load.name(), &Buffer::name);
    if (!all || !loops::mentions(load, along.variable))
      return;
    all = buffer != buffers.end() && divides(buffer->sizes.back()) &&
          divides(load.operands().back().index() - Dim::symbol(along.variable));
  });
  return all;
}

// Along the longer axis of those along which the factor is contiguous.
void choose_direction(TiledFactor& factor, const std::vector<Axis>& k, const std::vector<Buffer>& buffers) {
  const Axis& row = factor.rows.back();
  const bool is_along_rows = reads_along(factor.value, row);
  if (!k.empty() && reads_along(factor.value, k.back())) {
    const std::optional<int64_t> size_k = k.back().size.constant(), size_row = row.size.constant();
    factor.is_along_k = !is_along_rows || !size_k || (size_row && *size_k >= *size_row);
  }
  if (!factor.is_along_k && !is_along_rows)
    return;
  factor.vector = kMostInVector;
  while (factor.vector > 1 &&
         !has_vectors(factor, factor.is_along_k ? k.back() : row, factor.vector, buffers))
    factor.vector /= 2;
}

struct RatedTile {
  ContractionTile tile;
  double rate;
};
constexpr std::array<RatedTile, 7> kTiles = {{
    {{128, 128, 16, 8, 8}, 1.0},
    {{128, 64, 16, 8, 8}, 0.9},
    {{64, 128, 16, 8, 8}, 0.9},
    {{64, 64, 16, 4, 4}, 0.7},
    {{32, 64, 16, 4, 4}, 0.6},
    {{32, 32, 16, 4, 4}, 0.5},
    {{16, 64, 16, 4, 4}, 0.5},
}};

}  // namespace

Dim size_of(const std::vector<Axis>& axes) {
  Dim size = 1;
  for (const Axis& axis : axes)
    size = size * axis.size;
  return size;
}

std::optional<MatrixProduct> match_matrix_product(const Definition& sum, const std::vector<Buffer>& buffers) {
  const std::optional<loops::Contraction> contraction = loops::match_contraction(sum);
  if (!contraction || contraction->products.size() != 1 || !contraction->product().multiplies() ||
      contraction->accumulator != DType::F32 || sum.at.empty())
    return std::nullopt;
  const auto axes_at = [&](const std::vector<size_t>& numbers) {
    std::vector<Axis> axes;
    for (const size_t number : numbers)
      axes.push_back(sum.axes[number]);
    return axes;
  };
  MatrixProduct product{.first = make_factor(contraction->product().lhs, axes_at(contraction->m)),
                        .second = make_factor(contraction->product().rhs, axes_at(contraction->n)),
                        .batch = axes_at(contraction->batch),
                        .k = sum.reduced};
  for (const Axis& axis : sum.axes)
    if (!loops::mentions(sum.values.front(), axis.variable))
      product.batch.push_back(axis);
  for (const std::vector<Axis>* axes : {&product.m(), &product.n()})
    if (size_of(*axes).constant().value_or(kLeastRows) < kLeastRows)
      return std::nullopt;
  if (const std::optional<size_t> last = loops::axis_of(sum.axes, sum.at.back());
      last && std::ranges::find(product.m(), sum.axes[*last]) != product.m().end())
    std::swap(product.first, product.second);
  put_contiguous_last(product.k, product.second.value);
  put_contiguous_last(product.k, product.first.value);
  choose_direction(product.first, product.k, buffers);
  choose_direction(product.second, product.k, buffers);
  return product;
}

// The least time, where blocks run one after the other on each multiprocessor.
ContractionTile choose_tile(const MatrixProduct& product, const Gpu& gpu) {
  const auto count = [](const Dim& size) {
    const std::optional<int64_t> known = size.constant();
    return known ? static_cast<double>(*known) : kSizeOfUnknown;
  };
  const double m = count(size_of(product.m())), n = count(size_of(product.n())),
               batch = size_of(product.batch).is_constant() ? count(size_of(product.batch)) : 1;
  const auto time_of = [&](const RatedTile& rated) {
    const ContractionTile& tile = rated.tile;
    const double blocks =
        batch * std::ceil(m / static_cast<double>(tile.m)) * std::ceil(n / static_cast<double>(tile.n));
    return std::ceil(blocks / gpu.multiprocessors) * static_cast<double>(tile.m * tile.n) / rated.rate;
  };
  return std::ranges::min_element(kTiles, {}, time_of)->tile;
}

double rate_of_tile(const ContractionTile& tile) {
  return std::ranges::find(kTiles, tile, &RatedTile::tile)->rate;
}

}  // namespace tenon::schedule::cuda
