// egraph.h — many graphs that compute the same at once: terms, and classes of values that are known to be
// equal.
//
// A term is a node whose operands are values of other terms, exactly these; it is held once, and never
// changes. Values that are equal form a class, and terms of one op whose operands are of the same classes are
// congruent: their results are equal, too. One of several congruent terms, the first, is the member of a
// class that stands for them. So each step by which values were found to be equal is known by the exact terms
// it was made for, and why two values are equal can be told step by step.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace tenon::saturate {

using TermId = int32_t;
using ValueId = int32_t;  // a result of a term
using ClassId = int32_t;

struct TermOperand {
  std::string_view name;
  std::vector<ValueId> values;

  friend bool operator==(const TermOperand&, const TermOperand&) = default;
};

struct Term {
  const OpDef* op = nullptr;  // null: whatever makes `origin`
  Attributes attributes = {};
  std::vector<TermOperand> operands = {};  // in the declaration's order, then those that give attributes late
  Types types = {};
  // Where there is one, the term stands for this value of a graph alone, and for nothing that is made like
  // it.
  Value origin = {};
  std::vector<std::string> sources = {};
  bool is_fixed = false;  // made of constants and parameters alone
};

// A link in the chain of reasons why two values are equal.
struct Link {
  ValueId from, to;
  int step;      // the number of the rewrite that made `to` of `from`; -1: they are congruent
  bool forward;  // or `from` of `to`
};

class EGraph {
 public:
  // The term like this one, which is added unless it is there.
  TermId add(Term term);

  const Term& term(TermId term) const { return terms_[static_cast<size_t>(term)]; }
  int64_t term_count() const { return static_cast<int64_t>(terms_.size()); }
  // Terms of which no two are congruent.
  int64_t member_count() const { return member_count_; }
  ValueId value(TermId term, int64_t index) const {
    return first_value_[static_cast<size_t>(term)] + static_cast<ValueId>(index);
  }
  TermId term_of(ValueId value) const { return values_[static_cast<size_t>(value)].term; }
  int64_t index_of(ValueId value) const { return value - first_value_[static_cast<size_t>(term_of(value))]; }
  const Term& maker(ValueId value) const { return term(term_of(value)); }
  const Type& type(ValueId value) const { return maker(value).types[static_cast<size_t>(index_of(value))]; }

  ClassId find(ValueId value) const;
  // The values of the members of a class, the oldest first.
  std::vector<ValueId> members(ClassId of) const;
  bool is_member(TermId term) const { return is_member_[static_cast<size_t>(term)]; }

  // Says that two values of one type are equal, by the rewrite of that number. False where that was known.
  bool unite(ValueId from, ValueId to, int step);
  // Finds the terms that are congruent now; to be called after values were united.
  void rebuild();

  // Why two values of a class are equal.
  std::vector<Link> reasons(ValueId from, ValueId to) const;
  // For congruent terms: the operands of the second in the order in which those of the first are equal to
  // them.
  std::vector<ValueId> matching_operands(const Term& first, const Term& second) const;

 private:
  using Key = std::vector<int64_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct ValueEntry {
    TermId term;
    ClassId parent;  // in the union-find forest; itself for the root
    // The forest of reasons: the value that this one is linked to, and why; itself for a root.
    ValueId linked_to;
    int step = -1;
    bool forward = true;
  };
  struct ClassEntry {
    std::vector<ValueId> values;
    std::vector<TermId> users;
  };

  int64_t number_of(const Attributes& attributes);
  // What a term is known by: its operands exactly, or by their classes.
  Key key_of(TermId term, bool by_class) const;
  Key key_of(const Term& term, int64_t attributes, bool by_class) const;
  void add_congruent(TermId term);
  void link(ValueId from, ValueId to, int step);

  std::vector<Term> terms_;
  std::vector<int64_t> attribute_numbers_;  // of each term
  std::vector<ValueId> first_value_;
  std::vector<bool> is_member_;
  int64_t member_count_ = 0;
  mutable std::vector<ValueEntry> values_;
  std::vector<ClassEntry> classes_;  // by the value that is the root
  std::vector<ClassId> changed_;     // classes whose users may be congruent to others now
  std::unordered_map<Key, TermId, KeyHash> exact_, congruent_;
  std::vector<Attributes> attributes_;
  std::unordered_map<uint64_t, std::vector<int64_t>> attributes_by_hash_;
};

// The operands of a term, one after the other.
std::vector<ValueId> operands_of(const Term& term);
// The same term with other operands, given in that order.
Term with_operands(const Term& term, const std::vector<ValueId>& operands);

}  // namespace tenon::saturate
