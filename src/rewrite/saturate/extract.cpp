#include "rewrite/saturate/extract.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace tenon::saturate {
namespace {

constexpr double kSlack = 1 + 1e-9;  // sums in another order
constexpr double kMostWork = 1.05;   // of what there was: moving elements together is work, too
constexpr int kMostSweeps = 20;
constexpr double kNodePerByte = 1e-12;

constexpr Cost kImpossible = {std::numeric_limits<double>::infinity(), 0, 0};

class Extractor {
 public:
  Extractor(const EGraph& egraph, const std::vector<ValueId>& roots, const std::vector<TermId>& now,
            const CostModel& cost)
      : egraph_(egraph), values_now_(roots) {
    const std::set<TermId> present(now.begin(), now.end());
    for (ValueId root : roots)
      roots_.push_back(egraph.find(root));
    const auto terms = static_cast<TermId>(egraph.term_count());
    std::map<ClassId, std::vector<ValueId>> users;
    for (TermId id = 0; id < terms; ++id) {
      costs_.push_back(egraph.is_member(id) || present.contains(id) ? cost(egraph, id) : Cost());
      std::vector<ClassId>& operands = operands_.emplace_back();
      for (ValueId operand : operands_of(egraph.term(id)))
        operands.push_back(egraph.find(operand));
      for (size_t i = 0; i < egraph.term(id).types.size(); ++i)
        if (egraph.is_member(id)) {
          const ValueId value = egraph.value(id, static_cast<int64_t>(i));
          members_[egraph.find(value)].push_back(value);
        }
      if (egraph.is_member(id) && egraph.term(id).types.size() > 1)
        with_several_.push_back(id);
      if (egraph.is_member(id))
        for (ClassId operand : operands)
          if (std::vector<ValueId>& of = users[operand]; of.empty() || of.back() != egraph.value(id, 0))
            of.push_back(egraph.value(id, 0));
    }
    for (auto& [of, values] : users)
      if (values.size() > 1)
        with_several_users_.push_back(std::move(values));
    values_ = terms == 0
                  ? 0
                  : static_cast<size_t>(egraph.value(terms - 1, 0)) + egraph.term(terms - 1).types.size();
  }

  Extraction best(const std::vector<TermId>& now) const {
    const Choice cheapest = choose_one_by_one();
    // Of several terms of one class the oldest: so nothing is made of itself.
    Choice present = cheapest;
    std::set<ClassId> seen;
    for (TermId id : now)
      for (size_t i = 0; i < egraph_.term(id).types.size(); ++i) {
        const ValueId value = egraph_.value(id, static_cast<int64_t>(i));
        if (seen.insert(egraph_.find(value)).second)
          present[static_cast<size_t>(egraph_.find(value))] = member_like(value);
      }
    const Cost before = total_now();
    Extraction best = {present, before, before};
    for (Choice choice : {present, cheapest}) {
      const Cost after = improve(choice, before);
      if (is_better(after, best.after))
        best = {std::move(choice), before, after};
    }
    return best;
  }

 private:
  // What the roots cost as they are, member or not.
  Cost total_now() const {
    Cost cost;
    std::set<TermId> counted;
    const std::function<void(TermId)> visit = [&](TermId id) {
      if (egraph_.term(id).is_fixed || !counted.insert(id).second)
        return;
      cost += costs_[static_cast<size_t>(id)];
      for (ValueId operand : operands_of(egraph_.term(id))) {
        const TermId maker = egraph_.term_of(operand);
        if (egraph_.term(maker).is_fixed && counted.insert(maker).second)
          cost.bytes += costs_[static_cast<size_t>(maker)].bytes;
        visit(maker);
      }
    };
    for (ValueId root : values_now_)
      visit(egraph_.term_of(root));
    return cost;
  }

  // The member that stands for the term of a value.
  ValueId member_like(ValueId value) const {
    const TermId id = egraph_.term_of(value);
    if (egraph_.is_member(id))
      return value;
    for (ValueId member : members_.at(egraph_.find(value))) {
      const TermId other = egraph_.term_of(member);
      if (egraph_.term(other).op == egraph_.term(id).op &&
          egraph_.term(other).attributes == egraph_.term(id).attributes &&
          egraph_.index_of(member) == egraph_.index_of(value) && have_same_operands(other, id))
        return member;
    }
    CHECK(false, "no member stands for a term");
  }

