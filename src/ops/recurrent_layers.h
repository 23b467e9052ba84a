// recurrent_layers.h — what differs between recurrent layers, and their directions.
#pragma once

#include "ops/recurrent_activations.h"

namespace tenon {

struct RecurrentLayer {
  int64_t gates;
  size_t activations;   // of one direction
  bool has_cell_state;  // besides the hidden one
  bool has_variant;     // gru: reset_after; lstm: coupled_gates
};
inline constexpr RecurrentLayer kRnn = {1, 1, false, false}, kGru = {3, 2, false, true},
                                kLstm = {4, 3, true, true};

enum class Direction : uint8_t { Forward, Reverse, Both };
Direction direction_of(const Node& n);
int64_t direction_count(const Node& n);

// The functions of every direction in turn.
std::vector<RecurrentFunction> recurrent_functions(const Node& n, const RecurrentLayer& layer);

}  // namespace tenon
