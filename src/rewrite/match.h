// match.h — where a pattern stands in a graph, and what its parts stand for there.
#pragma once

#include <optional>

#include "rewrite/pattern.h"
#include "rewrite/region.h"

namespace tenon {

class Match {
 public:
  // The value that a part of the pattern stands for.
  Value operator[](const Pattern& part) const;
  bool has(const Pattern& part) const;  // false for the alternative that was not taken
  // The node that makes it.
  const Node& node(const Pattern& part) const;
  // The one number that all elements of a constant are; nothing when they differ or are not known.
  std::optional<double> number(const Pattern& part) const;
  // What the whole pattern stands for; of several values together, the first.
  Value root() const { return roots_.front(); }
  const std::vector<Value>& roots() const { return roots_; }
  // What matched computed_from.
  const UnaryRegion& region() const { return *region_; }
  // The nodes that matched an op of the pattern, in no order.
  const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  friend class Matcher;
  std::vector<Value> roots_;
  std::vector<std::pair<const PatternNode*, Value>> bound_;
  std::vector<Node*> nodes_;
  const UnaryRegion* region_ = nullptr;  // of the known ones
};

// The first way in which the pattern can stand for `value`, or for it and others together, and that `accept`
// takes; tries all of them.
std::optional<Match> find_match(const Pattern& pattern, Value value, KnownRegions& regions,
                                const std::function<bool(const Match&)>& accept);

// The node that makes a value, if it is of this op; else null.
Node* maker(Value value, std::string_view op);

// Whether it is a tensor of known rank.
bool is_ranked(Value value);

// Whether a value is fixed before the graph runs: made of constants and parameters alone, and not at random.
bool is_fixed(Value value);

// The elements of a constant, where they are few. Those of parameters are not for rules to know, nor what is
// made of them, until freeze_parameters makes constants of them: a rule that knew them would change their
// gradients.
const Tensor* known_elements(Value value);

// The number that all elements of a constant are, however many.
std::optional<double> uniform_number(Value value);

}  // namespace tenon
