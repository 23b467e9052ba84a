// derive.h — the rewrites that lead from some values to others, in an order in which they can be made one by
// one.
//
// Why two values are equal is a path of rewrites of exact terms, and of terms that are congruent, whose
// operands have paths of their own. Walking along it as far as the first so many rewrites allow ends in a
// value that is equal, too: so there is a graph after each of them, and the one that is wrong can be found. A
// rewrite that several paths need is made once, for all of them.
#pragma once

#include <map>

#include "rewrite/saturate/explore.h"

namespace tenon::saturate {

class Derivation {
 public:
  Derivation(EGraph& egraph, const std::vector<Step>& steps, std::vector<ValueId> from,
             std::vector<ValueId> to);

  // False where a path takes a rewrite that is not exact the other way round: what it then replaces may be
  // finite where what takes its place is not.
  bool is_sound() const { return is_sound_; }
  // In their order; indices of the steps.
  const std::vector<int>& rewrites() const { return order_; }
  // What stands for the values after the first so many rewrites.
  std::vector<ValueId> after(int64_t count);

 private:
  ValueId advance(ValueId from, ValueId to);
  ValueId advance_operands(ValueId from, ValueId to);
  bool may_take(const Link& link);

  EGraph& egraph_;
  const std::vector<Step>& steps_;
  std::vector<ValueId> from_, to_;
  std::vector<int> order_;
  std::map<int, int64_t> numbers_;  // of steps, in the order
  int64_t allowed_;
  bool is_sound_ = true;
  std::map<std::pair<ValueId, ValueId>, ValueId> reached_;
};

}  // namespace tenon::saturate
