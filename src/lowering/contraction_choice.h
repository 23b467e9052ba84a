// contraction_choice.h — what of a sum of products may be chosen otherwise than estimates would.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

namespace tenon::lowering {

// What is empty is left to estimates. What does not fit the sum that it is for is cut to what does, or
// ignored: whatever it says, the program is right.
struct ContractionChoice {
  // Of a convolution: the size of its tiles (schedule/cpu/winograd.h), or 0 where windows are added up.
  std::optional<int64_t> tile = {};
  std::optional<int64_t> tile_rows = {}, filter_parts = {};  // of a block of tiles; see there, too
  // Of a block of results in registers: rows, and registers that each takes.
  std::optional<int64_t> rows = {}, vectors = {};
  std::optional<bool> packed_a = {};  // whether rows are moved into blocks first; see PackedA
  std::optional<bool> split = {};     // whether factors are split into parts; see bf16x3_matmul.h

  friend auto operator<=>(const ContractionChoice&, const ContractionChoice&) = default;
};

// By the hash of a sum and of what it runs on; see compiler/look_up_tuned_contractions.h.
using ContractionKey = uint64_t;
using ContractionChoices = std::map<ContractionKey, ContractionChoice>;

// Of a stage: the sum whose time it is part of, and what was chosen for that.
struct ContractionPart {
  ContractionKey key;
  ContractionChoice choice = {};
  bool may_use_winograd = false;  // whether it may be computed in tiles
  bool may_split = false;         // whether its factors may be split
};

}  // namespace tenon::lowering
