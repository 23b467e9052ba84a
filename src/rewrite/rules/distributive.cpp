// distributive.cpp — factors that several terms share are multiplied once.
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

Rules make_rules() {
  const Pattern x = any("x"), a = any("a"), b = any("b"), c = constant("c");
  const Pattern xa = (x * a).once(), xb = (x * b).once(), xc = (x * c).once();
  const Condition wide = {"a + b is no larger than the terms", [=](const Match& m) {
                            return m[xa].type() == m.root().type() && m[xb].type() == m.root().type();
                          }};
  const Condition has_room = {"x is no float of less than 16 bits, in which a + b soon overflows",
                              [=](const Match& m) {
                                const DType dtype = m[x].dtype();
                                return !is_float(dtype) || info(dtype).bits >= 16;
                              }};
  return {
      {.name = "add-to-itself",
       .match = x + x,
       .replace = x * 2.0,
       .when = {is_not_fixed(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %y = add(%x, %x) return %y }",
       .stays = "(%x: T[n], %z: T[n]) { %y = add(%x, %z) return %y }"},
      {.name = "add-to-multiple",
       .match = xc + x,
       .replace = x * (c + 1.0),
       .when = {is_small(c), is_one_number(c)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {2}) %0 = mul(%x, %c) %y = add(%0, %x) return %y }",
       .stays =
           "(%x: T[n]) { %c = constant(value=T[] {2}) %0 = mul(%x, %c) %y = add(%0, %x) return %y, %0 }"},
      {.name = "factor-out",
       .match = xa + xb,
       .replace = x * (a + b),
       .when = {wide, has_room},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n], %a: T[], %b: T[n]) { %0 = mul(%x, %a) %1 = mul(%b, %x) %y = add(%0, %1) "
                "return %y }",
       .stays = "(%x: T[n], %a: T[], %b: T[n]) { %0 = mul(%x, %a) %1 = mul(%b, %x) %y = add(%0, %1) "
                "return %y, %1 }"},
      {.name = "factor-out-of-difference",
       .match = xa - xb,
       .replace = x * (a - b),
       .when = {wide, has_room},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n], %a: T[], %b: T[n]) { %0 = mul(%x, %a) %1 = mul(%b, %x) %y = sub(%0, %1) "
                "return %y }",
       .stays = "(%x: T[n], %a: T[], %b: T[n], %p: f8e4m3fn[n], %q: f8e4m3fn[n], %r: f8e4m3fn[n]) { "
                "%0 = mul(%x, %a) %1 = mul(%b, %x) %y = sub(%0, %1) "
                "%2 = mul(%p, %q) %3 = mul(%p, %r) %z = sub(%2, %3) return %y, %1, %z }"},
  };
}

}  // namespace

const Rules& distributive_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
