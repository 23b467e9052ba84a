// fused_attention.h — two products, the second of which sums over what the first made and reductions went
// along: softmax(q kᵀ) v, and whatever masks, scales and casts stand between. The rows of the first can then
// be kept in cache, some at a time, from when they are made until they are summed up.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

struct FusedAttention {
  std::vector<size_t> items;  // the first product, what is done with its rows, and last the second product
  int64_t rows;               // how many axes they share
};

// All of them; no item is in two. What is in `kept` must be written down, and so is not kept in cache.
std::vector<FusedAttention> find_fused_attention(const std::vector<lowering::Item>& items,
                                                 const std::set<std::string>& kept, const Target& target);

// The factors of a product that is summed up: one that moves along an axis, and one that does not.
struct Factors {
  loops::Scalar along, across;
};
std::optional<Factors> factors_of(const loops::Definition& product, const loops::Axis& axis);

// Of the axes that two products share, the last that the factors moving along their own axes do not move
// along: its iterations read the same of them. Nothing where there is none.
std::optional<size_t> find_block_axis(const loops::Definition& first, const loops::Definition& second);

}  // namespace tenon::fusion
