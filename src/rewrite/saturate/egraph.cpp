#include "rewrite/saturate/egraph.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace tenon::saturate {

std::vector<ValueId> operands_of(const Term& term) {
  std::vector<ValueId> operands;
  for (const TermOperand& operand : term.operands)
    operands.insert(operands.end(), operand.values.begin(), operand.values.end());
  return operands;
}

Term with_operands(const Term& term, const std::vector<ValueId>& operands) {
  Term other = term;
  size_t next = 0;
  for (TermOperand& operand : other.operands)
    for (ValueId& value : operand.values)
      value = operands[next++];
  return other;
}

size_t EGraph::KeyHash::operator()(const Key& key) const {
  uint64_t h = key.size();
  for (int64_t part : key)
    h = hash_combine(h, static_cast<uint64_t>(part));
  return h;
}

int64_t EGraph::number_of(const Attributes& attributes) {
  uint64_t h = attributes.size();
  for (const auto& [name, attribute] : attributes)
    h = hash_combine(hash_combine(h, hash_string(name)), attribute.hash());
  std::vector<int64_t>& alike = attributes_by_hash_[h];
  for (int64_t number : alike)
    if (attributes_[static_cast<size_t>(number)] == attributes)
      return number;
  alike.push_back(static_cast<int64_t>(attributes_.size()));
  attributes_.push_back(attributes);
  return alike.back();
}

EGraph::Key EGraph::key_of(TermId id, bool by_class) const {
  return key_of(term(id), attribute_numbers_[static_cast<size_t>(id)], by_class);
}

EGraph::Key EGraph::key_of(const Term& term, int64_t attributes, bool by_class) const {
  if (term.origin)
    return {static_cast<int64_t>(reinterpret_cast<intptr_t>(term.origin.data()))};
  Key key = {static_cast<int64_t>(reinterpret_cast<intptr_t>(term.op)), attributes};
  for (const TermOperand& operand : term.operands) {
    // Which operand it is, and how many values.
    key.push_back(static_cast<int64_t>(hash_string(operand.name)));
    key.push_back(static_cast<int64_t>(operand.values.size()));
    for (ValueId value : operand.values)
      key.push_back(by_class ? find(value) : value);
  }
  // The first two operands of a commutative op are one value each: a + b is b + a.
  if (by_class && term.op->traits.commutative && key.size() >= 8 && key[7] < key[4])
    std::swap(key[4], key[7]);
  return key;
}

TermId EGraph::add(Term term) {
  const int64_t attributes = term.origin ? -1 : number_of(term.attributes);
  const auto [it, is_new] = exact_.try_emplace(key_of(term, attributes, false), term_count());
  if (!is_new)
    return it->second;
  const TermId id = it->second;
  first_value_.push_back(static_cast<ValueId>(values_.size()));
  for (size_t i = 0; i < term.types.size(); ++i) {
    const auto value = static_cast<ValueId>(values_.size());
    values_.push_back({.term = id, .parent = value, .linked_to = value});
    classes_.push_back({.values = {value}, .users = {}});
  }
  for (ValueId operand : operands_of(term))
    classes_[static_cast<size_t>(find(operand))].users.push_back(id);
  attribute_numbers_.push_back(attributes);
  terms_.push_back(std::move(term));
  is_member_.push_back(true);
  ++member_count_;
  add_congruent(id);
  return id;
}

// Looks for a term that is congruent; the term becomes known by its classes where there is none.
void EGraph::add_congruent(TermId id) {
  const auto [it, is_first] = congruent_.try_emplace(key_of(id, true), id);
  if (is_first || it->second == id || term(it->second).types != term(id).types)
    return;
  // The older one stands for both.
  const TermId other = std::max(it->second, id);
  it->second = std::min(it->second, id);
  if (is_member_[static_cast<size_t>(other)]) {
    is_member_[static_cast<size_t>(other)] = false;
    --member_count_;
  }
  for (size_t i = 0; i < term(id).types.size(); ++i)
    unite(value(id, static_cast<int64_t>(i)),
          value(it->second == id ? other : it->second, static_cast<int64_t>(i)), -1);
}

