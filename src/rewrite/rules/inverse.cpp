// inverse.cpp — operations that undo each other, or that change nothing the second time.
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// f(g(x)) is x.
Rule undo(std::string_view name, std::string_view f, std::string_view g, Numerics numerics,
          std::string_view fires, std::string_view stays) {
  const Pattern x = any("x");
  return {.name = name,
          .match = unary(f, unary(g, x)),
          .replace = x,
          .when = {{"x is no f8e8m0, which holds only powers of two",
                    [=](const Match& m) { return m[x].dtype() != DType::F8E8M0; }}},
          .numerics = numerics,
          .fires = fires,
          .stays = stays};
}

// f(f(x)) is f(x).
Rule repeat(std::string_view name, std::string_view f, std::string_view fires, std::string_view stays) {
  const Pattern once = unary(f, any("x"));
  return {.name = name,
          .match = unary(f, once),
          .replace = once,
          .numerics = Numerics::BitExact,
          .fires = fires,
          .stays = stays};
}

Rules make_rules() {
  const Pattern x = any("x"), y = any("y");
  return {
      undo("negate-twice", "neg", "neg", Numerics::BitExact,
           "(%x: T[n]) { %0 = neg(%x) %1 = neg(%0) return %1 }",
           "(%x: T[n]) { %0 = neg(%x) %1 = abs(%0) return %1 }"),
      undo("not-twice", "not", "not", Numerics::BitExact,
           "(%x: bool[n]) { %0 = not(%x) %1 = not(%0) return %1 }",
           "(%x: bool[n]) { %0 = not(%x) return %0 }"),
      undo("reciprocal-twice", "reciprocal", "reciprocal", Numerics::AssumesFinite,
           "(%x: f32[n]) { %0 = reciprocal(%x) %1 = reciprocal(%0) return %1 }",
           "(%x: f32[n]) { %0 = reciprocal(%x) %1 = neg(%0) return %1 }"),
      // log is NaN below zero, and exp overflows.
      undo("exp-of-log", "exp", "log", Numerics::AssumesFinite,
           "(%x: f32[n]) { %0 = log(%x) %1 = exp(%0) return %1 }",
           "(%x: f32[n]) { %0 = log(%x) %1 = sqrt(%0) return %1 }"),
      undo("log-of-exp", "log", "exp", Numerics::AssumesFinite,
           "(%x: f32[n]) { %0 = exp(%x) %1 = log(%0) return %1 }",
           "(%x: f32[n]) { %0 = exp(%x) %1 = sqrt(%0) return %1 }"),
      repeat("relu-twice", "relu", "(%x: T[n]) { %0 = relu(%x) %1 = relu(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = relu(%0) return %1 }"),
      repeat("abs-twice", "abs", "(%x: T[n]) { %0 = abs(%x) %1 = abs(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = abs(%0) return %1 }"),
      repeat("sign-twice", "sign", "(%x: T[n]) { %0 = sign(%x) %1 = sign(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = sign(%0) return %1 }"),
      repeat("floor-twice", "floor", "(%x: T[n]) { %0 = floor(%x) %1 = floor(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = floor(%0) return %1 }"),
      repeat("ceil-twice", "ceil", "(%x: T[n]) { %0 = ceil(%x) %1 = ceil(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = ceil(%0) return %1 }"),
      repeat("round-twice", "round", "(%x: T[n]) { %0 = round(%x) %1 = round(%0) return %1 }",
             "(%x: T[n]) { %0 = neg(%x) %1 = round(%0) return %1 }"),
      // 0 / 0 is NaN, and so is inf / inf.
      {.name = "divide-by-itself",
       .match = x / x,
       .replace = filled_like(x, 1),
       .when = {is_float(x)},  // of integers 0 / 0 is an error
       .numerics = Numerics::AssumesFinite,
       .fires = "(%x: f32[n]) { %y = div(%x, %x) return %y }",
       .stays = "(%x: i32[n]) { %y = div(%x, %x) return %y }"},
      {.name = "subtract-from-itself",
       .match = x - x,
       .replace = filled_like(x, 0),
       .when = {is_integer(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: i32[n]) { %y = sub(%x, %x) return %y }",
       .stays = "(%x: f32[n]) { %y = sub(%x, %x) return %y }"},
      {.name = "add-negative",
       .match = x + (-y).once(),
       .replace = x - y,
       .when = {has_ordinary_dtype(x), is_not_fixed(y)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n], %y: T[m,n]) { %0 = neg(%y) %z = add(%0, %x) return %z }",
       .stays = "(%x: T[n], %y: T[m,n]) { %0 = neg(%y) %z = add(%0, %x) return %z, %0 }"},
      {.name = "subtract-negative",
       .match = x - (-y).once(),
       .replace = x + y,
       .when = {has_ordinary_dtype(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n], %y: T[m,n]) { %0 = neg(%y) %z = sub(%x, %0) return %z }",
       .stays = "(%x: T[n], %y: T[m,n]) { %0 = neg(%y) %z = sub(%0, %x) return %z }"},
  };
}

}  // namespace

const Rules& inverse_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
