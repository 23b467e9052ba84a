// bf16x3_matmul.h — f32 products as six bf16 products on a matrix unit, without loss.
#pragma once

#include <array>

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// An f32 is the sum of three bf16: its upper half, that of the remainder, and the rest. Of the nine products
// of the parts of two f32, six suffice: the others are below f32 rounding. With matrix instructions for bf16
// (AMX) these six may take less time than one product in f32. Often they do not, where two threads share the
// matrix unit or operands come from memory, which are 1.5 times as large: so only tuning chooses it.
//
// Converts products with packed B that are planned so: a node for each part of A, and weights that are split
// at compile time.
void bf16x3_matmul(lowering::KernelGraph& graph);

// A product y[rows…,lane] += x[rows…,k] * w[k,lane].
struct Bf16x3Product {
  loops::Scalar x, w;             // loads
  std::vector<loops::Axis> rows;  // that x is read along
  loops::Axis summed;
  int64_t row_count = 1, depth = 0;
};

// Nothing where the sum is no product by weights for matrix tiles.
std::optional<Bf16x3Product> match_bf16x3(const loops::Definition& sum,
                                          const std::function<bool(const loops::Scalar&)>& is_weights);

// The sum as it is once its operands are split, with the buffers of the parts of x, and that of the weights.
loops::Definition split_definition(loops::Definition sum, const Bf16x3Product& product,
                                   const std::array<std::string, 3>& x, const std::string& w);

}  // namespace tenon::schedule