  bool have_same_operands(TermId a, TermId b) const {
    const auto &first = operands_[static_cast<size_t>(a)], &second = operands_[static_cast<size_t>(b)];
    return std::is_permutation(first.begin(), first.end(), second.begin(), second.end());
  }

  // For each class the member that costs least with all that it is made of, each term counted once. A class
  // takes no member that is made of itself.
  Choice choose_one_by_one() const {
    struct Best {
      ValueId member = -1;
      double cost = std::numeric_limits<double>::infinity();
      std::set<TermId> terms;
    };
    std::unordered_map<ClassId, Best> best;
    bool changes = true;
    for (int sweep = 0; changes && sweep < kMostSweeps; ++sweep) {
      changes = false;
      for (TermId id = 0; id < static_cast<TermId>(costs_.size()); ++id) {
        if (!egraph_.is_member(id))
          continue;
        std::set<TermId> terms = {id};
        bool is_possible = true;
        for (ClassId operand : operands_[static_cast<size_t>(id)]) {
          const auto it = best.find(operand);
          is_possible &= it != best.end() && !it->second.terms.contains(id);
          if (!is_possible)
            break;
          terms.insert(it->second.terms.begin(), it->second.terms.end());
        }
        if (!is_possible)
          continue;
        double cost = 0;
        for (TermId each : terms)
          cost += scalar(costs_[static_cast<size_t>(each)]);
        for (size_t i = 0; i < egraph_.term(id).types.size(); ++i) {
          const ValueId value = egraph_.value(id, static_cast<int64_t>(i));
          Best& known = best[egraph_.find(value)];
          if (cost < known.cost && !makes_itself(terms, egraph_.find(value), id)) {
            known = {value, cost, terms};
            changes = true;
          }
        }
      }
    }
    Choice choice(values_, -1);
    for (const auto& [of, each] : best)
      choice[static_cast<size_t>(of)] = each.member;
    return choice;
  }

  bool makes_itself(const std::set<TermId>& terms, ClassId of, TermId by) const {
    return std::any_of(terms.begin(), terms.end(), [&](TermId each) {
      if (each == by)
        return false;
      for (size_t i = 0; i < egraph_.term(each).types.size(); ++i)
        if (egraph_.find(egraph_.value(each, static_cast<int64_t>(i))) == of)
          return true;
      return false;
    });
  }

  static double scalar(const Cost& cost) { return cost.nodes + kNodePerByte * cost.bytes; }

  // What all roots cost; not possible where a value would be made of itself.
  Cost total(const Choice& choice) const {
    enum class State : uint8_t { New, Open, Done };
    std::vector<State> states(costs_.size(), State::New);
    std::vector<bool> is_counted(costs_.size());  // of what is fixed: its bytes are there once
    Cost cost;
    const std::function<bool(ClassId)> visit = [&](ClassId of) {
      const ValueId member = choice[static_cast<size_t>(of)];
      if (member < 0)
        return false;
      const TermId id = egraph_.term_of(member);
      State& state = states[static_cast<size_t>(id)];
      if (state != State::New)
        return state == State::Done;
      state = State::Open;
      const Term& term = egraph_.term(id);
      for (ClassId operand : operands_[static_cast<size_t>(id)])
        if (!visit(operand))
          return false;
      state = State::Done;
      if (!term.is_fixed) {
        cost += costs_[static_cast<size_t>(id)];
        for (ClassId operand : operands_[static_cast<size_t>(id)]) {
          const TermId fixed = egraph_.term_of(choice[static_cast<size_t>(operand)]);
          if (egraph_.term(fixed).is_fixed && !is_counted[static_cast<size_t>(fixed)]) {
            is_counted[static_cast<size_t>(fixed)] = true;
            cost.bytes += costs_[static_cast<size_t>(fixed)].bytes;
          }
        }
      }
      return true;
    };
    for (ClassId root : roots_)
      if (!visit(root))
        return kImpossible;
    return cost;
  }

  std::vector<ClassId> classes_of(const Choice& choice) const {
    std::vector<ClassId> classes;
    std::set<ClassId> seen(roots_.begin(), roots_.end());
    classes.assign(seen.begin(), seen.end());
    for (size_t next = 0; next < classes.size(); ++next) {
      const ValueId member = choice[static_cast<size_t>(classes[next])];
      for (ClassId operand : operands_[static_cast<size_t>(egraph_.term_of(member))])
        if (seen.insert(operand).second)
          classes.push_back(operand);
    }
    return classes;
  }

