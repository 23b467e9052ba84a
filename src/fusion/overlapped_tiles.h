// overlapped_tiles.h — kernels that run one after the other, on a part of their images at a time: what one
// makes is in cache when the next reads it, and has no place in memory.
//
// The result of the last kernel is cut into tiles of rows. What each kernel before it must make for a tile
// follows from what the others read: a window of 3 x 3 reads two rows more than it makes. Rows that two tiles
// need are computed twice.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// A kernel whose result is cut along one dimension.
struct TileCut {
  // For row v, what it reads of a buffer made elsewhere, wherever it reads it: rows stride * v + first to
  // stride * v + last.
  struct Read {
    std::string buffer;
    size_t dim;
    int64_t stride, first, last;
  };

  size_t dim;                          // of the result
  int64_t rows;                        // of the result, without its border
  int64_t border;                      // rows of that before the first
  std::vector<std::string> variables;  // of each stage: that of its rows
  std::vector<Read> reads;
};

// Nothing where the rows of the result cannot be computed one by one.
std::optional<TileCut> cut_along(const std::vector<lowering::Stage>& stages, const std::string& result,
                                 size_t dim);

// The rows that a kernel makes for a tile: as many for each, and all of them rows that there are.
struct TileRows {
  int64_t rows, all;
  int64_t step, offset;  // tile b begins at row step * b + offset, or as near to it as there are rows
  int64_t tiles;

  Dim first(const Dim& tile) const;
};

// A kernel that is computed tile by tile.
struct TiledKernel {
  std::vector<lowering::Stage> stages;
  lowering::Group group;
  std::string result;
  std::vector<TileCut> cuts;   // along each dimension that tiles are cut along
  std::vector<TileRows> rows;  // along each of these
};

constexpr int64_t kMostTiles = 1024;  // along one dimension

// The kernels of a group of tiles, each of which ends with the stage that makes its result, cut along the
// dimensions of the tiles, whatever their rows. Nothing where they cannot be.
std::optional<std::vector<TiledKernel>> cut_into_tiles(const std::vector<lowering::Stage>& stages,
                                                       const lowering::Group& group);
// Says which rows they make for tiles of these sizes. False where there are none: tiles are of one size, and
// not too many.
bool set_rows(std::vector<TiledKernel>& parts, const std::vector<lowering::TileSize>& tile);

}  // namespace tenon::fusion
