// elements.h — elements as CUDA C++ computes with them: what a dtype is in registers and in memory, and what
// each function of loops/scalar.h is as an expression.
#pragma once

#include <span>

#include "codegen/cuda/expression.h"
#include "codegen/cuda/preamble.h"
#include "loops/scalar.h"

namespace tenon::codegen::cuda {

// In registers f16 and bf16 are floats that happen to be so short.
std::string_view register_type(DType dtype);
std::string_view stored_type(DType dtype);

class ElementText {
 public:
  explicit ElementText(Preamble& preamble) : preamble_(preamble) {}

  Expression from_stored(DType dtype, const Expression& stored);
  Expression to_stored(DType dtype, const Expression& value);

  Expression number(DType dtype, const loops::Number& value);
  // What changes nothing when it is combined by the function.
  Expression neutral(loops::Function function, DType dtype);

  // The function in this dtype, of operands in registers, not yet fitted. Division of integers is by what is
  // not 0, and Require is for those who can leave the kernel.
  Expression apply(loops::Function function, DType dtype, std::span<const Expression> operands);
  // 2 to the power of a f32.
  Expression power_of_two(const Expression& exponent);
  // To a narrow float, not yet fitted.
  Expression cast(DType from, DType to, const Expression& value);
  // a * b + c: rounded once, or sums of packed products.
  Expression multiply_add(loops::Function function, DType dtype, const Expression& a, const Expression& b,
                          const Expression& c);
  // A float that is known to be within 32 bits, or NaN, which is 0.
  Expression cast_limited(DType to, const Expression& value);

  // The nearest number of a narrow float; the low bits of an integer.
  Expression fit(DType dtype, const Expression& value);
  // Whether `fit` changes a float, so that it need not come before a conversion that rounds as well.
  static bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

 private:
  Expression call(std::string_view function, std::span<const Expression> operands);
  Expression helper(std::string_view function, std::span<const Expression> operands);
  Expression of_floats(loops::Function function, DType dtype, std::span<const Expression> operands);
  Expression of_integers(loops::Function function, DType dtype, std::span<const Expression> operands);

  Preamble& preamble_;
};

}  // namespace tenon::codegen::cuda
