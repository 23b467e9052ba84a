// constants.h — constants short enough to be shown where they are used.
#pragma once

#include <optional>
#include <string>

#include "ops/data.h"

namespace tenon {

struct NumberStyle {
  std::string_view yes, no;  // of bool
  bool point;                // whether the float two is 2.0 or 2
};

inline constexpr NumberStyle kPythonNumbers = {"True", "False", true};
inline constexpr NumberStyle kPlainNumbers = {"true", "false", false};

// The shortest digits that give the same number of that dtype.
std::string float_text(double value, DType dtype, bool point);

// The elements of a tensor, each as text.
std::vector<std::string> element_texts(const Tensor& tensor, const NumberStyle& style);

// 2.0 for a scalar, [1, 2] for a short vector. Nothing for a value that is no constant, or is too long or of
// too many dimensions to stand in a line.
std::optional<std::string> short_constant(Value value, const NumberStyle& style);

}  // namespace tenon
