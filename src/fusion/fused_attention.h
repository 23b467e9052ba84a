// fused_attention.h — finds softmax(q kᵀ) v with any masks, scales and casts in between, to be computed in
// one kernel. On a CPU that keeps blocks of whole score rows in cache, for an exact softmax; on a GPU it has
// FlashAttention's online one (online_attention.h).
#pragma once

#include <span>

#include "lowering/kernel_graph.h"
#include "rewrite/journal.h"

namespace tenon::fusion {

struct FusedAttention {
  std::vector<size_t> nodes;  // the first product, the row-wise stages, and last the second product
  int64_t rows;               // how many axes they share
  // Why it is not fused on a GPU; empty where it is.
  std::string obstacle = {};
};

struct FoundAttention {
  std::vector<FusedAttention> fused, declined;
};

// All of them; no node is in two. What is in `kept` must be stored, and so is not fused.
FoundAttention find_fused_attention(std::span<const lowering::KernelNode> nodes,
                                    const lowering::BufferTable& buffers,
                                    const std::set<lowering::BufferId>& kept, const Target& target,
                                    NumericsBudget numerics);

// The operands of a contraction: the one indexed by an axis, and the one that is not.
struct Factors {
  loops::Scalar along, across;
};
std::optional<Factors> factors_of(const loops::Definition& product, const loops::Axis& axis);

// Of the axes that two products share, the last one that indexes neither the keys nor the values, so that its
// iterations share them. Nothing where there is none.
std::optional<size_t> find_block_axis(const loops::Definition& first, const loops::Definition& second);

}  // namespace tenon::fusion
