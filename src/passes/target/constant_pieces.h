// constant_pieces.h — values of a graph that are known before it runs.
#pragma once

#include "ir/graph.h"
#include "tensor/literal.h"

namespace tenon {

// What a constant is made of: one literal, or several that are joined along a dimension, as the weights of
// products that became one are.
struct Pieces {
  std::vector<const Literal*> literals;
  size_t dim = 0;  // along which they are joined
};

// Nothing where the value is no constant.
std::optional<Pieces> pieces_of(Value value);

inline bool is_constant(Value value) { return pieces_of(value).has_value(); }

// The nodes that hold what a constant is made of.
std::vector<Node*> holders_of(Value constant);

// All of it, in memory or where it lies in a file.
Tensor join(const Pieces& pieces);

}  // namespace tenon
