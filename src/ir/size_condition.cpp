#include "ir/size_condition.h"

#include <algorithm>

#include "base/error.h"

namespace tenon {
namespace {

using Kind = SizeCondition::Kind;

thread_local AssumedConditions* recorded = nullptr;

bool surely_holds(Kind kind, const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown())
    return true;  // it cannot be asked
  switch (kind) {
    case Kind::Equal:
      return a == b;
    case Kind::Broadcast:
      return a == b || a == Dim(1) || b == Dim(1);
    case Kind::Fill:
      return a == b || a == Dim(1);
    case Kind::AtMost:
      return (b - a).lower_bound().value_or(-1) >= 0;
    case Kind::Multiple:
      return divide_exactly(a, b).has_value();
  }
  return false;
}

bool holds(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::Equal:
      return a == b;
    case Kind::Broadcast:
      return a == b || a == 1 || b == 1;
    case Kind::Fill:
      return a == b || a == 1;
    case Kind::AtMost:
      return a <= b;
    case Kind::Multiple:
      return b == 0 || a % b == 0;
  }
  return false;
}

std::string explain(const SizeCondition& condition, int64_t a, int64_t b) {
  const auto named = [](const Dim& dim, int64_t value) {
    return dim.is_constant() ? dim.to_string() : fmt::format("{} = {}", dim, value);
  };
  const std::string first = named(condition.a, a), second = named(condition.b, b);
  switch (condition.kind) {
    case Kind::Equal:
      return fmt::format("the sizes {} and {} must be equal", first, second);
    case Kind::Broadcast:
      return fmt::format("the sizes {} and {} must be equal, or one of them 1", first, second);
    case Kind::Fill:
      return fmt::format("the size {} must be {}, or 1", first, second);
    case Kind::AtMost:
      return fmt::format("the size {} must not be more than {}", first, second);
    case Kind::Multiple:
      return fmt::format("the size {} must be a multiple of {}", first, second);
  }
  return "";
}

}  // namespace

void assume(Kind kind, const Dim& a, const Dim& b) {
  if (recorded == nullptr || (a.is_constant() && b.is_constant()) || surely_holds(kind, a, b))
    return;
  recorded->conditions_.push_back({.kind = kind, .a = a, .b = b});
}

void assume_equal(const Dim& a, const Dim& b) { assume(Kind::Equal, a, b); }
void assume_broadcast(const Dim& a, const Dim& b) { assume(Kind::Broadcast, a, b); }
void assume_fills(const Dim& a, const Dim& b) { assume(Kind::Fill, a, b); }
void assume_at_most(const Dim& a, const Dim& b) { assume(Kind::AtMost, a, b); }
void assume_multiple(const Dim& a, const Dim& b) { assume(Kind::Multiple, a, b); }

AssumedConditions::AssumedConditions() : outer_(std::exchange(recorded, this)) {}
AssumedConditions::~AssumedConditions() { recorded = outer_; }

void SizeConditions::check(const Bindings& sizes) {
  for (const SizeCondition& condition : conditions_) {
    const auto a = condition.a.evaluate(sizes), b = condition.b.evaluate(sizes);
    if (a && b && !holds(condition.kind, *a, *b))
      throw user_error("{}: {}", condition.described, explain(condition, *a, *b));
  }
}

}  // namespace tenon
