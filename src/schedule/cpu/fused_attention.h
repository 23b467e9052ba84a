// fused_attention.h — the loops of two products with reductions along rows between them, some rows at a time.
#pragma once

#include <set>

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// The definitions are a product, what is done with its rows, a product that sums along them, and what goes on
// with its results (find_fused_attention.h); they share so many axes. Only what is in `outputs` is stored.
std::vector<loops::Statement> build_fused_attention(const std::vector<loops::Definition>& definitions,
                                                    size_t rows, const std::set<std::string>& outputs,
                                                    const Target& target);

}  // namespace tenon::schedule
