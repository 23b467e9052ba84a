#include "schedule/cpu/contraction_candidates.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/units.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/winograd.h"

namespace tenon::schedule {

using lowering::ContractionChoice;
using lowering::Stage;

namespace {

constexpr int64_t kMostVectors = 4;

class ChoiceLister {
 public:
  ChoiceLister(const Stage& sum, const Target& target) : sum_(sum), target_(target) {
    if (!sum.winograd_tile)
      tile_ = choose_gemm_tile(sum.definition, target, true, sum.packed_b, choice_of(sum));
    made_ = find_made();
  }

  const ContractionChoice& made() const { return made_; }

  std::vector<ContractionChoice> others() {
    if (sum_.contraction && sum_.contraction->may_use_winograd)
      for (int64_t tile : {0, 2, 4})
        if (tile != made_.tile)
          add({.tile = tile});
    if (made_.split)
      add({.split = !*made_.split});
    if (sum_.winograd_tile)
      add_tile_blocks();
    else if (made_.rows)
      add_register_blocks();
    return std::move(others_);
  }

 private:
  ContractionChoice find_made() const {
    if (sum_.winograd_tile) {
      const TileBlocks blocks = tile_blocks(sum_.definition, *sum_.winograd_tile, target_, choice_of(sum_));
      return {.tile = sum_.winograd_tile, .tile_rows = blocks.rows, .filter_parts = blocks.parts};
    }
    ContractionChoice made;
    if (sum_.contraction && sum_.contraction->may_use_winograd)
      made.tile = 0;
    if (sum_.contraction && sum_.contraction->may_split)
      made.split = tile_ && tile_->tiles;
    if (!tile_ || !tile_->row || tile_->tiles || tile_->nr % lanes_of_vector() != 0)
      return made;
    made.rows = tile_->mr;
    made.vectors = tile_->nr / lanes_of_vector();
    if (sum_.packed_a || may_have_row_blocks())
      made.packed_a = sum_.packed_a.has_value();
    return made;
  }

  bool may_have_row_blocks() const {
    const ContractionChoice wanted{.rows = tile_->mr, .packed_a = true};
    return sum_.packed_b && choose_packed_a(sum_.definition, *sum_.packed_b, target_, wanted).has_value();
  }

  int64_t lanes_of_vector() const {
    return lanes_of_block(sum_.definition.results.front().dtype, target_) / kRegistersPerVector;
  }

  void add(const ContractionChoice& choice) {
    if (choice != made_ && std::ranges::find(others_, choice) == others_.end())
      others_.push_back(choice);
  }

  void add_tile_blocks() {
    const TileBlocks blocks = tile_blocks(sum_.definition, *sum_.winograd_tile, target_, choice_of(sum_));
    const auto add_blocks = [&](int64_t rows, int64_t parts) {
      add({.tile = sum_.winograd_tile,
           .tile_rows = std::clamp<int64_t>(rows, 1, blocks.down),
           .filter_parts = std::clamp<int64_t>(parts, 1, blocks.most_parts)});
    };
    add_blocks((blocks.rows + 1) / 2, blocks.parts);
    add_blocks(2 * blocks.rows, blocks.parts);
    add_blocks(blocks.rows, 2 * blocks.parts);
    add_blocks(blocks.rows, (blocks.parts + 1) / 2);
    add_blocks(2 * blocks.rows, 2 * blocks.parts);
  }

  void add_register_blocks() {
    if (made_.packed_a) {
      ContractionChoice moved = made_;
      moved.packed_a = !*made_.packed_a;
      add(moved);
    }
    add_rows(*made_.vectors, true);
    for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors)
      if (vectors != made_.vectors && fills_lanes(vectors) && share_factor(vectors))
        add_rows(vectors, false);
  }

  // Whether the lanes of a tile this wide share an operand: groups of channels do not share theirs.
  bool share_factor(int64_t vectors) const {
    return !loops::mentions(*tile_->across, sum_.definition.axes.back().variable) ||
           *made_.vectors % vectors == 0;
  }

  // Whether tiles this wide waste few lanes past the last.
  bool fills_lanes(int64_t vectors) const {
    const Dim size = tile_->lane_size(sum_.definition);
    const int64_t lanes = vectors * lanes_of_vector();
    if (!size.is_constant() || *size.constant() < lanes)
      return false;
    const int64_t computed = *ceil_div(size, lanes).constant() * lanes;
    return computed - *size.constant() <= *size.constant() / 8;
  }

  // As many rows as registers allow, in tiles of about the same size; with `more`, some others.
  void add_rows(int64_t vectors, bool more) {
    const int64_t most = (target_.vector_registers - 2 - vectors) / vectors;
    if (most < 1)
      return;
    const auto add_block = [&](int64_t rows) {
      ContractionChoice choice = made_;
      choice.rows = rows;
      choice.vectors = vectors;
      add(choice);
    };
    const std::optional<int64_t> size = tile_->row_size(sum_.definition).constant();
    if (!size) {
      add_block(most);
      add_block(std::max<int64_t>(most / 2, 1));
      return;
    }
    if (*size == 0)
      return;
    const int64_t blocks = (*size + most - 1) / most;
    add_block((*size + blocks - 1) / blocks);
    if (!more)
      return;
    add_block((*size + blocks) / (blocks + 1));
    if (*size >= most && blocks * most - *size <= *size / 8)
      add_block(most);
  }

  const Stage& sum_;
  const Target& target_;
  std::optional<GemmTile> tile_;
  ContractionChoice made_;
  std::vector<ContractionChoice> others_;
};

}  // namespace

ContractionChoice choice_made(const Stage& sum, const Target& target) {
  return ChoiceLister(sum, target).made();
}

std::vector<ContractionChoice> contraction_candidates(const Stage& sum, const Target& target) {
  return ChoiceLister(sum, target).others();
}

std::string describe(const ContractionChoice& choice) {
  const auto count = [](int64_t number, std::string_view what) {
    return format_count(static_cast<uint64_t>(number), what);
  };
  std::vector<std::string> parts;
  if (choice.tile)
    parts.push_back(*choice.tile == 0 ? "direct" : fmt::format("Winograd {0}x{0}", *choice.tile));
  if (choice.tile_rows && choice.filter_parts)
    parts.push_back(
        fmt::format("{} x {}", count(*choice.tile_rows, "row"), count(*choice.filter_parts, "part")));
  if (choice.rows && choice.vectors)
    parts.push_back(fmt::format("{} x {}", count(*choice.rows, "row"), count(*choice.vectors, "vector")));
  if (choice.packed_a.value_or(false))
    parts.emplace_back("packed A");
  if (choice.split.value_or(false))
    parts.emplace_back("bf16x3");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace tenon::schedule
