// explore.h — applies rules to an e-graph until nothing new comes of it, or a limit is met.
#pragma once

#include <chrono>

#include "rewrite/journal.h"
#include "rewrite/rule.h"
#include "rewrite/saturate/egraph.h"

namespace tenon::saturate {

struct Limits {
  // Those that make two runs the same.
  int64_t members = 800;      // that an e-graph has when no more are added
  int64_t candidates = 6000;  // terms on which rules are tried
  int64_t rounds = 10;        // through all members
  // One that does not.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  bool is_over() const { return std::chrono::steady_clock::now() >= deadline; }
};

// A rewrite of one term into another.
struct Step {
  std::string_view rule;
  Numerics numerics;
  std::vector<TermId> replaced;  // the terms of the match
};

// Rules by the ops that their matches end in. Those for several results at once are left out: in an e-graph,
// no two values are beside each other.
class RuleIndex {
 public:
  RuleIndex(const Rules& rules, const Journal& journal);
  const std::vector<const Rule*>& at(std::string_view op) const;

 private:
  std::map<std::string, std::vector<const Rule*>, std::less<>> by_op_;
};

// The steps by which values were found to be equal; links in the e-graph have their numbers.
std::vector<Step> explore(EGraph& egraph, const RuleIndex& rules, const Limits& limits);

}  // namespace tenon::saturate
