// assign.h — the statements that a definition becomes.
#pragma once

#include <set>

#include "loops/definition.h"
#include "schedule/blocked_sum.h"

namespace tenon::schedule {

// The definition with these variables for its axes: first those of the rows, r0, r1, …, then its own.
loops::Definition renamed(const loops::Definition& definition, size_t rows, const std::string& prefix);

// The place of an iteration's element in each result.
std::vector<loops::Place> places_of(const loops::Definition& definition);

// The body of each iteration: stores the values, or combines them with what is stored.
loops::Assign assign(const loops::Definition& definition, std::vector<loops::Place> places);

// What the results are before anything is combined.
loops::Assign start(const loops::Definition& definition);

// The loops of a reduction, which accumulate into its result. `part` accumulates partial sums.
std::vector<loops::Statement> sum_up(const loops::Definition& sum, loops::Mark last,
                                     const std::optional<Parts>& parts, const loops::Buffer& part);
loops::Buffer part_of(const loops::Definition& sum);

// The stores of a pointwise epilogue of the first definition: those in `outputs`, with expressions inlined
// into each other. `first` is the result of the first, and `placed` maps an index or expression to the
// iteration.
std::vector<loops::Assign> build_epilogue(const std::vector<loops::Definition>& definitions,
                                          const std::set<std::string>& outputs, const loops::Scalar& first,
                                          const std::function<loops::Scalar(const loops::Scalar&)>& placed);

loops::Loop loop_over(const loops::Axis& axis, loops::Mark mark, std::vector<loops::Statement> body);
loops::Loop make_loop(std::string variable, Dim end, loops::Mark mark, std::vector<loops::Statement> body);
// Loops with one mark over axes, the last innermost.
std::vector<loops::Statement> around(const std::vector<loops::Axis>& axes, loops::Mark mark,
                                     std::vector<loops::Statement> body);

std::vector<loops::Statement> as_list(loops::Statement statement);
void append(std::vector<loops::Statement>& to, std::vector<loops::Statement> statements);

// Loops over axes around a body, the last innermost and vectorised.
std::vector<loops::Statement> nested(const std::vector<loops::Axis>& axes,
                                     std::vector<loops::Statement> body);

}  // namespace tenon::schedule
