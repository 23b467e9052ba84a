#include "schedule/cuda/statements.h"

#include <algorithm>
#include <array>

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Buffer;
using loops::Guard;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;

namespace {

std::vector<Scalar> indices(const std::vector<Dim>& dims) {
  std::vector<Scalar> result;
  for (const Dim& dim : dims)
    result.push_back(index(dim));
  return result;
}

}  // namespace

Scalar element(const Buffer& from, const std::vector<Dim>& at) {
  return Scalar::load(from.name, from.dtype, indices(at));
}

Statement store(const Buffer& to, const std::vector<Dim>& at, const Scalar& value,
                const std::string& combine) {
  return Assign{.places = {{to.name, indices(at)}}, .combine = combine, .values = {value}};
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

bool has_unknown_index(const std::vector<Statement>& body) {
  bool any = false;
  const auto look_at = [&](const Dim& dim) { any = any || dim.is_unknown(); };
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement))
      std::ranges::for_each(std::array{loop->begin, loop->end}, look_at);
    if (const auto* guard = std::get_if<Guard>(&statement))
      std::ranges::for_each(guard->conditions, look_at);
    if (const auto* assign = std::get_if<Assign>(&statement)) {
      for (const Place& place : assign->places)
        for (const Scalar& at : place.at)
          loops::for_each_index(at, look_at);
      for (const Scalar& value : assign->values)
        loops::for_each_index(value, look_at);
    }
    if (const std::vector<Statement>* inner = body_of(statement))
      any = any || has_unknown_index(*inner);
  }
  return any;
}

}  // namespace tenon::schedule::cuda
