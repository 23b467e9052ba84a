// assign.h — the statements that a definition becomes.
#pragma once

#include <set>

#include "loops/definition.h"
#include "schedule/cpu/blocked_sum.h"

namespace tenon::schedule {

// The definition with these variables for its axes: first those of the rows, r0, r1, …, then its own.
loops::Definition renamed(const loops::Definition& definition, size_t rows, const std::string& prefix);

// Where the element of a point stands in each result.
std::vector<loops::Place> places_of(const loops::Definition& definition);

// What happens in each iteration: the values are put there, or combined with what is there.
loops::Assign assign(const loops::Definition& definition, std::vector<loops::Place> places);

// What the results are before anything is combined.
loops::Assign start(const loops::Definition& definition);

// The loops of a reduction, which go on from what is in its result. `part` is where they add up parts.
std::vector<loops::Statement> sum_up(const loops::Definition& sum, loops::Mark last,
                                     const std::optional<Parts>& parts, const loops::Buffer& part);
loops::Buffer part_of(const loops::Definition& sum);

// What is stored where definitions go on with the results of the first, element by element: what is in
// `outputs`, with their formulas put into each other. `first` is its result, and `placed` an index or formula
// of a definition where it is computed.
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

// Loops over axes around a body, the last innermost and in vectors.
std::vector<loops::Statement> nested(const std::vector<loops::Axis>& axes,
                                     std::vector<loops::Statement> body);

}  // namespace tenon::schedule
