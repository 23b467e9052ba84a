#include "rewrite/saturate/derive.h"

#include <algorithm>
#include <limits>

namespace tenon::saturate {

Derivation::Derivation(EGraph& egraph, const std::vector<Step>& steps, std::vector<ValueId> from,
                       std::vector<ValueId> to)
    : egraph_(egraph), steps_(steps), from_(std::move(from)), to_(std::move(to)) {
  const std::vector<ValueId> all = after(std::numeric_limits<int64_t>::max());
  is_sound_ &= all == to_;
}

std::vector<ValueId> Derivation::after(int64_t count) {
  allowed_ = count;
  reached_.clear();
  std::vector<ValueId> values;
  for (size_t i = 0; i < from_.size(); ++i)
    values.push_back(advance(from_[i], to_[i]));
  return values;
}

// As far from one value towards another that is equal as is allowed.
ValueId Derivation::advance(ValueId from, ValueId to) {
  if (from == to)
    return from;
  // A path that needs itself leads nowhere: it stays where it is.
  const auto [known, is_new] = reached_.try_emplace({from, to}, from);
  if (!is_new)
    return known->second;
  ValueId at = from;
  for (const Link& link : egraph_.reasons(from, to)) {
    if (link.step >= 0 && !may_take(link))
      break;
    const ValueId next = link.step >= 0 ? link.to : advance_operands(at, link.to);
    at = next;
    if (at != link.to)
      break;
  }
  return reached_[{from, to}] = at;
}

// The same term as that of `from`, with operands as near to those of the congruent term `to` as is allowed;
// `to` itself where they are the same.
ValueId Derivation::advance_operands(ValueId from, ValueId to) {
  const Term& term = egraph_.maker(from);
  const std::vector<ValueId> before = operands_of(term);
  const std::vector<ValueId> wanted = egraph_.matching_operands(term, egraph_.maker(to));
  std::vector<ValueId> reached;
  for (size_t i = 0; i < before.size(); ++i)
    reached.push_back(advance(before[i], wanted[i]));
  if (reached == wanted)
    return to;
  const TermId made = egraph_.add(with_operands(egraph_.maker(from), reached));
  return egraph_.value(made, egraph_.index_of(from));
}

// Whether the rewrite of a link is among those allowed; it gets a number where it has none.
bool Derivation::may_take(const Link& link) {
  const auto [it, is_new] = numbers_.try_emplace(link.step, static_cast<int64_t>(order_.size()));
  if (is_new)
    order_.push_back(link.step);
  if (!link.forward && steps_[static_cast<size_t>(link.step)].numerics != Numerics::BitExact)
    is_sound_ = false;
  return it->second < allowed_;
}

}  // namespace tenon::saturate
