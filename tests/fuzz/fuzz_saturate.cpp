// fuzz_saturate.cpp — random graphs, optimised with equality saturation, and what must stay of them then
// (optimised.h).
//
//   fuzz_saturate COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#include "fuzz/optimised.h"
#include "passes/saturate.h"

int main(int argc, char** argv) {
  constexpr unsigned kSecondsPerGraph = 120;
  // By members and candidates, not by the clock: so a graph is always optimised in the same way.
  const std::vector<tenon::Pass> pipeline = tenon::saturating_pipeline(
      {.seconds = 1e6, .limits = {.members = 150, .candidates = 500, .rounds = 5}});
  return tenon::fuzz::graph_main(argc, argv, "fuzz_saturate", kSecondsPerGraph,
                                 [&](uint64_t seed) { tenon::fuzz::check_optimised(seed, pipeline); });
}
