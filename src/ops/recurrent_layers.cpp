#include "ops/recurrent_layers.h"

#include "ops/words.h"

namespace tenon {

Direction direction_of(const Node& n) {
  return named<Direction>(
      n, "direction",
      {{"forward", Direction::Forward}, {"reverse", Direction::Reverse}, {"bidirectional", Direction::Both}});
}

int64_t direction_count(const Node& n) { return direction_of(n) == Direction::Both ? 2 : 1; }

std::vector<RecurrentFunction> recurrent_functions(const Node& n, const RecurrentLayer& layer) {
  return recurrent_functions(n, layer.activations, direction_count(n));
}

}  // namespace tenon
