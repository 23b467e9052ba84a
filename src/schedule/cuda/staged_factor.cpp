#include "schedule/cuda/staged_factor.h"

#include <algorithm>

#include "loops/arithmetic.h"
#include "schedule/assign.h"
#include "schedule/cuda/tile_statements.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

const std::string kAcross = "across0", kAlong = "along0";

// Whether none of them is negative.
Scalar all_hold(const std::vector<Dim>& conditions) {
  std::optional<Scalar> all;
  for (const Dim& condition : conditions) {
    const Scalar holds = loops::less_equal(index(0), index(condition));
    all = all ? *all && holds : holds;
  }
  return *all;
}

}  // namespace

StagedFactor::StagedFactor(const TiledFactor& from, const std::vector<Axis>& k, int64_t rows,
                           int64_t products, int64_t threads, std::string tile, std::string next, DType dtype)
    : from_(from), k_(k), rows_(rows), products_(products), threads_(threads), tile_(std::move(tile)) {
  from_.vector = std::min(from_.vector, kBytesOfVector / info(dtype).bytes);
  while (rows * products % (from_.vector * threads) != 0)
    from_.vector /= 2;
  parts_ = rows * products / (from_.vector * threads);
  next_ = {std::move(next), dtype, {threads, parts_, from_.vector}, Space::Private};
}

StagedFactor::Vector StagedFactor::vector_of_thread() const {
  const Dim number = symbol(kPart) * threads_ + symbol(kThread);
  const int64_t row_of_vectors = (from_.is_along_k ? products_ : rows_) / from_.vector;
  return {floor_div(number, row_of_vectors), mod(number, row_of_vectors)};
}

std::vector<Dim> StagedFactor::place_of_next() const {
  return {symbol(kThread), symbol(kPart), symbol(kLane)};
}

std::vector<Statement> StagedFactor::for_each_vector(const Dim& step, const Body& body) const {
  const bool along_k = from_.is_along_k;
  const int64_t vector = from_.vector;
  const VectorAxes rows = in_vectors(from_.rows, along_k ? 1 : vector, along_k ? kAcross : kAlong),
                   k = in_vectors(k_, along_k ? vector : 1, along_k ? kAlong : kAcross);
  const Dim first_row = symbol(tile_) * (rows_ / (along_k ? 1 : vector)),
            first_k = step * (products_ / (along_k ? vector : 1));
  std::vector<Dim> conditions;
  if (!divide_exactly(size_of(from_.rows), rows_))
    conditions.push_back(rows.vectors - 1 - symbol(along_k ? kAcross : kAlong));
  // Of no products there is no first step, which is loaded all the same.
  if (!divide_exactly(size_of(k_), products_) || size_of(k_).lower_bound().value_or(0) < 1)
    conditions.push_back(k.vectors - 1 - symbol(along_k ? kAlong : kAcross));
  std::map<std::string, Dim> variables = rows.variables;
  variables.insert(k.variables.begin(), k.variables.end());
  for (const Dim& condition : from_.conditions)
    conditions.push_back(condition.substitute(variables));
  const Vector at = vector_of_thread();
  return loop(kPart, parts_, Mark::Unrolled,
              where(kAcross, (along_k ? first_row : first_k) + at.across,
                    where(kAlong, (along_k ? first_k : first_row) + at.along, body(variables, conditions))));
}

std::vector<Statement> StagedFactor::load(const Dim& step) const {
  return for_each_vector(
      step, [&](const std::map<std::string, Dim>& variables, const std::vector<Dim>& conditions) {
        const auto store_next = [&](const Scalar& value) {
          return in_lanes(from_.vector, as_list(store(next_, place_of_next(), value)));
        };
        std::vector<Statement> loads;
        if (!conditions.empty())
          append(loads, store_next(Scalar::zero(next_.dtype)));
        append(loads, guarded(conditions, store_next(from_.value.substitute(variables))));
        return loads;
      });
}

std::vector<Statement> StagedFactor::copy(const Dim& step, const Buffer& to, const PlaceOf& place_of) const {
  return for_each_vector(
      step, [&](const std::map<std::string, Dim>& variables, const std::vector<Dim>& conditions) {
        const Vector at = vector_of_thread();
        const Dim along = at.along * from_.vector + symbol(kLane);
        Scalar value = from_.value.substitute(variables);
        if (!conditions.empty())
          value = loops::select(all_hold(conditions), value, Scalar::zero(value.dtype()));
        return in_lanes(
            from_.vector,
            as_list(store(to, from_.is_along_k ? place_of(at.across, along) : place_of(along, at.across),
                          value)));
      });
}

std::vector<Statement> StagedFactor::for_each(const Store& store) const {
  const Vector at = vector_of_thread();
  const Dim along = at.along * from_.vector + symbol(kLane);
  const Scalar value = element(next_, place_of_next());
  std::vector<Statement> stores =
      from_.is_along_k ? store(at.across, along, value) : store(along, at.across, value);
  std::vector<Statement> body;
  for (Statement& each : stores)
    append(body, in_lanes(from_.vector, as_list(std::move(each))));
  return loop(kPart, parts_, Mark::Unrolled, std::move(body));
}

bool can_gather(const TiledFactor& from, int64_t rows, int64_t products, int64_t threads) {
  const Scalar& load = from.value;
  return load.kind() == Scalar::Kind::Load && from.vector * info(load.dtype()).bytes >= kBytesOfVector &&
         rows * products % (from.vector * threads) == 0 &&
         std::ranges::all_of(load.operands(),
                             [](const Scalar& each) { return each.kind() == Scalar::Kind::Index; });
}

}  // namespace tenon::schedule::cuda
