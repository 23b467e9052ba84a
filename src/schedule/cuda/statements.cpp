#include "schedule/cuda/statements.h"

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Buffer;
using loops::Mark;
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
  return as_list(loops::Loop{.variable = variable,
                             .begin = value,
                             .end = value + 1,
                             .mark = Mark::Unrolled,
                             .body = std::move(body)});
}

std::vector<Statement> guarded(const std::vector<Dim>& conditions, std::vector<Statement> body) {
  return conditions.empty() ? std::move(body) : as_list(loops::Guard{conditions, std::move(body)});
}

}  // namespace tenon::schedule::cuda
