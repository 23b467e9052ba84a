// elements.h — elements as LLVM computes with them: what a dtype is in registers and in memory, and what each
// function of loops/scalar.h is in instructions. Everything works on one element and on vectors alike.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/math.h"
#include "loops/scalar.h"

namespace tenon::codegen {

using Builder = llvm::IRBuilder<>;

// In registers f16 and bf16 are floats that happen to be so short, and bool is i1.
llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int64_t lanes);
llvm::Type* stored_type(llvm::LLVMContext& context, DType dtype, int64_t lanes);

llvm::Value* repeat(Builder& builder, llvm::Value* value, int64_t lanes);

class ElementBuilder {
 public:
  // `fail` is told of a condition (one or a vector) under which the kernel fails.
  ElementBuilder(Builder& builder, MathOptions math, std::function<void(llvm::Value* condition)> fail)
      : builder_(builder), math_(math), fail_(std::move(fail)) {}

  llvm::Value* from_stored(DType dtype, llvm::Value* stored);
  llvm::Value* to_stored(DType dtype, llvm::Value* value);

  llvm::Value* number(DType dtype, const loops::Number& value);
  // What changes nothing when it is combined by the function.
  llvm::Value* neutral(loops::Function function, DType dtype);
  llvm::Value* cast(DType from, DType to, llvm::Value* value);
  // The greater of a float and `least`, or 0 of NaN, as an integer; 32 bits must be enough for it.
  llvm::Value* cast_limited(DType to, llvm::Value* value, double least);
  // Of operands of one dtype (but for a condition); not Cast.
  llvm::Value* apply(loops::Function function, DType dtype, std::span<llvm::Value* const> operands);
  // A vector of f32 by one number, as fast as multiplying where the machine has fused multiply-add.
  llvm::Value* divide_by_one(llvm::Value* vector, llvm::Value* number);

 private:
  llvm::Value* of_floats(loops::Function function, std::span<llvm::Value* const> operands);
  llvm::Value* of_integers(loops::Function function, DType dtype, std::span<llvm::Value* const> operands);
  llvm::Value* divide_integers(loops::Function function, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(loops::Function function, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(loops::Function function, DType dtype, llvm::Value* a, llvm::Value* b);
  // The nearest number of a narrow float; the low bits of an integer narrower than a byte.
  llvm::Value* fit(DType dtype, llvm::Value* value);
  llvm::Value* round_to_bf16(llvm::Value* value);
  // A double as a float from which rounding to less gives what rounding the double would.
  llvm::Value* shorten_safely(llvm::Value* value);
  llvm::Value* whole_number(DType to, llvm::Value* value);
  llvm::Type* type_like(llvm::Value* value, llvm::Type* element);
  llvm::Value* constant_like(llvm::Value* value, int64_t number);

  Builder& builder_;
  MathOptions math_;
  std::function<void(llvm::Value*)> fail_;
};

}  // namespace tenon::codegen
