// einsum.h — sums of products of tensors whose dimensions are named by letters.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& einsum_ops();

// einsum({a, b}, "bij,bjk->bik") is a product of matrices.
Value einsum(const std::vector<Value>& operands, std::string_view equation);

// An equation, read for operands of known ranks. Each dimension has a label: a letter, or for one that an
// ellipsis stands for a number below 0 that counts from the end, so that ellipses line up as broadcasting
// does.
struct EinsumTerms {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
};
EinsumTerms read_equation(std::string_view equation, const std::vector<int64_t>& ranks);

}  // namespace tenon
