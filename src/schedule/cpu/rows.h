// rows.h — stages that share their first axes, done row by row.
#pragma once

#include <set>

#include "loops/definition.h"

namespace tenon::schedule {

// What is done of one row. The definitions share their first axes, so many and with the same variables; their
// other variables are their own. Only what is in `outputs` is written there, the rest is kept for the row.
std::vector<loops::Statement> do_row(const std::vector<loops::Definition>& definitions, size_t shared,
                                     const std::set<std::string>& outputs);

// What is done of one row, for several: each step of all of them before the next. There are at most so many.
std::vector<loops::Statement> do_abreast(std::vector<loops::Statement> row, const loops::Axis& rows,
                                         int64_t most);

}  // namespace tenon::schedule
