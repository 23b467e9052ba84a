// expression.h — a C++ expression as text, with how tightly its outermost operator binds, so that parentheses
// stand where they must.
#pragma once

#include <string>

namespace tenon::codegen::cuda {

enum class Binding : uint8_t { Choice, Or, And, Equality, Relation, Sum, Product, Unary, Primary };

struct Expression {
  std::string text;
  Binding binding = Binding::Primary;

  // As an operand of something that binds this tightly.
  std::string at(Binding least) const { return binding < least ? "(" + text + ")" : text; }
};

}  // namespace tenon::codegen::cuda
