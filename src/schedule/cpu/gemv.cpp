#include "schedule/cpu/gemv.h"

#include <algorithm>

#include "loops/contraction.h"
#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr const char *kSums = "chains", *kTotals = "all_chains";
// Loop variables, which end in a number: no size of the user's does when it gets here.
constexpr const char *kBlockVariable = "block0", *kLaneVariable = "lane0", *kChainVariable = "chain0",
                     *kStepVariable = "step0";
constexpr int64_t kMostVectors = 4;  // in a block: as many as are kept in registers by name

Scalar index(const char* variable) { return Scalar::index(Dim::symbol(variable)); }

class ChainBuilder {
 public:
  ChainBuilder(const Definition& row, const GemvTile& tile)
      : row_(row), lanes_(tile.nr), chains_(tile.accumulators) {}

  std::vector<Statement> run() {
    steps_ = row_;
    steps_.reduced = {{kStepVariable, floor_div(row_.reduced.front().size, chains_)}};
    parts_ = parts_of(steps_);
    std::vector<Statement> body;
    for (const std::string& name : std::set<std::string>{kSums, totals()})
      body.emplace_back(Local{
          {.name = name, .dtype = dtype(), .sizes = {chains_, lanes_}, .space = loops::Space::Private}});
    const auto append = [&](std::vector<Statement> statements) {
      for (Statement& statement : statements)
        body.push_back(std::move(statement));
    };
    append(in_all_chains(totals(), "", Scalar::zero(dtype())));
    append(reduce_over(steps_.reduced, Mark::Serial, parts_, in_all_chains(kSums, "", Scalar::zero(dtype())),
                       in_all_chains(kSums, "+", term(Dim::symbol(kStepVariable) * chains_ + chain())),
                       in_all_chains(totals(), "+", in_chain(kSums, index(kChainVariable)))));
    append(add_rest());
    append(store());
    return as_list(loop_over({kBlockVariable, *row_.axes.front().size.constant() / lanes_}, Mark::Serial,
                             std::move(body)));
  }

 private:
  DType dtype() const { return row_.results.front().dtype; }
  static Dim chain() { return Dim::symbol(kChainVariable); }
  std::string totals() const { return parts_ ? kTotals : kSums; }

  Scalar term(const Dim& place) const {
    return row_.values.front().substitute(
        {{row_.reduced.front().variable, place}, {row_.axes.front().variable, result()}});
  }
  Dim result() const { return Dim::symbol(kBlockVariable) * lanes_ + Dim::symbol(kLaneVariable); }
  Scalar in_chain(const std::string& buffer, const Scalar& chain) const {
    return Scalar::load(buffer, dtype(), {chain, index(kLaneVariable)});
  }
  Statement in_lanes(loops::Place place, std::string combine, const Scalar& value) const {
    return loop_over(
        {kLaneVariable, lanes_}, Mark::Vector,
        as_list(Assign{.places = {std::move(place)}, .combine = std::move(combine), .values = {value}}));
  }
  std::vector<Statement> in_all_chains(const std::string& buffer, const std::string& combine,
                                       const Scalar& value) const {
    return as_list(loop_over(
        {kChainVariable, chains_}, Mark::Unrolled,
        as_list(in_lanes({buffer, {index(kChainVariable), index(kLaneVariable)}}, combine, value))));
  }

  // Terms that are too few for all chains.
  std::vector<Statement> add_rest() const {
    Loop rest = loop_over({kStepVariable, row_.reduced.front().size}, Mark::Serial,
                          as_list(in_lanes({totals(), {Scalar::index(0), index(kLaneVariable)}}, "+",
                                           term(Dim::symbol(kStepVariable)))));
    rest.begin = steps_.reduced.front().size * chains_;
    return as_list(std::move(rest));
  }

  std::vector<Statement> store() const {
    Scalar sum = row_.initial.front();
    for (int64_t i = 0; i < chains_; ++i)
      sum = Scalar::apply(loops::Function::Add, {sum, in_chain(totals(), Scalar::index(i))});
    std::vector<Scalar> at;
    for (const Scalar& each : row_.at)
      at.push_back(each.substitute({{row_.axes.front().variable, result()}}));
    return as_list(in_lanes({row_.results.front().name, std::move(at)}, "", sum));
  }

  const Definition& row_;
  const int64_t lanes_, chains_;
  Definition steps_;  // the same, by as many terms as there are chains
  std::optional<Parts> parts_;
};

}  // namespace

// Blocks as wide as leave registers for two accumulators.
std::optional<GemvTile> choose_gemv_tile(const Definition& row, const Target& target) {
  if (!match_contraction(row) || row.axes.size() != 1 || row.reduced.size() != 1)
    return std::nullopt;
  const int64_t size = row.axes.front().size.constant().value_or(0),
                vector = target.vector_bytes / std::max(info(row.results.front().dtype).bytes, 4),
                registers = target.vector_registers / 2;
  for (int64_t nr = kMostVectors * kRegistersPerVector * vector; nr >= vector; nr /= 2)
    if (const int64_t accumulators = registers * vector / nr; size > 0 && size % nr == 0 && accumulators >= 2)
      return GemvTile{nr, accumulators};
  return std::nullopt;
}

std::vector<Statement> build_gemv(const Definition& row, const GemvTile& tile) {
  return ChainBuilder(row, tile).run();
}

}  // namespace tenon::schedule
