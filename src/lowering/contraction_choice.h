// contraction_choice.h — what tuning found for a contraction: the parts of a plan that it replaces.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

namespace tenon::lowering {

// What is empty is left to the cost model. What does not fit the contraction is clamped or ignored: any
// choice gives a correct program.
struct ContractionChoice {
  // Of a convolution: its Winograd tile (schedule/cpu/winograd.h), or 0 for direct convolution.
  std::optional<int64_t> winograd_tile = {};
  std::optional<int64_t> tile_rows = {}, filter_parts = {};  // of a block of tiles; see WinogradBlocks
  std::optional<int64_t> mr = {}, nr = {};                   // of the register tile; see GemmTile
  std::optional<bool> pack_a = {};                           // see PackedA
  std::optional<bool> bf16x3 = {};                           // see bf16x3_matmul.h

  friend auto operator<=>(const ContractionChoice&, const ContractionChoice&) = default;
};

// By the hash of a contraction and of what it runs on; see schedule/cpu/tuned_contractions.h.
using ContractionKey = uint64_t;
using ContractionChoices = std::map<ContractionKey, ContractionChoice>;

// Of a stage: the contraction that its time counts to, and what tuning chose for that.
struct ContractionPart {
  ContractionKey key;
  ContractionChoice choice = {};
};

}  // namespace tenon::lowering
