// bands.h — kernels that run one after the other, on a part of their images at a time: what one makes is in
// cache when the next reads it, and has no place in memory.
//
// The result of the last kernel is cut into bands of rows. What each kernel before it must make for a band
// follows from what the others read: a window of 3 x 3 reads two rows more than it makes. Rows that two bands
// need are computed twice.
#pragma once

#include "fusion/stage.h"

namespace tenon {

// A kernel whose result is cut along one dimension.
struct BandCut {
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
std::optional<BandCut> cut_along(const std::vector<Stage>& stages, const std::string& result, size_t dim);

// The rows that a kernel makes for a band: as many for each, and all of them rows that there are.
struct BandRows {
  int64_t rows, all;
  int64_t step, offset;  // band b begins at row step * b + offset, or as near to it as there are rows
  int64_t bands;

  Dim first(const Dim& band) const;
};

// A kernel that is computed band by band.
struct BandPart {
  std::vector<Stage> stages;
  Group group;
  std::string result;
  std::vector<BandCut> cuts;   // along each dimension that bands are cut along
  std::vector<BandRows> rows;  // along each of these
};

constexpr int64_t kMostBands = 1024;  // along one dimension

// The kernels of a group of bands, each of which ends with the stage that makes its result, cut along the
// dimensions of the bands, whatever their rows. Nothing where they cannot be.
std::optional<std::vector<BandPart>> cut_into_bands(const std::vector<Stage>& stages, const Group& group);
// Says which rows they make for bands of these sizes. False where there are none: bands are of one size, and
// not too many.
bool set_rows(std::vector<BandPart>& parts, const std::vector<BandSize>& band);

}  // namespace tenon
