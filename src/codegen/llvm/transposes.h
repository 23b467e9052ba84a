// transposes.h — loads that are strided along the lanes and contiguous along the loop around them: squares of
// elements are loaded row by row and transposed in registers.
#pragma once

#include "codegen/llvm/tiles.h"

namespace tenon::codegen {

// Such as
//   for r in 0..100 { for c in 0..64 vector { y[r,c] = x[c,r] }}
struct TransposedNest {
  const loops::Loop &along, &lanes;
  std::vector<loops::Scalar> loads;
  int64_t side;  // of the squares
};

class TransposeEmitter : protected TileEmitter {
 protected:
  using TileEmitter::TileEmitter;

  // Nothing where a statement reads what another writes, two write in one buffer, rows write in each other's
  // places, or a statement may not be computed everywhere.
  std::optional<TransposedNest> find_transposed(const loops::Loop& loop) const;
  // Whether squares leave nothing of the loop.
  static bool has_whole_squares_alone(const loops::Loop& loop, int64_t side);

  // The whole squares: `run` runs the body once for each iteration of the outer loop in a square, `run_rest`
  // the lanes beside the squares. Returns the iteration of the outer loop from which on nothing ran.
  llvm::Value* run_squares(const TransposedNest& nest, const std::function<void()>& run,
                           const std::function<void(llvm::Value* begin, llvm::Value* end)>& run_rest);

 private:
  // Whether iterations in different rows and lanes write in different places: squares compute some lanes of
  // the next rows before the other lanes of this one.
  bool is_apart(const loops::Place& place, const loops::Loop& rows, const loops::Loop& lanes) const;
  std::vector<llvm::Value*> load_columns(const loops::Scalar& load, int64_t side);
};

}  // namespace tenon::codegen
