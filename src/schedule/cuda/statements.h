// statements.h — short forms of the statements that schedules for thread blocks are made of.
#pragma once

#include "loops/kernel.h"

namespace tenon::schedule::cuda {

inline const std::string kThread = "p0";  // the variable of loops over the threads of a block

inline Dim symbol(const std::string& variable) { return Dim::symbol(variable); }
inline loops::Scalar index(const Dim& dim) { return loops::Scalar::index(dim); }

loops::Scalar element(const loops::Buffer& from, const std::vector<Dim>& at);
loops::Statement store(const loops::Buffer& to, const std::vector<Dim>& at, const loops::Scalar& value,
                       const std::string& combine = "");

// The body for each value of a variable; where that is one, there is no loop.
std::vector<loops::Statement> loop(const std::string& variable, const Dim& count, loops::Mark mark,
                                   std::vector<loops::Statement> body);
// The body with a variable of one value.
std::vector<loops::Statement> where(const std::string& variable, const Dim& value,
                                    std::vector<loops::Statement> body);
std::vector<loops::Statement> guarded(const std::vector<Dim>& conditions, std::vector<loops::Statement> body);

// Whether an index has grown beyond what a Dim says, as those of many axes can.
bool has_unknown_index(const std::vector<loops::Statement>& body);

}  // namespace tenon::schedule::cuda