ClassId EGraph::find(ValueId value) const {
  ClassId root = value;
  while (values_[static_cast<size_t>(root)].parent != root)
    root = values_[static_cast<size_t>(root)].parent;
  while (values_[static_cast<size_t>(value)].parent != root)
    value = std::exchange(values_[static_cast<size_t>(value)].parent, root);
  return root;
}

std::vector<ValueId> EGraph::members(ClassId of) const {
  std::vector<ValueId> members;
  for (ValueId value : classes_[static_cast<size_t>(of)].values)
    if (is_member(term_of(value)))
      members.push_back(value);
  std::sort(members.begin(), members.end());
  return members;
}

bool EGraph::unite(ValueId from, ValueId to, int step) {
  ClassId a = find(from), b = find(to);
  if (a == b)
    return false;
  CHECK(type(from) == type(to), "{} cannot be equal to {}", type(from), type(to));
  link(from, to, step);
  const auto size = [&](ClassId of) {
    return classes_[static_cast<size_t>(of)].values.size() + classes_[static_cast<size_t>(of)].users.size();
  };
  if (size(a) > size(b))
    std::swap(a, b);
  ClassEntry &smaller = classes_[static_cast<size_t>(a)], &larger = classes_[static_cast<size_t>(b)];
  values_[static_cast<size_t>(a)].parent = b;
  larger.values.insert(larger.values.end(), smaller.values.begin(), smaller.values.end());
  larger.users.insert(larger.users.end(), smaller.users.begin(), smaller.users.end());
  smaller = {};
  changed_.push_back(b);
  return true;
}

void EGraph::rebuild() {
  while (!changed_.empty()) {
    const ClassId changed = find(changed_.back());
    changed_.pop_back();
    std::vector<TermId>& users = classes_[static_cast<size_t>(changed)].users;
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    const std::vector<TermId> now = users;  // which grow while they are looked at
    for (TermId user : now)
      add_congruent(user);
  }
}

// Makes `from` the root of its tree of reasons, and hangs it on `to`.
void EGraph::link(ValueId from, ValueId to, int step) {
  ValueId at = from, onto = to;
  bool forward = true;
  while (true) {
    ValueEntry& entry = values_[static_cast<size_t>(at)];
    const ValueId next = std::exchange(entry.linked_to, onto);
    const int next_step = std::exchange(entry.step, step);
    const bool next_forward = std::exchange(entry.forward, forward);
    if (next == at)
      return;
    onto = at;
    at = next;
    step = next_step;
    forward = !next_forward;
  }
}

std::vector<Link> EGraph::reasons(ValueId from, ValueId to) const {
  CHECK(find(from) == find(to), "two values are not known to be equal");
  const auto path_up = [&](ValueId value) {
    std::vector<ValueId> path = {value};
    while (values_[static_cast<size_t>(path.back())].linked_to != path.back())
      path.push_back(values_[static_cast<size_t>(path.back())].linked_to);
    return path;
  };
  std::vector<ValueId> up = path_up(from), down = path_up(to);
  while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) {
    up.pop_back();
    down.pop_back();
  }
  std::vector<Link> links;
  for (size_t i = 0; i + 1 < up.size(); ++i) {
    const ValueEntry& entry = values_[static_cast<size_t>(up[i])];
    links.push_back({up[i], up[i + 1], entry.step, entry.forward});
  }
  for (size_t i = down.size() - 1; i > 0; --i) {
    const ValueEntry& entry = values_[static_cast<size_t>(down[i - 1])];
    links.push_back({down[i], down[i - 1], entry.step, !entry.forward});
  }
  return links;
}

std::vector<ValueId> EGraph::matching_operands(const Term& first, const Term& second) const {
  const std::vector<ValueId> from = operands_of(first);
  std::vector<ValueId> to = operands_of(second);
  CHECK(first.op == second.op && from.size() == to.size(), "two terms are not congruent");
  if (first.op->traits.commutative && find(from[0]) != find(to[0]))
    std::swap(to[0], to[1]);
  return to;
}

}  // namespace tenon::saturate
