// contraction.h — matches contractions: sums of products over reduced axes, such as matrix products and
// convolutions.
#pragma once

#include "loops/definition.h"

namespace tenon::loops {

// lhs * rhs, or the dot product of two words of int8 or bf16.
struct Product {
  Function function;  // Multiply, DotI8x4 or DotBf16x2
  Scalar lhs, rhs;

  bool multiplies() const { return function == Function::Multiply; }
  const Scalar& operand(size_t number) const { return number == 0 ? lhs : rhs; }
};
std::optional<Product> match_product(const Scalar& value);

// The products that an iteration adds: one, or the several of bf16 words that make up one in f32. Empty for
// other expressions.
std::vector<Product> match_products(const Scalar& value);

// A sum of products: result[batch, m, n] += lhs[batch, m, k] * rhs[batch, n, k], in any order of axes.
struct Contraction {
  std::vector<Product> products;    // as in match_products; at least one
  std::vector<size_t> m, n, batch;  // axes of the definition: of lhs alone, of rhs alone, and of both
  std::vector<size_t> k;            // reduced axes
  DType accumulator;

  const Product& product() const { return products.front(); }
};
std::optional<Contraction> match_contraction(const Definition& definition);

}  // namespace tenon::loops
