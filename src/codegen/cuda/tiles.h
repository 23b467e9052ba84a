// tiles.h — products of matrices by tensor cores, in registers: the warps of a thread loop load fragments of
// both factors from shared memory, and each adds the products to the sums that its threads have.
#pragma once

#include "codegen/cuda/thread_loops.h"
#include "codegen/cuda/tile_products.h"

namespace tenon::codegen::cuda {

class TileText : protected ThreadLoopText {
 protected:
  using ThreadLoopText::ThreadLoopText;
  ~TileText() = default;

  // Looks for products in a thread loop before its threads run.
  void find_tiles(const loops::Loop& threads);
  // A tile loop as instructions. False where it is none of these products.
  bool run_tile(const loops::Loop& loop);

 private:
  void load_fragments(const TileOperand& operand, const std::string& to, bool is_first);
  void multiply(const TileProduct& product, const std::string& a, const std::string& b);

  std::map<const loops::Loop*, TileProduct> products_;
};

}  // namespace tenon::codegen::cuda
