#include "schedule/cpu/partition_loops.h"

#include <algorithm>

#include "loops/arithmetic.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Function;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Statement;

namespace {

// A condition that holds before an iteration, or from it on.
struct Change {
  int64_t iteration;
  bool holds_before;
};

std::optional<Change> find_change(const Scalar& condition, const std::string& variable) {
  const bool is_less = condition.function() == Function::Less;
  if (!is_less && condition.function() != Function::LessEqual)
    return std::nullopt;
  const std::optional<Dim> a = loops::as_index(condition.operands()[0]),
                           b = loops::as_index(condition.operands()[1]);
  if (!a || !b)
    return std::nullopt;
  const Dim room = *b - *a - (is_less ? 1 : 0);  // the condition holds where it is not negative
  const std::optional<int64_t> first = room.substitute({{variable, 0}}).constant();
  if (!first)
    return std::nullopt;
  if (room == *first - Dim::symbol(variable))
    return Change{*first + 1, true};
  if (room == *first + Dim::symbol(variable))
    return Change{-*first, false};
  return std::nullopt;
}

void add_changes(const Scalar& condition, const std::string& variable, std::vector<int64_t>& iterations) {
  if (condition.kind() != Scalar::Kind::Apply)
    return;
  if (const std::optional<Change> change = find_change(condition, variable))
    iterations.push_back(change->iteration);
  for (const Scalar& operand : condition.operands())
    add_changes(operand, variable, iterations);
}

// Iterations of a loop, from the first to before the last.
struct Iterations {
  int64_t begin, end;
};

std::optional<bool> known(const Scalar& condition, const std::string& variable, Iterations iterations) {
  if (condition.kind() != Scalar::Kind::Apply)
    return std::nullopt;
  if (const std::optional<Change> change = find_change(condition, variable)) {
    if (iterations.end <= change->iteration)
      return change->holds_before;
    return iterations.begin >= change->iteration ? std::optional(!change->holds_before) : std::nullopt;
  }
  const bool is_and = condition.function() == Function::And;
  if (!is_and && condition.function() != Function::Or)
    return std::nullopt;
  const std::optional<bool> a = known(condition.operands()[0], variable, iterations),
                            b = known(condition.operands()[1], variable, iterations);
  const bool decides = !is_and;  // either operand, alone
  if (a == decides || b == decides)
    return decides;
  return a && b ? std::optional(!decides) : std::nullopt;
}

// The formula in these iterations.
Scalar chosen(const Scalar& formula, const std::string& variable, Iterations iterations) {
  return loops::replace_selects(formula, [&](const Scalar& select) {
    const std::optional<bool> holds = known(select.operands()[0], variable, iterations);
    return holds ? select.operands()[*holds ? 1 : 2] : select;
  });
}

// Split points, from the begin to the end of the loop, such that no part is shorter than a vector.
std::vector<int64_t> find_splits(const Loop& loop, const Target& target) {
  std::vector<int64_t> changes;
  int64_t lanes = 1;
  for (const Statement& statement : loop.body) {
    const auto* assign = std::get_if<Assign>(&statement);
    if (assign == nullptr)
      return {};
    for (const Scalar& value : assign->values) {
      loops::replace_selects(value, [&](const Scalar& select) {
        add_changes(select.operands()[0], loop.variable, changes);
        return select;
      });
      lanes = std::max(lanes, target.vector_bytes / info(value.dtype()).bytes);
    }
  }
  std::ranges::sort(changes);
  std::vector<int64_t> iterations{*loop.begin.constant()};
  for (const int64_t change : changes)
    if (change - iterations.back() >= lanes && *loop.end.constant() - change >= lanes)
      iterations.push_back(change);
  iterations.push_back(*loop.end.constant());
  return iterations;
}

std::vector<Statement> divided(const Loop& loop, const Target& target) {
  std::vector<Statement> parts;
  const std::vector<int64_t> iterations = find_splits(loop, target);
  for (size_t i = 0; i + 1 < iterations.size(); ++i) {
    Loop part = loop;
    part.begin = iterations[i];
    part.end = iterations[i + 1];
    for (Statement& statement : part.body)
      for (Scalar& value : std::get<Assign>(statement).values)
        value = chosen(value, loop.variable, {iterations[i], iterations[i + 1]});
    parts.emplace_back(std::move(part));
  }
  return parts;
}

}  // namespace

void partition_loops(std::vector<Statement>& body, const Target& target) {
  std::vector<Statement> result;
  for (Statement& statement : body) {
    auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr && loop->mark == Mark::Vector && loop->step == 1 && loop->begin.is_constant() &&
        loop->end.is_constant())
      if (std::vector<Statement> parts = divided(*loop, target); parts.size() > 1) {
        std::ranges::move(parts, std::back_inserter(result));
        continue;
      }
    if (auto* inner = loops::body_of(statement))
      partition_loops(*inner, target);
    result.push_back(std::move(statement));
  }
  body = std::move(result);
}

}  // namespace tenon::schedule
