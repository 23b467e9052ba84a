// write_graphs.cpp — the random graphs of fuzz_compile as files, for programs that compare two builds.
//
//   write_graphs FOLDER COUNT SEED [FIRST]      graph i of a seed is always the same, and becomes
//                                               FOLDER/graph_i.tenon, and graph_i_bound.tenon where sizes
//                                               of its symbols make sense
#include <filesystem>

#include "fuzz/graph_main.h"
#include "fuzz/growing_graph.h"
#include "fuzz/shrink.h"
#include "ir/print.h"

namespace tenon {
namespace {

void write_graph(const std::filesystem::path& folder, uint64_t seed, int64_t number) {
  fuzz::GrowingGraph random(hash_combine(seed, static_cast<uint64_t>(number)));
  const char* suffix = "";
  for (const std::unique_ptr<Graph>& graph : fuzz::graphs_of(random)) {
    save(*graph, folder / fmt::format("graph_{}{}.tenon", number, suffix));
    suffix = "_bound";
  }
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    std::fprintf(stderr, "usage: write_graphs FOLDER COUNT SEED [FIRST]\n");
    return 2;
  }
  tenon::register_ops();
  try {
    std::filesystem::create_directories(argv[1]);
    const int64_t first = argc > 4 ? std::stol(argv[4]) : 0;
    for (int64_t i = first; i < first + std::stol(argv[2]); ++i)
      tenon::write_graph(argv[1], std::stoul(argv[3]), i);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_graphs: %s\n", error.what());
    return 1;
  }
}
