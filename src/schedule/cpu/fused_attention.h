// fused_attention.h — the loops of fused attention: exact softmax over whole rows, one block of queries at a
// time.
#pragma once

#include <set>

#include "loops/definition.h"
#include "schedule/context.h"

namespace tenon::schedule {

// The definitions are the product q kᵀ, the row-wise stages after it, the product with v, and its epilogue
// (fusion/fused_attention.h). They share the first `rows` axes. Only `outputs` are stored.
std::vector<loops::Statement> build_fused_attention(const std::vector<loops::Definition>& definitions,
                                                    size_t rows, const std::set<std::string>& outputs,
                                                    const Context& context);

}  // namespace tenon::schedule
