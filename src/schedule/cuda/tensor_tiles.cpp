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

const std::string kI = "i0", kJ = "j0", kHalf = "h0", kOfTwo = "l0";

Dim warp() { return floor_div(symbol(kThread), kWarpThreads); }

// Also those of one iteration, which code generation looks for.
std::vector<Statement> unrolled(const std::string& variable, int64_t count, std::vector<Statement> body) {
  return as_list(make_loop(variable, count, Mark::Unrolled, std::move(body)));
}

}  // namespace

int64_t TensorTile::threads() const { return warps() * kWarpThreads; }

SharedTile shared_tile(std::string name, DType dtype, int64_t rows, int64_t k, bool has_k_first) {
  return {
      {std::move(name), dtype, {has_k_first ? k : rows, (has_k_first ? rows : k) + kPadding}, Space::Shared},
      has_k_first};
}

TensorSums::TensorSums(const TensorTile& tile, std::string name)
    : tile_(tile),
      buffer_{std::move(name),
              DType::F32,
              {tile.threads(), tile.fragments_m(), tile.fragments_n(), 2, 2},
              Space::Private} {}

Dim TensorSums::row() const {
  const Dim lane = mod(symbol(kThread), kWarpThreads);
  return floor_div(warp(), tile_.n / tile_.warp_n) * tile_.warp_m + symbol(kI) * kFragmentRows +
         symbol(kHalf) * (kFragmentRows / 2) + floor_div(lane, kThreadsOfFragment);
}

Dim TensorSums::column() const {
  return mod(warp(), tile_.n / tile_.warp_n) * tile_.warp_n + symbol(kJ) * kFragmentColumns +
         mod(symbol(kThread), kThreadsOfFragment) * 2;
}

std::vector<Dim> TensorSums::place(const Dim& of_two) const {
  return {symbol(kThread), symbol(kI), symbol(kJ), symbol(kHalf), of_two};
}

Scalar TensorSums::element(const Dim& of_two) const { return cuda::element(buffer_, place(of_two)); }

std::vector<Statement> TensorSums::for_each_row(std::vector<Statement> body) const {
  return unrolled(kI, tile_.fragments_m(), unrolled(kHalf, 2, std::move(body)));
}

std::vector<Statement> TensorSums::for_each_fragment(std::vector<Statement> body) const {
  return unrolled(kJ, tile_.fragments_n(), std::move(body));
}

std::vector<Statement> TensorSums::for_each(
    const std::function<Statement(const std::vector<Dim>& place)>& body) const {
  return unrolled(kI, tile_.fragments_m(),
                  unrolled(kJ, tile_.fragments_n(),
                           unrolled(kHalf, 2, unrolled(kOfTwo, 2, as_list(body(place(symbol(kOfTwo))))))));
}

std::vector<Statement> TensorSums::add_products(const SharedTile& a, const SharedTile& b) const {
  const auto factor = [](const SharedTile& tile, const Dim& row) {
    return Scalar::cast(DType::F32, cuda::element(tile.buffer, tile.place(row, symbol(kProduct))));
  };
  const Scalar product = factor(a, row()) * factor(b, column() + symbol(kOfTwo));
  return as_list(make_loop(kProduct, tile_.k, Mark::Tile, for_each([&](const std::vector<Dim>& place) {
                             return store(buffer_, place, product, "+");
                           })));
}

}  // namespace tenon::schedule::cuda
