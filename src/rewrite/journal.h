// journal.h — what was rewritten, in order, and what was not, and why. Also how much may be rewritten: which
// classes of numerics, and how many applications, so that the one that broke a model can be found.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// How far the result of a rewrite may be from what it replaces.
enum class Numerics : uint8_t {
  BitExact,          // the same bits, the signs of zeros included; NaN stays NaN
  Reassociates,      // the same number but for rounding, wherever the original's intermediates are finite: 0
                     // may become -0
  AssumesFinite,     // another number where something is NaN, infinite or -0
  ChangesPrecision,  // within the rounding of a narrower dtype
};
std::string_view name(Numerics numerics);

// What the user allows: strict means BitExact, default also Reassociates, fast everything.
enum class NumericsBudget : uint8_t { Strict, Default, Fast };
NumericsBudget parse_numerics_budget(std::string_view word);

struct Application {
  int64_t number;  // counted from 1 over a whole pipeline
  std::string pass, rule;
  std::vector<std::string> nodes;  // that were replaced, as the user knows them
  Numerics numerics;               // how far the result may be from what it replaces
};

struct Remark {
  std::string pass, rule;
  std::string node;    // as the user knows it
  std::string reason;  // why the rule was not applied to it

  friend auto operator<=>(const Remark&, const Remark&) = default;
};

class Journal {
 public:
  explicit Journal(NumericsBudget budget = NumericsBudget::Default,
                   int64_t most_applications = std::numeric_limits<int64_t>::max())
      : budget_(budget), most_applications_(most_applications) {}

  bool allows(Numerics numerics) const;
  // False once as many rewrites were made as were asked for: from then on the graph stays as it is.
  bool is_open() const { return count() < most_applications_; }

  void set_pass(std::string_view pass) { pass_ = pass; }
  // Told before the rewrite shows in the graph: what is made for it may be there, but nothing uses it yet.
  void applied(std::string_view rule, const std::vector<Node*>& replaced, Numerics numerics);
  void declined(std::string_view rule, const Node& node, std::string reason);

  // Told of every rewrite before it shows in the graph.
  void set_observer(std::function<void(const Application&)> observer) { observer_ = std::move(observer); }

  const std::vector<Application>& applications() const { return applications_; }
  int64_t count() const { return static_cast<int64_t>(applications_.size()); }
  const std::set<Remark>& remarks() const { return remarks_; }

 private:
  NumericsBudget budget_;
  int64_t most_applications_;
  std::string pass_;
  std::vector<Application> applications_;
  std::set<Remark> remarks_;
  std::function<void(const Application&)> observer_;
};

// The names that the nodes had in the user's model, each once.
std::vector<std::string> sources_of(const std::vector<Node*>& nodes);

}  // namespace tenon
