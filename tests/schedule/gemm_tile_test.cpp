// The register tile of a product, for targets by name.
#include "schedule/cpu/gemm_tile.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"
#include "target/named_targets.h"

namespace tenon {

using lowering::GemmTile;
using schedule::choose_gemm_tile;

namespace {

// "mr x nr" of the only product of a graph.
std::string tile_of(std::string_view text, std::string_view target) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  for (const lowering::KernelNode& node : lowering::lower_graph(*graph).nodes)
    if (node.stage && node.stage->definition.reduces()) {
      const std::optional<GemmTile> tile =
          choose_gemm_tile(node.stage->definition, target_named(target), /*may_pack=*/true);
      return tile ? fmt::format("{} x {}{}", tile->mr, tile->nr, tile->tiles ? " by matrices" : "") : "none";
    }
  return "no product";
}

TEST(GemmTile, FillsTheRegistersOfATarget) {
  const auto tile = [](std::string_view target) {
    return tile_of("graph g(%a: f32[256,256], %b: f32[256,256]) { %0 = matmul(%a, %b) return %0 }", target);
  };
  EXPECT_EQ(tile("avx2"), "6 x 16");
  EXPECT_EQ(tile("avx512"), "13 x 32");
  EXPECT_EQ(tile("amx"), "13 x 32");
  EXPECT_EQ(tile("neon"), "6 x 16");
  EXPECT_EQ(tile("neon-i8mm"), "6 x 16");
}

TEST(GemmTile, HasNoMoreRowsThanThereAre) {
  EXPECT_EQ(tile_of("graph g(%a: f32[3,256], %b: f32[256,256]) { %0 = matmul(%a, %b) return %0 }", "avx512"),
            "3 x 32");
}

TEST(GemmTile, IsNotForSumsOfRows) {
  EXPECT_EQ(tile_of("graph g(%a: f32[256,256]) { %0 = reduce_sum(%a, axes=[1]) return %0 }", "avx512"),
            "none");
}

}  // namespace
}  // namespace tenon
