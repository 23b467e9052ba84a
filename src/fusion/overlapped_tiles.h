// overlapped_tiles.h — overlapped tiling of a chain of kernels: each tile runs through all of them, so that
// intermediate images stay in cache and need no buffer.
//
// The result of the last kernel is cut into tiles of rows. What each earlier kernel computes for a tile
// follows from what its readers need: a 3 x 3 window reads two rows more than it computes. Rows that two
// tiles need are recomputed.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// A kernel whose result is cut along one dimension.
struct TileCut {
  // For row v, what it reads of another kernel's buffer: rows stride * v + first to stride * v + last.
  struct Read {
    std::string buffer;
    size_t dim;
    int64_t stride, first, last;
  };

  size_t dim;                          // of the result
  int64_t rows;                        // of the result, without its border
  int64_t border;                      // padding rows before the first
  std::vector<std::string> variables;  // of each stage: that of its rows
  std::vector<Read> reads;
};

// Nothing where the rows of the result cannot be computed one by one.
std::optional<TileCut> cut_along(const std::vector<lowering::Stage>& stages, const std::string& result,
                                 size_t dim);

// The rows that a kernel computes for a tile: as many for each, all within the result.
struct TileRows {
  int64_t rows, all;
  int64_t step, offset;  // tile b begins at row step * b + offset, clamped to the rows there are
  int64_t tiles;

  Dim first(const Dim& tile) const;
};

// A tiled kernel.
struct TiledKernel {
  std::vector<lowering::Stage> stages;
  lowering::Group group;
  std::string result;
  std::vector<TileCut> cuts;   // along each dimension that tiles are cut along
  std::vector<TileRows> rows;  // along each of these
};

constexpr int64_t kMostTiles = 1024;  // along one dimension

// The kernels of a tiled group, each of which ends with the stage that defines its result, cut along the
// tiled dimensions, with rows not yet chosen. Nothing where they cannot be cut.
std::optional<std::vector<TiledKernel>> cut_into_tiles(const std::vector<lowering::Stage>& stages,
                                                       const lowering::Group& group);
// Chooses the rows they compute for tiles of these sizes. False where that is impossible: tiles have one size
// and are limited in number.
bool set_rows(std::vector<TiledKernel>& parts, const std::vector<lowering::TileSize>& tile);

}  // namespace tenon::fusion
