// contraction_choice.h — choices for a contraction that override the cost model.
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
  std::optional<int64_t> tile = {};
  std::optional<int64_t> tile_rows = {}, filter_parts = {};  // of a block of tiles; see there, too
  // Of the register tile: rows, and vectors per row.
  std::optional<int64_t> rows = {}, vectors = {};
  std::optional<bool> packed_a = {};  // whether A is packed first; see PackedA
  std::optional<bool> split = {};     // whether operands are split into three bf16; see bf16x3_matmul.h

  friend auto operator<=>(const ContractionChoice&, const ContractionChoice&) = default;
};

// By the hash of a contraction and of what it runs on; see schedule/cpu/tuned_contractions.h.
using ContractionKey = uint64_t;
using ContractionChoices = std::map<ContractionKey, ContractionChoice>;

// Of a stage: the contraction that its time counts to, and the choice for that.
struct ContractionPart {
  ContractionKey key;
  ContractionChoice choice = {};
  bool may_use_winograd = false;  // numerics and sizes allow it
  bool may_split = false;         // whether bf16x3 is allowed
};

}  // namespace tenon::lowering
