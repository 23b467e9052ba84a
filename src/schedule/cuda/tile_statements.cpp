#include "schedule/cuda/tile_statements.h"

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Guard;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Statement;

namespace {

std::vector<Scalar> indices(const std::vector<Dim>& dims) {
  std::vector<Scalar> result;
  for (const Dim& dim : dims)
    result.push_back(Scalar::index(dim));
  return result;
}

}  // namespace

Statement store(const Buffer& to, const std::vector<Dim>& at, const Scalar& value,
                const std::string& combine) {
  return Assign{.places = {{to.name, indices(at)}}, .combine = combine, .values = {value}};
}

Scalar element(const Buffer& from, const std::vector<Dim>& at) {
  return Scalar::load(from.name, from.dtype, indices(at));
}

std::vector<Statement> loop(const std::string& variable, const Dim& count, Mark mark,
                            std::vector<Statement> body) {
  if (count == Dim(1))
    return substitute(body, {{variable, 0}});
  return as_list(make_loop(variable, count, mark, std::move(body)));
}

std::vector<Statement> where(const std::string& variable, const Dim& value, std::vector<Statement> body) {
  return as_list(Loop{.variable = variable,
                      .begin = value,
                      .end = value + 1,
                      .mark = Mark::Unrolled,
                      .body = std::move(body)});
}

std::vector<Statement> guarded(const std::vector<Dim>& conditions, std::vector<Statement> body) {
  return conditions.empty() ? std::move(body) : as_list(Guard{conditions, std::move(body)});
}

std::vector<Statement> in_lanes(int64_t vector, std::vector<Statement> body) {
  return loop(kLane, vector, Mark::Vector, std::move(body));
}

VectorAxes in_vectors(std::vector<Axis> axes, int64_t vector, const std::string& variable) {
  if (axes.empty())
    return {1, {}};
  if (vector == 1) {
    FlatAxes flat = flatten(axes, variable);
    return {flat.size, std::move(flat.variables)};
  }
  axes.back().size = *divide_exactly(axes.back().size, vector);
  FlatAxes flat = flatten(axes, variable);
  Dim& last = flat.variables.at(axes.back().variable);
  last = last * vector + symbol(kLane);
  return {flat.size, std::move(flat.variables)};
}

}  // namespace tenon::schedule::cuda
