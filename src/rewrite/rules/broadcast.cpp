// broadcast.cpp — sums of large and small terms in an order in which the small ones are added up while they
// are small: (m1 + s1) + (m2 + s2) is (m1 + m2) + (s1 + s2).
#include "ops/shapes.h"
#include "rewrite/rules/rounded_sums.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// Whether m is as large as the sum, and s and t together are not.
Condition saves_work(const Pattern& m, const Pattern& s, const Pattern& t) {
  return {fmt::format("{} + {} is smaller than {}", s.to_string(), t.to_string(), m.to_string()),
          [=](const Match& match) {
            const Shape& all = match.root().shape();
            if (!all.ranked() || match[m].type() != match.root().type())
              return false;
            const std::optional<Shape> small = broadcast(match[s].shape(), match[t].shape());
            return small && small->ranked() && *small != all;
          }};
}

// Constants that are added to round what they are added to stay apart.
Condition does_not_round(const Pattern& s, const Pattern& t) {
  return {fmt::format("{} + {} cancels nothing large", s.to_string(), t.to_string()),
          [=](const Match& match) {
            const Tensor *first = known_elements(match[s]), *second = known_elements(match[t]);
            return first == nullptr || second == nullptr || sum_keeps_rounding(*first, *second);
          }};
}

Rules make_rules() {
  const Pattern m = any("m"), n = any("n"), s = any("s"), t = any("t");
  const Pattern large_and_small = (m + s).once();
  return {
      {.name = "add-small-terms-of-two-sums",
       .match = large_and_small + (n + t).once(),
       .replace = (m + n) + (s + t),
       .when = {is_ordinary_float(m), same_type(m, n), saves_work(m, s, t), does_not_round(s, t)},
       .numerics = Numerics::Reassociates,
       .fires = "(%m: T[n,3], %s: T[3], %l: T[n,3], %t: T[1]) { %0 = add(%m, %s) %1 = add(%t, %l) "
                "%y = add(%0, %1) return %y }",
       .stays = "(%m: T[n,3], %s: T[3], %l: T[n,3], %t: T[n,1]) { %0 = add(%m, %s) %1 = add(%t, %l) "
                "%y = add(%0, %1) return %y }"},
      {.name = "add-small-terms-first",
       .match = large_and_small + t,
       .replace = m + (s + t),
       .when = {is_ordinary_float(m), saves_work(m, s, t), does_not_round(s, t)},
       .numerics = Numerics::Reassociates,
       .fires = "(%m: T[n,3], %s: T[3], %t: T[1]) { %0 = add(%s, %m) %y = add(%0, %t) return %y }",
       .stays = "(%m: T[n,3], %s: T[3], %t: T[n,1]) { %0 = add(%s, %m) %y = add(%0, %t) return %y }"},
  };
}

}  // namespace

const Rules& broadcast_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
