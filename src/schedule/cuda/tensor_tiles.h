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
//
// By warpgroups, each warp has 16 of the 64 rows of its group, and all columns: in panels of 64, as these lie
// in shared memory where a factor has k first.
#pragma once

#include "loops/kernel.h"

namespace tenon::schedule::cuda {

constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kFragmentDepth = 16;
constexpr int64_t kPanel = 64;  // rows of a factor that a warpgroup multiplies, and of its products

// Rows and columns of the result and products of each step, of a thread block and of each of its warps.
struct TensorTile {
  int64_t m, n, k;
  int64_t warp_m, warp_n;
  bool by_warpgroups = false;

  int64_t warps() const { return m / warp_m * (n / warp_n); }
  int64_t threads() const;
  int64_t fragments_m() const { return warp_m / kFragmentRows; }
  int64_t fragments_n() const { return warp_n / kFragmentColumns; }
  int64_t panels() const { return by_warpgroups ? n / kPanel : 1; }

  friend bool operator==(const TensorTile&, const TensorTile&) = default;
};

// A row of a tile, or a column: of a panel.
struct RowOfTile {
  Dim panel, row;
};

// A tile of an operand in shared memory: [row, k], or [k, row]; for warpgroups, of panels [panel, k, row].
struct SharedTile {
  loops::Buffer buffer;
  bool has_k_first;
  bool has_panels;

  std::vector<Dim> place(const RowOfTile& at, const Dim& k) const;
  std::vector<Dim> place(const Dim& row, const Dim& k) const {
    return place(RowOfTile{floor_div(row, kPanel), mod(row, kPanel)}, row, k);
  }

 private:
  std::vector<Dim> place(const RowOfTile& at, const Dim& row, const Dim& k) const;
};
// Of so many rows and products, which lie such that threads read different banks; those for warpgroups are
// swizzled.
SharedTile shared_tile(std::string name, DType dtype, const TensorTile& tile, int64_t rows, bool has_k_first);

// The sums of a tile, and loops of each thread over its own.
class TensorSums {
 public:
  TensorSums(const TensorTile& tile, std::string name);

  const loops::Buffer& buffer() const { return buffer_; }

  // Where an element of a thread lies in the tile: in the loops below.
  Dim row() const { return place_of(panel_row()); }
  Dim column() const { return place_of(panel_column()); }  // the first of two
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
  RowOfTile panel_row() const;
  RowOfTile panel_column() const;
  static Dim place_of(const RowOfTile& at) { return at.panel * kPanel + at.row; }

  TensorTile tile_;
  loops::Buffer buffer_;
};

}  // namespace tenon::schedule::cuda
