// tiles.h — products of matrices by tensor cores: the warps of a thread loop load fragments of both factors
// from shared memory, and each adds the products to the sums that its threads have. Warpgroups have
// instructions that read shared memory themselves, if it is swizzled.
#pragma once

#include "codegen/cuda/thread_loops.h"
#include "codegen/cuda/tile_products.h"

namespace tenon::codegen::cuda {

// What products of matrices make of the shared buffers of a region. None are of warpgroups unless all are.
struct RegionProducts {
  std::map<std::string, QuadBuffer> quads;  // in registers instead
  std::set<std::string> swizzled;           // factors of products of warpgroups
  std::set<const loops::Loop*> of_warpgroups;
};
RegionProducts find_region_products(const loops::ParallelRegion& region, int64_t threads);

class TileText : protected ThreadLoopText {
 protected:
  using ThreadLoopText::ThreadLoopText;
  ~TileText() = default;

  // Looks for products in a thread loop before its threads run.
  void find_tiles(const loops::Loop& threads);
  // A tile loop as instructions. False where it is none of these products.
  bool run_tile(const loops::Loop& loop);
  // Until no more than so many groups of products of warpgroups are under way.
  void wait_for_products(int later);
  // Until those have ended whose sums the statement uses.
  void wait_for_products_of(const loops::Statement& statement);

 private:
  void find_sequences(const std::vector<loops::Statement>& body);
  bool is_in_order(const TileProduct& product) const;
  void run_warps(const loops::Loop& loop, const TileProduct& product);
  void run_warpgroups(const loops::Loop& loop, const TileProduct& product);
  std::string multiply_by_warpgroup(const TileProduct& product);
  // Runs f for each step of k, in a loop that is unrolled.
  void for_each_step(const loops::Loop& loop, const std::function<void()>& f);
  void load_fragments(const TileOperand& operand, const std::string& to, bool is_first);
  // Those of the first factor that are in registers already, of a row of fragments, at the step of k.
  std::vector<std::string> fragments_at(const TileProduct& product, const std::string& row);
  void multiply(const TileProduct& product, const std::string& a, const std::string& b);

  std::map<const loops::Loop*, TileProduct> products_;
  std::set<const loops::Loop*> chained_;  // whose wgmma group the next product is in, too
  bool is_multiplying_ = false;           // what came before has not ended

 protected:
  // Emitted once, between the commit of a group and the wait for it.
  std::function<void()> overlapped_;
  int in_flight_ = 0;                   // groups of products that need not end where others begin
  std::set<std::string> accumulators_;  // of products that were not waited for
};

}  // namespace tenon::codegen::cuda
