// tensor_tiles.h — products of tiles in shared memory, in the form that tensor cores compute.
//
// A warp has a part of the tile of the result, in fragments of 16 rows by 8 columns. Each of its threads has
// two elements beside each other in two rows of every fragment, 8 apart, as mma.m16n8k16 hands them out:
//
//   local sums: f32[threads, fragments of rows, fragments of columns, 2, 2] in private
//   for p in 0..threads thread
//     for k in 0..64 tile
//       sums[p,i,j,h,l] += f32(a[16*i + 8*h + …, k]) * f32(b[k, 8*j + l + …])
//
// Code generation takes the loop over k for such instructions. Where it does not, it is an ordinary loop.
#pragma once

#include "loops/kernel.h"

namespace tenon::schedule::cuda {

constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kFragmentDepth = 16;

// Rows and columns of the result and products of each step, of a thread block and of each of its warps.
struct TensorTile {
  int64_t m, n, k;
  int64_t warp_m, warp_n;

  int64_t warps() const { return m / warp_m * (n / warp_n); }
  int64_t threads() const;
  int64_t fragments_m() const { return warp_m / kFragmentRows; }
  int64_t fragments_n() const { return warp_n / kFragmentColumns; }

  friend bool operator==(const TensorTile&, const TensorTile&) = default;
};

// A tile of an operand in shared memory: [row, k], or [k, row].
struct SharedTile {
  loops::Buffer buffer;
  bool has_k_first;

  std::vector<Dim> place(const Dim& row, const Dim& k) const {
    return has_k_first ? std::vector{k, row} : std::vector{row, k};
  }
};
// Of so many rows and products, which lie such that threads read different banks.
SharedTile shared_tile(std::string name, DType dtype, int64_t rows, int64_t k, bool has_k_first);

// The sums of a tile, and loops of each thread over its own.
class TensorSums {
 public:
  TensorSums(const TensorTile& tile, std::string name);

  const loops::Buffer& buffer() const { return buffer_; }

  // Where an element of a thread lies in the tile: in the loops below.
  Dim row() const;
  Dim column() const;  // the first of two
  loops::Scalar element(const Dim& of_two) const;

  // For each row of the thread; for both columns of each of its fragments in the row.
  std::vector<loops::Statement> for_each_row(std::vector<loops::Statement> body) const;
  std::vector<loops::Statement> for_each_fragment(std::vector<loops::Statement> body) const;
  std::vector<loops::Statement> for_each(
      const std::function<loops::Statement(const std::vector<Dim>& place)>& body) const;

  // Adds the products of two tiles, for one thread.
  std::vector<loops::Statement> add_products(const SharedTile& a, const SharedTile& b) const;

 private:
  std::vector<Dim> place(const Dim& of_two) const;

  TensorTile tile_;
  loops::Buffer buffer_;
};

}  // namespace tenon::schedule::cuda
