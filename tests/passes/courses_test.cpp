// The algebraic rules that courses on graph optimisation teach, by name: where each fires, and where it must
// not.
#include "passes/expect_pass.h"

namespace tenon {
namespace {

// In these, x is f32[2,3] and i is i32[2,3].
std::string graph_of(std::string_view body) {
  return fmt::format(
      "graph g(%x: f32[2,3], %i: i32[2,3]) {{ %zero = constant(value=f32[] {{0}}) %one = "
      "constant(value=f32[] {{1}}) "
      "%two = constant(value=f32[] {{2}}) %izero = constant(value=i32[] {{0}}) {} return %y }}",
      body);
}

void simplify_and_normalise(Graph& graph, Journal& journal) {
  simplify(graph, journal);
  normalise(graph, journal);
  remove_dead(graph, journal);
}

void expect_becomes(std::string_view body, std::string_view wanted,
                    NumericsBudget budget = NumericsBudget::Default) {
  const std::unique_ptr<Graph> graph = parse_graph(graph_of(body)), expected = parse_graph(graph_of(wanted));
  Journal journal(budget);
  simplify_and_normalise(*graph, journal);
  remove_dead(*expected, journal);
  EXPECT_EQ(difference(*graph, *expected), "") << body << "\n" << print(*graph);
}

void expect_stays(std::string_view body, NumericsBudget budget = NumericsBudget::Default) {
  expect_becomes(body, body, budget);
}

// A node that stands for %x alone.
constexpr std::string_view kX = "%y = relu(%x)", kI = "%y = abs(%i)";

TEST(AlgebraicRules, MultiplicativeIdentity) {
  expect_becomes("%a = mul(%x, %one) %y = relu(%a)", kX);
  expect_becomes("%a = mul(%one, %x) %y = relu(%a)", kX, NumericsBudget::Strict);
  // It also repeats x.
  expect_stays("%ones = constant(value=f32[4,2,3] splat 1) %a = mul(%x, %ones) %y = relu(%a)");
}

TEST(AlgebraicRules, AdditiveIdentity) {
  expect_becomes("%a = add(%x, %zero) %y = relu(%a)", kX);
  expect_stays("%y = add(%x, %zero)", NumericsBudget::Strict);  // -0 + 0 is 0
  expect_becomes("%a = add(%i, %izero) %y = abs(%a)", kI, NumericsBudget::Strict);
  expect_stays("%zeros = constant(value=f32[4,2,3] splat 0) %a = add(%x, %zeros) %y = relu(%a)");
}

TEST(AlgebraicRules, ZeroProduct) {
  expect_stays("%y = mul(%x, %zero)");  // NaN · 0 is NaN
  expect_becomes("%y = mul(%x, %zero)", "%y = constant(value=f32[2,3] splat 0)", NumericsBudget::Fast);
  expect_becomes("%y = mul(%i, %izero)", "%y = constant(value=i32[2,3] splat 0)", NumericsBudget::Strict);
}

TEST(AlgebraicRules, StrengthReduction) {
  expect_becomes("%y = pow(%x, %two)", "%y = mul(%x, %x)");
  expect_stays("%other = constant(value=f32[] {2.5}) %y = pow(%x, %other)");
}

TEST(AlgebraicRules, InverseFunctions) {
  expect_stays("%a = log(%x) %y = exp(%a)");  // below 0 it is NaN
  expect_becomes("%a = log(%x) %b = exp(%a) %y = relu(%b)", kX, NumericsBudget::Fast);
}

TEST(AlgebraicRules, SelfDivision) {
  expect_stays("%y = div(%x, %x)");  // 0 / 0 is NaN
  expect_becomes("%y = div(%x, %x)", "%y = constant(value=f32[2,3] splat 1)", NumericsBudget::Fast);
  expect_stays("%y = div(%i, %i)", NumericsBudget::Fast);  // 0 / 0 is an error
}

TEST(AlgebraicRules, IdempotentFunction) {
  expect_becomes("%a = relu(%x) %y = relu(%a)", kX, NumericsBudget::Strict);
  expect_stays("%a = exp(%x) %y = exp(%a)", NumericsBudget::Fast);
}

TEST(AlgebraicRules, DoubleTranspose) {
  expect_becomes(
      "%a = transpose(%x, permutation=[1, 0]) %b = transpose(%a, permutation=[1, 0]) %y = relu(%b)", kX,
      NumericsBudget::Strict);
  expect_stays("%a = transpose(%x, permutation=[1, 0]) %y = relu(%a)");
}

}  // namespace
}  // namespace tenon
