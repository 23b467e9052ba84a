#include "schedule/cuda/blocks.h"

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Loop;
using loops::Mark;
using loops::Statement;

namespace {

// What an index may be divided by: where an axis has no elements, nothing is.
Dim divisor(const Dim& size) { return size == Dim(0) ? Dim(1) : size; }

}  // namespace

FlatAxes flatten(const std::vector<Axis>& axes, const std::string& variable) {
  FlatAxes flat;
  for (size_t i = axes.size(); i-- > 0;) {
    const Dim outer = floor_div(Dim::symbol(variable), divisor(flat.size));
    flat.variables.emplace(axes[i].variable, i == 0 ? outer : mod(outer, divisor(axes[i].size)));
    flat.size = flat.size * axes[i].size;
  }
  return flat;
}

std::vector<Statement> substitute(const std::vector<Statement>& body,
                                  const std::map<std::string, Dim>& variables) {
  std::vector<Statement> result;
  for (const Statement& statement : body)
    result.push_back(loops::substitute(statement, variables));
  return result;
}

Statement in_chunks(const std::string& variable, const Dim& size, int64_t chunk, int64_t threads,
                    std::vector<Statement> body) {
  const std::string block = "b_" + variable;
  const Dim begin = Dim::symbol(block) * chunk;
  const bool is_whole = size.constant().value_or(1) % chunk == 0;
  Loop inner{.variable = variable,
             .begin = begin,
             .end = is_whole ? begin + chunk : min(size, begin + chunk),
             .mark = Mark::Thread,
             .body = std::move(body)};
  return over_blocks({{block, ceil_div(size, chunk)}}, threads, as_list(std::move(inner)));
}

Statement over_blocks(const std::vector<Axis>& axes, int64_t threads, std::vector<Statement> body) {
  std::vector<Statement> blocks =
      around(axes.empty() ? std::vector<Axis>{{"b_all0", 1}} : axes, Mark::Block, std::move(body));
  std::get<Loop>(blocks.front()).threads = threads;
  return std::move(blocks.front());
}

Statement over_threads(const std::string& variable, const Dim& size, std::vector<Statement> body) {
  return make_loop(variable, size, Mark::Thread, std::move(body));
}

void serialise(std::vector<Statement>& body) {
  for (Statement& statement : body) {
    if (auto* loop = std::get_if<Loop>(&statement); loop != nullptr && loop->mark != Mark::Unrolled)
      loop->mark = Mark::Serial;
    if (std::vector<Statement>* inner = body_of(statement))
      serialise(*inner);
  }
}

}  // namespace tenon::schedule
