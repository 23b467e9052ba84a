// Which definitions are contractions, and what their axes are.
#include "loops/contraction.h"

#include <gtest/gtest.h>

namespace tenon::loops {
namespace {

Scalar at(const char* variable) { return Scalar::index(Dim::symbol(variable)); }
Scalar load(const char* buffer, std::vector<Scalar> place) {
  return Scalar::load(buffer, DType::F32, std::move(place));
}

// y[b,i,j] += value over k.
Definition sum_over_k(Scalar value, std::string combine = "+") {
  Definition definition;
  definition.axes = {{"b", 2}, {"i", 3}, {"j", 4}};
  definition.reduced = {{"k", 5}};
  definition.results = {{.name = "y", .dtype = DType::F32, .sizes = {2, 3, 4}}};
  definition.at = variables_of(definition.axes);
  definition.combine = std::move(combine);
  definition.initial = {Scalar::zero(DType::F32)};
  definition.values = {std::move(value)};
  return definition;
}

const Scalar kA = load("a", {at("b"), at("i"), at("k")}), kB = load("w", {at("b"), at("k"), at("j")});

TEST(MatchContraction, TellsRowsColumnsAndBatch) {
  const std::optional<Contraction> contraction =
      match_contraction(sum_over_k(Scalar::apply(Function::Multiply, {kA, kB})));
  ASSERT_TRUE(contraction);
  EXPECT_EQ(contraction->product().lhs, kA);
  EXPECT_EQ(contraction->product().rhs, kB);
  EXPECT_EQ(contraction->batch, std::vector<size_t>{0});
  EXPECT_EQ(contraction->m, std::vector<size_t>{1});
  EXPECT_EQ(contraction->n, std::vector<size_t>{2});
  EXPECT_EQ(contraction->k, std::vector<size_t>{0});
  EXPECT_EQ(contraction->accumulator, DType::F32);
}

TEST(MatchContraction, LeavesAxesOfNoOperandOut) {
  const std::optional<Contraction> contraction = match_contraction(
      sum_over_k(Scalar::apply(Function::Multiply, {load("a", {at("i"), at("k")}), load("w", {at("k")})})));
  ASSERT_TRUE(contraction);
  EXPECT_EQ(contraction->m, std::vector<size_t>{1});
  EXPECT_TRUE(contraction->n.empty());
  EXPECT_TRUE(contraction->batch.empty());
}

TEST(MatchContraction, IsNotForOtherReductions) {
  const Scalar product = Scalar::apply(Function::Multiply, {kA, kB});
  EXPECT_FALSE(match_contraction(sum_over_k(kA)));
  EXPECT_FALSE(match_contraction(sum_over_k(Scalar::apply(Function::Add, {kA, kB}))));
  EXPECT_FALSE(match_contraction(sum_over_k(Scalar::apply(Function::Add, {product, product}))));
  EXPECT_FALSE(match_contraction(sum_over_k(product, "max")));
  EXPECT_FALSE(match_contraction(sum_over_k(product, "")));
}

TEST(MatchProducts, TakesSeveralOfBf16WordsInOrder) {
  const auto word = [](const char* buffer) { return Scalar::load(buffer, DType::I32, {at("k")}); };
  const Scalar first = Scalar::apply(Function::DotBf16x2, {word("a"), word("b")}),
               second = Scalar::apply(Function::DotBf16x2, {word("c"), word("d")});
  const std::vector<Product> products = match_products(Scalar::apply(Function::Add, {first, second}));
  ASSERT_EQ(products.size(), 2U);
  EXPECT_EQ(products[0].lhs, word("a"));
  EXPECT_EQ(products[1].rhs, word("d"));
}

}  // namespace
}  // namespace tenon::loops
