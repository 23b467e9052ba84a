// size_condition.h — what infer leaves open while sizes are symbols, as formulas: they say whether sizes go
// together without asking infer once more, and so where there are no ops.
//
// An infer that would refuse numbers, but cannot tell for symbols, assumes that they fit, and says so here.
#pragma once

#include <string>
#include <vector>

#include "ir/size_check.h"

namespace tenon {

struct SizeCondition {
  enum class Kind : uint8_t {
    Equal,
    Broadcast,  // equal, or one of them is 1
    Fill,       // equal, or a is 1
    AtMost,     // a is no more than b
    Multiple,   // a is one of b; or b is 0, by which nothing is divided
  };

  Kind kind = Kind::Equal;
  Dim a, b;
  std::string described = {};  // how an error speaks of the node

  friend bool operator==(const SizeCondition&, const SizeCondition&) = default;
};

// Each does nothing where it surely holds, or where nobody records. It does not say what surely does not
// hold: that is for infer to refuse.
void assume_equal(const Dim& a, const Dim& b);
void assume_broadcast(const Dim& a, const Dim& b);
void assume_fills(const Dim& a, const Dim& b);
void assume_at_most(const Dim& a, const Dim& b);
void assume_multiple(const Dim& a, const Dim& b);

// Collects what is assumed in this thread while it lives.
class AssumedConditions {
 public:
  AssumedConditions();
  ~AssumedConditions();
  AssumedConditions(const AssumedConditions&) = delete;
  AssumedConditions& operator=(const AssumedConditions&) = delete;

  const std::vector<SizeCondition>& conditions() const { return conditions_; }

 private:
  friend void assume(SizeCondition::Kind kind, const Dim& a, const Dim& b);

  AssumedConditions* const outer_;
  std::vector<SizeCondition> conditions_;
};

// Formulas that must hold.
class SizeConditions : public SizeCheck {
 public:
  explicit SizeConditions(std::vector<SizeCondition> conditions) : conditions_(std::move(conditions)) {}

  std::vector<SizeCondition> conditions() const override { return conditions_; }
  void check(const Bindings& sizes) override;

 private:
  const std::vector<SizeCondition> conditions_;
};

}  // namespace tenon
