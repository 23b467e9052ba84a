#include "schedule/cpu/contraction_candidates.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/units.h"
#include "loops/contraction.h"
#include "lowering/contraction_plan.h"
#include "schedule/cpu/gemm_tile.h"

namespace tenon::schedule {

using lowering::ContractionChoice;
using lowering::ContractionPlan;
using lowering::Stage;

namespace {

constexpr int64_t kMostVectors = 4;

class ChoiceLister {
 public:
  ChoiceLister(const Stage& sum, const Target& target)
      : sum_(sum), plan_(*sum.plan), target_(target), made_(find_made()) {}

  const ContractionChoice& made() const { return made_; }

  std::vector<ContractionChoice> others() {
    if (plan_.may_use_winograd)
      for (int64_t tile : {0, 2, 4})
        if (tile != made_.winograd_tile)
          add({.winograd_tile = tile});
    if (made_.bf16x3)
      add({.bf16x3 = !*made_.bf16x3});
    if (plan_.winograd)
      add_winograd_blocks();
    else if (made_.mr)
      add_register_blocks();
    return std::move(others_);
  }

 private:
  ContractionChoice find_made() const {
    if (plan_.winograd)
      return {.winograd_tile = plan_.winograd->tile,
              .tile_rows = plan_.winograd->blocks.rows,
              .filter_parts = plan_.winograd->blocks.parts};
    ContractionChoice made;
    if (plan_.may_use_winograd)
      made.winograd_tile = 0;
    if (plan_.may_use_bf16x3)
      made.bf16x3 = plan_.bf16x3;
    if (!plan_.tile || !plan_.tile->row || plan_.tile->tiles || plan_.tile->nr % lanes_of_vector() != 0)
      return made;
    made.mr = plan_.tile->mr;
    made.nr = plan_.tile->nr;
    if (plan_.may_pack_a)
      made.pack_a = plan_.pack_a.has_value();
    return made;
  }

  int64_t lanes_of_vector() const {
    return lanes_of_block(sum_.definition.results.front().dtype, target_) / kRegistersPerVector;
  }

  void add(const ContractionChoice& choice) {
    if (choice != made_ && std::ranges::find(others_, choice) == others_.end())
      others_.push_back(choice);
  }

  void add_winograd_blocks() {
    const lowering::WinogradBlocks& blocks = plan_.winograd->blocks;
    const auto add_blocks = [&](int64_t rows, int64_t parts) {
      add({.winograd_tile = plan_.winograd->tile,
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
    if (made_.pack_a) {
      ContractionChoice other = made_;
      other.pack_a = !*made_.pack_a;
      add(other);
    }
    add_rows(*made_.nr / lanes_of_vector(), true);
    for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors)
      if (vectors * lanes_of_vector() != made_.nr && fills_lanes(vectors) && share_factor(vectors))
        add_rows(vectors, false);
  }

  // Whether the lanes of a tile this wide share an operand: groups of channels do not share theirs.
  bool share_factor(int64_t vectors) const {
    const loops::Product product = loops::match_products(sum_.definition.values.front()).front();
    return !loops::mentions(product.operand(1 - plan_.tile->along), sum_.definition.axes.back().variable) ||
           *made_.nr % (vectors * lanes_of_vector()) == 0;
  }

  // Whether tiles this wide waste few lanes past the last.
  bool fills_lanes(int64_t vectors) const {
    const Dim size = plan_.tile->lane_size(sum_.definition);
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
      choice.mr = rows;
      choice.nr = vectors * lanes_of_vector();
      add(choice);
    };
    const std::optional<int64_t> size = plan_.tile->row_size(sum_.definition).constant();
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
  const ContractionPlan& plan_;
  const Target& target_;
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
  if (choice.winograd_tile)
    parts.push_back(*choice.winograd_tile == 0 ? "direct"
                                               : fmt::format("Winograd {0}x{0}", *choice.winograd_tile));
  if (choice.tile_rows && choice.filter_parts)
    parts.push_back(
        fmt::format("{} x {}", count(*choice.tile_rows, "row"), count(*choice.filter_parts, "part")));
  if (choice.mr && choice.nr)
    parts.push_back(fmt::format("tile {}x{}", *choice.mr, *choice.nr));
  if (choice.pack_a.value_or(false))
    parts.emplace_back("packed A");
  if (choice.bf16x3.value_or(false))
    parts.emplace_back("bf16x3");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace tenon::schedule
