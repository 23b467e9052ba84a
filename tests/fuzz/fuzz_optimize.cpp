// fuzz_optimize.cpp — random graphs, optimised, and what must stay of them then (optimised.h).
//
//   fuzz_optimize COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#include "fuzz/optimised.h"

int main(int argc, char** argv) {
  constexpr unsigned kSecondsPerGraph = 120;
  return tenon::fuzz::graph_main(argc, argv, "fuzz_optimize", kSecondsPerGraph, [](uint64_t seed) {
    tenon::fuzz::check_optimised(seed, tenon::portable_pipeline());
  });
}
