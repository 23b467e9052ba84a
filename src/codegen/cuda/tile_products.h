// tile_products.h — `tile` loops of a thread loop that are products of matrices as tensor cores compute them:
// the 32 threads of a warp have 16 x 8 sums together, four each.
//
//   for p in 0..256 thread { for k in 0..32 tile {
//     for i in 0..4 unrolled { for h in 0..2 unrolled { for j in 0..4 unrolled { for l in 0..2 unrolled {
//       sums[p,i,j,h,l] += f32(a[64*mod(floor(p/32),2)+16*i+8*h+floor(mod(p,32)/4),k]) *
//                          f32(b[k,32*floor(p/64)+8*j+2*mod(p,4)+l]) } } } } } }
//
// Which thread has which sums is what the instruction wants, or the loop stays a loop.
//
// The four warps of a warpgroup multiply 64 rows by up to 256 columns together (wgmma), from factors that lie
// in rows of 64 elements: those of k, or those of the other dimension in panels of 64, [panel,k,64]. The
// first may be in registers instead (quads.h).
#pragma once

#include <functional>

#include "codegen/cuda/quads.h"

namespace tenon::codegen::cuda {

constexpr int64_t kTileK = 16;  // that one instruction adds up
constexpr int64_t kRowOfPanel = 64, kThreadsOfWarpgroup = 128;

// A factor in shared memory. Offsets and strides are in elements.
struct TileOperand {
  std::string buffer;
  Dim first;            // what the first lane of a warp reads for the first fragment, for each p and k
  int64_t stride;       // between rows of the first factor, or columns of the second
  int64_t stride_of_k;  // one of the two strides is 1, the other a multiple of 8
  int64_t fragments;    // of 16 rows, or of 8 columns
  int64_t step;         // between fragments
  int64_t per_panel;    // fragments; those of the next panel are so far from it
  int64_t panel_step;

  bool is_along_k() const { return stride_of_k == 1; }
};

// sums[p,i,j,h,l], or any other order of these: an affine function of them.
struct TileSums {
  std::string buffer;
  int64_t first, of_i, of_j, of_h, of_l;
};

struct TileProduct {
  std::string k;  // the variable of the loop
  DType dtype;    // of both factors
  TileOperand a, b;
  TileSums sums;
  bool is_of_warpgroups;  // else of warps alone
};

// The tile loops within a thread loop that are such products, and that warps come to as a whole. Those of
// panels are of warpgroups.
using FindBuffer = std::function<const loops::Buffer*(const std::string&)>;
std::map<const loops::Loop*, TileProduct> find_tile_products(const loops::Loop& threads,
                                                             const FindBuffer& find_buffer,
                                                             const std::map<std::string, QuadBuffer>& quads);

}  // namespace tenon::codegen::cuda
