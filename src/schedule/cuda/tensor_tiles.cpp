#include "schedule/cuda/tensor_tiles.h"

#include "loops/arithmetic.h"
#include "schedule/assign.h"
#include "schedule/cuda/tile_statements.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

using loops::Buffer;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kPadding = 8;            // elements behind each row of shared memory
constexpr int64_t kThreadsOfFragment = 4;  // that have its columns

const std::string kPanelOfN = "c0", kI = "i0", kJ = "j0", kHalf = "h0", kOfTwo = "l0";
constexpr int64_t kWarpsOfGroup = 4;

Dim warp() { return floor_div(symbol(kThread), kWarpThreads); }

// Also those of one iteration, which code generation looks for.
std::vector<Statement> unrolled(const std::string& variable, int64_t count, std::vector<Statement> body) {
  return as_list(make_loop(variable, count, Mark::Unrolled, std::move(body)));
}

}  // namespace

int64_t TensorTile::threads() const { return warps() * kWarpThreads; }

std::vector<Dim> SharedTile::place(const RowOfTile& at, const Dim& k) const {
  return place(at, at.panel * kPanel + at.row, k);
}

std::vector<Dim> SharedTile::place(const RowOfTile& at, const Dim& row, const Dim& k) const {
  if (!has_k_first)
    return {row, k};
  return has_panels ? std::vector{at.panel, k, at.row} : std::vector{k, row};
}

SharedTile shared_tile(std::string name, DType dtype, const TensorTile& tile, int64_t rows,
                       bool has_k_first) {
  std::vector<Dim> sizes;
  if (tile.by_warpgroups)
    sizes = has_k_first ? std::vector<Dim>{rows / kPanel, tile.k, kPanel} : std::vector<Dim>{rows, tile.k};
  else
    sizes =
        has_k_first ? std::vector<Dim>{tile.k, rows + kPadding} : std::vector<Dim>{rows, tile.k + kPadding};
  return {{std::move(name), dtype, std::move(sizes), Space::Shared}, has_k_first, tile.by_warpgroups};
}

TensorSums::TensorSums(const TensorTile& tile, std::string name)
    : tile_(tile), buffer_{std::move(name), DType::F32, {tile.threads()}, Space::Private} {
  const std::vector<Dim> fragments = tile.by_warpgroups
                                         ? std::vector<Dim>{tile.panels(), kPanel / kFragmentColumns}
                                         : std::vector<Dim>{tile.fragments_m(), tile.fragments_n()};
  buffer_.sizes.insert(buffer_.sizes.end(), fragments.begin(), fragments.end());
  buffer_.sizes.insert(buffer_.sizes.end(), {2, 2});
}

RowOfTile TensorSums::panel_row() const {
  const Dim half =
      symbol(kHalf) * (kFragmentRows / 2) + floor_div(mod(symbol(kThread), kWarpThreads), kThreadsOfFragment);
  if (tile_.by_warpgroups)
    return {floor_div(warp(), kWarpsOfGroup), mod(warp(), kWarpsOfGroup) * kFragmentRows + half};
  return {0, floor_div(warp(), tile_.n / tile_.warp_n) * tile_.warp_m + symbol(kI) * kFragmentRows + half};
}

RowOfTile TensorSums::panel_column() const {
  const Dim fragment = symbol(kJ) * kFragmentColumns + mod(symbol(kThread), kThreadsOfFragment) * 2;
  if (tile_.by_warpgroups)
    return {symbol(kPanelOfN), fragment};
  return {0, mod(warp(), tile_.n / tile_.warp_n) * tile_.warp_n + fragment};
}

std::vector<Dim> TensorSums::place(const Dim& of_two) const {
  return {symbol(kThread), symbol(tile_.by_warpgroups ? kPanelOfN : kI), symbol(kJ), symbol(kHalf), of_two};
}

Scalar TensorSums::element(const Dim& of_two) const { return cuda::element(buffer_, place(of_two)); }

std::vector<Statement> TensorSums::for_each_row(std::vector<Statement> body) const {
  std::vector<Statement> halves = unrolled(kHalf, 2, std::move(body));
  return tile_.by_warpgroups ? halves : unrolled(kI, tile_.fragments_m(), std::move(halves));
}

std::vector<Statement> TensorSums::for_each_fragment(std::vector<Statement> body) const {
  if (tile_.by_warpgroups)
    return unrolled(kPanelOfN, tile_.panels(), unrolled(kJ, kPanel / kFragmentColumns, std::move(body)));
  return unrolled(kJ, tile_.fragments_n(), std::move(body));
}

std::vector<Statement> TensorSums::for_each(
    const std::function<Statement(const std::vector<Dim>& place)>& body) const {
  std::vector<Statement> fragments =
      for_each_fragment(unrolled(kHalf, 2, unrolled(kOfTwo, 2, as_list(body(place(symbol(kOfTwo)))))));
  return tile_.by_warpgroups ? fragments : unrolled(kI, tile_.fragments_m(), std::move(fragments));
}

std::vector<Statement> TensorSums::add_products(const SharedTile& a, const SharedTile& b) const {
  const auto factor = [](const SharedTile& tile, const RowOfTile& at) {
    return Scalar::cast(DType::F32, cuda::element(tile.buffer, tile.place(at, symbol(kProduct))));
  };
  RowOfTile column = panel_column();
  column.row = column.row + symbol(kOfTwo);
  const Scalar product = factor(a, panel_row()) * factor(b, column);
  return as_list(make_loop(kProduct, tile_.k, Mark::Tile, for_each([&](const std::vector<Dim>& place) {
                             return store(buffer_, place, product, "+");
                           })));
}

}  // namespace tenon::schedule::cuda