  // Changes the choice as long as that makes it better, and never to more work than `before`.
  Cost improve(Choice& choice, const Cost& before) const {
    Cost now = total(choice);
    if (!std::isfinite(now.nodes))
      return kImpossible;
    const auto attempt = [&](const std::vector<ValueId>& members) {
      std::vector<std::pair<ClassId, ValueId>> was;
      for (ValueId member : members) {
        ValueId& chosen = choice[static_cast<size_t>(egraph_.find(member))];
        was.emplace_back(egraph_.find(member), chosen);
        chosen = member;
      }
      const Cost cost = total(choice);
      if (cost.work <= std::max(before.work * kMostWork, now.work) && is_cheaper(cost, now)) {
        now = cost;
        return true;
      }
      for (auto it = was.rbegin(); it != was.rend(); ++it)
        choice[static_cast<size_t>(it->first)] = it->second;
      return false;
    };
    bool changes = true;
    for (int sweep = 0; changes && sweep < kMostSweeps; ++sweep) {
      changes = false;
      for (ClassId of : classes_of(choice))
        for (ValueId member : members_.at(of))
          if (member != choice[static_cast<size_t>(of)])
            changes |= attempt({member});
      for (TermId id : with_several_) {
        std::vector<ValueId> results;
        for (size_t i = 0; i < egraph_.term(id).types.size(); ++i)
          results.push_back(egraph_.value(id, static_cast<int64_t>(i)));
        changes |= attempt(results);
      }
      // What is computed for one alone may pay for several.
      for (const std::vector<ValueId>& users : with_several_users_)
        changes |= attempt(needed_of(users, choice));
    }
    return now;
  }

  // Those whose classes the roots need, one for each.
  std::vector<ValueId> needed_of(const std::vector<ValueId>& values, const Choice& choice) const {
    const std::vector<ClassId> classes = classes_of(choice);
    const std::set<ClassId> needed(classes.begin(), classes.end());
    std::set<ClassId> seen;
    std::vector<ValueId> found;
    for (ValueId value : values)
      if (needed.contains(egraph_.find(value)) && seen.insert(egraph_.find(value)).second)
        found.push_back(value);
    return found;
  }

  static bool is_cheaper(const Cost& cost, const Cost& than) {
    return cost.nodes < than.nodes || (cost.nodes == than.nodes && cost.bytes * kSlack < than.bytes);
  }

  const EGraph& egraph_;
  std::vector<ValueId> values_now_;
  std::vector<ClassId> roots_;
  std::vector<Cost> costs_;                     // by term
  std::vector<std::vector<ClassId>> operands_;  // by term
  std::unordered_map<ClassId, std::vector<ValueId>> members_;
  std::vector<TermId> with_several_;                      // results
  std::vector<std::vector<ValueId>> with_several_users_;  // of one class, each the first result
  size_t values_ = 0;
};

}  // namespace

bool is_better(const Cost& cost, const Cost& than) {
  return cost.work <= than.work * kMostWork &&
         (cost.nodes < than.nodes || (cost.nodes == than.nodes && cost.bytes * kSlack < than.bytes));
}

Extraction extract(const EGraph& egraph, const std::vector<ValueId>& roots, const std::vector<TermId>& now,
                   const CostModel& cost) {
  return Extractor(egraph, roots, now, cost).best(now);
}

std::vector<ValueId> build(EGraph& egraph, const Choice& choice, const std::vector<ValueId>& values) {
  std::unordered_map<ClassId, ValueId> built;
  const std::function<ValueId(ValueId)> build_one = [&](ValueId value) {
    const ClassId of = egraph.find(value);
    if (const auto it = built.find(of); it != built.end())
      return it->second;
    const ValueId member = choice[static_cast<size_t>(of)];
    const TermId id = egraph.term_of(member);
    std::vector<ValueId> operands;
    for (ValueId operand : operands_of(egraph.term(id)))
      operands.push_back(build_one(operand));
    const TermId made = egraph.term(id).origin ? id : egraph.add(with_operands(egraph.term(id), operands));
    return built[of] = egraph.value(made, egraph.index_of(member));
  };
  std::vector<ValueId> all;
  for (ValueId value : values)
    all.push_back(build_one(value));
  return all;
}

}  // namespace tenon::saturate
