// rows.h — row-wise fused stages: softmax, norms and what surrounds them.
#pragma once

#include <set>

#include "loops/definition.h"

namespace tenon::schedule {

// The body of one row. The definitions share their first axes, so many and with the same variables; their
// other variables are their own. Only `outputs` are stored, the rest is kept in row buffers.
std::vector<loops::Statement> do_row(const std::vector<loops::Definition>& definitions, size_t shared,
                                     const std::set<std::string>& outputs);

// The body of one row interleaved for several (unroll-and-jam): each step of all rows before the next. At
// most so many rows.
std::vector<loops::Statement> do_abreast(std::vector<loops::Statement> row, const loops::Axis& rows,
                                         int64_t most);

}  // namespace tenon::schedule
