// graph_main.h — the main function of a fuzzer of graphs.
//
//   NAME COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#pragma once

#include <functional>
#include <string>

#include "base/hash.h"
#include "fuzz/isolate.h"
#include "ops/registry.h"

namespace tenon::fuzz {

// A graph is checked by the seed that it is made from.
using CheckGraph = std::function<void(uint64_t seed)>;

inline int check_graphs(int64_t count, uint64_t seed, int64_t first, unsigned seconds,
                        const CheckGraph& check) {
  const int64_t failures = run_isolated(count, seconds, [&](int64_t i) {
    try {
      check(hash_combine(seed, static_cast<uint64_t>(first + i)));
    } catch (const std::exception& error) {
      std::printf("graph %ld of seed %lu: %s\n", static_cast<long>(first + i),
                  static_cast<unsigned long>(seed), error.what());
      std::fflush(stdout);
      std::abort();
    }
  });
  std::printf("%ld passed, %ld failed\n", static_cast<long>(count - failures), static_cast<long>(failures));
  return failures == 0 ? 0 : 1;
}

// Each graph may take `seconds`.
inline int graph_main(int argc, char** argv, const char* name, unsigned seconds, const CheckGraph& check) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: %s COUNT SEED [FIRST]\n", name);
    return 2;
  }
  register_ops();
  try {
    return check_graphs(std::stol(argv[1]), std::stoul(argv[2]), argc > 3 ? std::stol(argv[3]) : 0, seconds,
                        check);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
}

}  // namespace tenon::fuzz
