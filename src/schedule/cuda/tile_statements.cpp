#include "schedule/cuda/tile_statements.h"

#include "schedule/cuda/blocks.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Mark;
using loops::Statement;

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
