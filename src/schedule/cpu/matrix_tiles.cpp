#include "schedule/cpu/matrix_tiles.h"

#include <algorithm>

#include "schedule/assign.h"
#include "schedule/cpu/gemm_tile.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Guard;
using loops::Mark;
using loops::Scalar;
using loops::Statement;

namespace {

Guard fetch_next(const std::string& summed, const std::vector<Scalar>& products, const Dim& where) {
  Guard guard{{where}, {}};
  std::vector<Scalar> known;
  for (const Scalar& product : products) {
    const Scalar& load = product.operands()[1];
    if (std::ranges::find(known, load) != known.end())
      continue;
    known.push_back(load);
    loops::Place place{load.name(), load.operands()};
    for (Scalar& index : place.at)
      index = index.substitute({{summed, Dim::symbol(summed) + kMatrixTileSide}});
    guard.body.emplace_back(loops::Prefetch{std::move(place)});
  }
  return guard;
}

}  // namespace

std::vector<Statement> sum_tiles(const loops::Definition& sum, const loops::Place& sums,
                                 const std::vector<Scalar>& products, const TileLoops& loops) {
  std::vector<Statement> iteration;
  if (loops.fetches)
    iteration.emplace_back(fetch_next(sum.reduced.back().variable, products, *loops.fetches));
  for (const Scalar& product : products)
    iteration.emplace_back(Assign{.places = {sums}, .combine = sum.combine, .values = {product}});
  std::vector<Statement> body =
      around(sum.reduced, Mark::Serial,
             as_list(make_loop(loops.lane, loops.lanes, Mark::Vector, std::move(iteration))));
  return as_list(make_loop(loops.row, loops.rows, Mark::Tile, std::move(body)));
}

}  // namespace tenon::schedule
