// accesses.h — where statements read and write, and how that moves from one iteration of a loop to the next.
#pragma once

#include <functional>

#include "loops/uses.h"

namespace tenon::codegen::cuda {

// Calls f for every use by the statements, and those within them.
void for_each_use(const std::vector<loops::Statement>& body, const std::function<void(const loops::Use&)>& f);

// The element that the statement copies as it is, or where a condition holds, and else 0; null where it does
// something else.
const loops::Scalar* copied_by(const loops::Assign& assign);

// The statements of a thread loop that write the same place in each iteration, but for buffers of its own.
std::vector<const loops::Assign*> find_folds(const loops::Loop& loop);

bool mentions(const std::vector<loops::Scalar>& at, const std::string& variable);

// In elements from the start of the buffer. Nothing where data says where it is.
std::optional<Dim> offset_of(const loops::Buffer& buffer, const std::vector<loops::Scalar>& at);

// What `count` consecutive iterations of a loop access, the first of which is a multiple of that number from
// its begin.
enum class Movement : uint8_t {
  None,     // one element
  Aligned,  // as many that lie side by side, from a multiple of their number on
  Near,     // others that lie near each other
  Far,
};
Movement movement_of(const loops::Buffer& buffer, const std::vector<loops::Scalar>& at,
                     const loops::Loop& loop, int64_t count);

}  // namespace tenon::codegen::cuda
