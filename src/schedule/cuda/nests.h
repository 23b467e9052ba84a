// nests.h — statements of schedules for thread blocks.
#pragma once

#include "loops/kernel.h"

namespace tenon::schedule::cuda {

loops::Scalar element(const loops::Buffer& from, const std::vector<Dim>& at);
loops::Statement store(const loops::Buffer& to, const std::vector<Dim>& at, const loops::Scalar& value,
                       const std::string& combine = "");

// A loop, or its body alone where that runs once.
std::vector<loops::Statement> loop(const std::string& variable, const Dim& count, loops::Mark mark,
                                   std::vector<loops::Statement> body);
// The body with a variable of one value.
std::vector<loops::Statement> where(const std::string& variable, const Dim& value,
                                    std::vector<loops::Statement> body);
std::vector<loops::Statement> guarded(const std::vector<Dim>& conditions, std::vector<loops::Statement> body);

// Whether an index has grown beyond what a Dim says, as those of many axes can.
bool has_unknown_index(const std::vector<loops::Statement>& body);

}  // namespace tenon::schedule::cuda
