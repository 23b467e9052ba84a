// judge.h — whether elements that a lowered node or a kernel computes are those of the graph, given that it
// may round otherwise.
#pragma once

#include "verify/verify.h"

namespace tenon {

// Compares as for a rewrite that reassociates. Where elements differ, they are computed again from operands
// that are nudged (conditioning.h), and what that moves as far is rounding. `name` is what notes call it.
Check judge(const Tensor& actual, const Tensor& expected,
            const std::function<Tensor(uint64_t seed)>& compute_nudged, const std::string& name,
            double tolerance);

// What one of several checks adds to all of them; of those that fail, the first counts.
void add_check(Check& all, Check one);

// The elements at these linear indices.
Tensor elements_at(const Tensor& tensor, const std::vector<int64_t>& indices);

}  // namespace tenon
