#include "codegen/vectors.h"

#include <algorithm>
#include <bit>
#include <set>

#include "loops/definition.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen {

using loops::Assign;
using loops::Guard;
using loops::Kernel;
using loops::Loop;
using loops::mentions;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

bool mentions(const Dim& dim, const std::string& variable) {
  return loops::mentions(Scalar::index(dim), variable);
}
bool mentions(const Place& place, const std::string& variable) {
  return std::any_of(place.at.begin(), place.at.end(),
                     [&](const Scalar& each) { return loops::mentions(each, variable); });
}

bool is_unordered(const Assign& assign, const Kernel& kernel) {
  const loops::Combine* combine = kernel.find_combine(assign.combine);
  return combine == nullptr ? loops::built_in_combine(assign.combine).has_value() : combine->unordered;
}

// Whether each lane can write its place; `inner` are the variables of loops within the lanes.
bool can_write(const Assign& assign, const Place& place, const std::string& lane,
               const std::set<std::string>& inner, const Kernel& kernel) {
  if (mentions(place, lane))
    return std::all_of(place.at.begin(), place.at.end(),
                       [](const Scalar& index) { return index.kind() == Scalar::Kind::Index; });
  if (assign.combine.empty() || !is_unordered(assign, kernel))
    return false;
  return std::none_of(inner.begin(), inner.end(),
                      [&](const std::string& each) { return mentions(place, each); });
}

bool can_run_in_lanes(const std::vector<Statement>& body, const std::string& lane,
                      const std::set<std::string>& inner, const Kernel& kernel) {
  for (const Statement& statement : body) {
    if (const auto* assign = std::get_if<Assign>(&statement)) {
      for (const Place& place : assign->places)
        if (!can_write(*assign, place, lane, inner, kernel))
          return false;
    } else if (const auto* loop = std::get_if<Loop>(&statement)) {
      std::set<std::string> within = inner;
      within.insert(loop->variable);
      if (mentions(loop->begin, lane) || mentions(loop->end, lane) ||
          !can_run_in_lanes(loop->body, lane, within, kernel))
        return false;
    } else if (const auto* guard = std::get_if<Guard>(&statement)) {
      for (const Dim& condition : guard->conditions)
        if (mentions(condition, lane))
          return false;
      if (!can_run_in_lanes(guard->body, lane, inner, kernel))
        return false;
    } else if (!std::holds_alternative<loops::Prefetch>(statement)) {
      return false;
    }
  }
  return true;
}

void widen(const Scalar& scalar, int64_t& bytes) {
  if (scalar.kind() == Scalar::Kind::Index)
    return;
  bytes = std::max<int64_t>(
      bytes, is_float(scalar.dtype()) ? std::max(info(scalar.dtype()).bytes, 4) : info(scalar.dtype()).bytes);
  if (scalar.kind() != Scalar::Kind::Load)
    for (const Scalar& operand : scalar.operands())
      widen(operand, bytes);
}
void widen(const std::vector<Statement>& body, int64_t& bytes) {
  for (const Statement& statement : body) {
    if (const auto* assign = std::get_if<Assign>(&statement))
      for (const Scalar& value : assign->values)
        widen(value, bytes);
    if (const auto* inner = body_of(statement))
      widen(*inner, bytes);
  }
}

void find_folded(const std::vector<Statement>& body, const std::string& lane,
                 std::vector<const Assign*>& found) {
  for (const Statement& statement : body) {
    if (const auto* assign = std::get_if<Assign>(&statement);
        assign != nullptr && !mentions(assign->places.front(), lane))
      found.push_back(assign);
    if (const auto* inner = body_of(statement))
      find_folded(*inner, lane, found);
  }
}

}  // namespace

bool can_vectorise(const Loop& loop, const Kernel& kernel, const Target& target) {
  return loop.step == 1 && lanes_for(loop, target) > 1 &&
         can_run_in_lanes(loop.body, loop.variable, {}, kernel);
}

int64_t lanes_for(const Loop& loop, const Target& target) {
  int64_t bytes = 1;
  widen(loop.body, bytes);
  int64_t lanes = std::max<int64_t>(target.vector_bytes / bytes, 1) * kRegistersPerVector;
  // Where an iteration only accumulates, it waits for the one before.
  if (find_folded(loop).size() == loop.body.size())
    lanes *= 2;
  const std::optional<int64_t> iterations = loops::iterations_of(loop).constant();
  if (!iterations)
    return lanes;
  lanes = std::min<int64_t>(
      lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(*iterations, 1)))));
  // One and a half vectors of two registers are three registers.
  if (2 * *iterations == 3 * lanes && lanes > target.vector_bytes / bytes)
    lanes /= 2;
  return lanes;
}

std::vector<const Assign*> find_folded(const Loop& loop) {
  std::vector<const Assign*> found;
  find_folded(loop.body, loop.variable, found);
  return found;
}

bool can_mask(DType dtype, const Target& target) {
  const int64_t least = target.vector_bytes >= 64   ? 1
                        : target.vector_bytes >= 32 ? 4
                                                    : 16;  // bytes of an element
  return info(dtype).bytes >= least;
}

bool can_mask(const std::vector<Statement>& body, const Target& target) {
  const auto fits = [&](const Scalar& scalar) { return can_mask(scalar.dtype(), target); };
  for (const Statement& statement : body) {
    if (const auto* assign = std::get_if<Assign>(&statement)) {
      if (!loops::built_in_combine(assign->combine.empty() ? "+" : assign->combine))
        return false;
      bool all = true;
      for (const Scalar& value : assign->values) {
        all = all && fits(value);
        loops::for_each_load(value, [&](const Scalar& load) { all = all && fits(load); });
      }
      if (!all)
        return false;
    }
    if (const auto* inner = body_of(statement); inner != nullptr && !can_mask(*inner, target))
      return false;
  }
  return true;
}

}  // namespace tenon::codegen
