#include "schedule/cpu/gemm.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "loops/contraction.h"
#include "schedule/assign.h"
#include "schedule/blocked_sum.h"
#include "schedule/cpu/gemm_indices.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/matrix_tiles.h"
#include "schedule/cpu/prefetch_b.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Guard;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::mentions;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::ContractionPlan;
using lowering::PackedA;
using lowering::PackedB;

namespace {

constexpr const char *kPanel = "panel", *kTotals = "totals";
// Loop variables, beside those of GemmIndices.
constexpr const char *kPartVariable = "part0", *kPanelVariable = "panel0",
                     *kIterationsVariable = "iterations0", *kGroupVariable = "group0";

class GemmBuilder : GemmIndices {
 public:
  GemmBuilder(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
              const ContractionPlan& plan, const Target& target, const std::optional<PackedB>& packed_b,
              const std::optional<PackedA>& packed_a)
      : GemmIndices(definitions.front(), *plan.tile, packed_b, packed_a),
        definitions_(definitions),
        outputs_(outputs),
        target_(target),
        blocks_(plan.cache_blocks),
        parts_(tile_.tiles ? std::nullopt : parts_of(sum_)) {
    CHECK(tile_.tiles || loops::match_products(sum_.values.front()).size() <= 1,
          "only tiles add several products at once");
  }

  std::vector<Statement> run() {
    std::vector<Statement> body = blocks();
    const std::vector<size_t> outer = outer_axes();
    for (size_t i = outer.size(); i-- > 0;)
      if (const Axis& axis = sum_.axes[outer[i]];
          !blocks_.rows_share_panel || mentions(*along_, axis.variable))
        body = as_list(make_loop(axis.variable, axis.size, Mark::Parallel, std::move(body)));
    return body;
  }

 private:
  // Whether a single row reads contiguous operands in place: packing would take as long as computing.
  bool reads_row_directly() const {
    return !row_size().is_constant() && runs_through_memory(sum_.values.front(), sum_.axes.back());
  }

  // The packed operands of a block of lanes, by reduced axes and lane.
  Buffer panel() const {
    Buffer panel{.name = kPanel, .dtype = along_->dtype(), .sizes = {}};
    for (const Axis& axis : sum_.reduced)
      panel.sizes.push_back(axis.size);
    panel.sizes.emplace_back(tile_.nr);
    return panel;
  }
  std::vector<Scalar> place_in_panel() const {
    std::vector<Scalar> place = loops::variables_of(sum_.reduced);
    place.push_back(Scalar::index(Dim::symbol(kLaneVariable)));
    return place;
  }
  std::vector<Statement> pack() const {
    std::vector<Statement> body = as_list(make_loop(
        kLaneVariable, tile_.nr, Mark::Vector,
        as_list(Assign{
            .places = {{kPanel, place_in_panel()}}, .combine = "", .values = {placed(*along_, false)}})));
    for (size_t i = sum_.reduced.size(); i-- > 0;)
      body =
          as_list(make_loop(sum_.reduced[i].variable, sum_.reduced[i].size, Mark::Serial, std::move(body)));
    if (reads_row_directly())
      body = as_list(Guard{{row_size() - 2}, std::move(body)});
    body.insert(body.begin(), Statement(Local{panel()}));
    return body;
  }

  // Where the sums of a block are in the end.
  std::string whole_sums() const { return parts_ ? "all_" + sums_ : sums_; }

  // Statements for each row and lane of the block.
  std::vector<Statement> for_block(Statement statement, bool guarded) const {
    return for_block(as_list(std::move(statement)), guarded);
  }
  std::vector<Statement> for_block(std::vector<Statement> statements, bool guarded) const {
    Statement lanes = make_loop(kLaneVariable, tile_.nr, Mark::Vector, std::move(statements));
    if (!tile_.row)
      return as_list(std::move(lanes));
    std::vector<Statement> body = as_list(std::move(lanes));
    if (guarded && !fills_rows())
      body = as_list(Guard{{is_own_row()}, std::move(body)});
    // Unrolling as many rows as AMX tiles have would bloat the code.
    return as_list(make_loop(kRowVariable, tile_.mr,
                             tile_.tiles && tile_.mr >= kMatrixTileSide ? Mark::Serial : Mark::Unrolled,
                             std::move(body)));
  }

  std::vector<Statement> add_tiles() const {
    std::vector<Scalar> products;
    for (const loops::Product& product : loops::match_products(sum_.values.front()))
      products.push_back(
          Scalar::apply(product.function, {placed_in_first_lane(product.lhs), placed(product.rhs, false)}));
    return sum_tiles(sum_, {sums_, place_of_sum()}, products,
                     {.row = kRowVariable,
                      .lane = kLaneVariable,
                      .rows = tile_.mr,
                      .lanes = tile_.nr,
                      .fetches = target_.matrix_tiles
                                     ? std::optional(first_iteration(*tile_.row) - Dim::symbol(kRowsVariable))
                                     : std::nullopt});
  }
  // Of this part, along an axis; of blocks, where it is that of the rows.
  Dim first_iteration(size_t axis) const {
    if (blocks_.parted_axis != axis || blocks_.parts == 1)
      return 0;
    const Dim iterations = axis == tile_.row ? row_blocks() : sum_.axes[axis].size;
    return Dim::symbol(kPartVariable) * ceil_div(iterations, blocks_.parts);
  }

  std::vector<Statement> add_terms() const {
    const auto sums = [&](Scalar value) {
      return Assign{
          .places = {{sums_, place_of_sum()}}, .combine = sum_.combine, .values = {std::move(value)}};
    };
    if (!tile_.row)
      return for_block(sums(placed(sum_.values.front(), false)), false);
    // What all rows share is loaded once.
    const DType dtype = along_->dtype();
    const std::vector<Scalar> at{Scalar::index(Dim::symbol(kLaneVariable))};
    std::vector<Statement> body;
    if (slides())
      return add_terms_row_by_row();
    body.emplace_back(
        Local{{.name = factors_, .dtype = dtype, .sizes = {tile_.nr}, .space = Space::Private}});
    body.emplace_back(
        make_loop(kLaneVariable, tile_.nr, Mark::Vector,
                  as_list(Assign{.places = {{factors_, at}},
                                 .combine = "",
                                 .values = {tile_.packs ? Scalar::load(kPanel, dtype, place_in_panel())
                                                        : placed(*along_, false)}})));
    if (packed_b_ && blocks_.rows_share_panel)
      append(body, fetch_ahead());
    for (Statement& statement :
         for_block(sums(product_of(placed_across(), Scalar::load(factors_, dtype, at))), false))
      body.push_back(std::move(statement));
    return body;
  }

  bool slides() const { return tile_.slides && !parts_; }

  // The axes around what add_terms adds.
  std::vector<Axis> iterations_of_sum() const {
    return {sum_.reduced.begin(), sum_.reduced.end() - (slides() ? 1 : 0)};
  }

  // Unrolls the last reduced axis for each row, so that code generation sees the shared loads.
  std::vector<Statement> add_terms_row_by_row() const {
    const Axis& last = sum_.reduced.back();
    const DType dtype = along_->dtype();
    const std::vector<Scalar> of_factors{Scalar::index(Dim::symbol(last.variable)),
                                         Scalar::index(Dim::symbol(kLaneVariable))};
    const Loop factors =
        make_loop(kLaneVariable, tile_.nr, Mark::Vector,
                  as_list(Assign{.places = {{factors_, of_factors}},
                                 .combine = "",
                                 .values = {tile_.packs ? Scalar::load(kPanel, dtype, place_in_panel())
                                                        : placed(*along_, false)}}));
    const Loop terms = make_loop(
        kLaneVariable, tile_.nr, Mark::Vector,
        as_list(Assign{.places = {{sums_, place_of_sum()}},
                       .combine = sum_.combine,
                       .values = {product_of(placed_across(), Scalar::load(factors_, dtype, of_factors))}}));
    std::vector<Statement> body;
    body.emplace_back(
        Local{{.name = factors_, .dtype = dtype, .sizes = {last.size, tile_.nr}, .space = Space::Private}});
    for (int64_t iteration = 0; iteration < *last.size.constant(); ++iteration)
      body.emplace_back(loops::substitute(factors, {{last.variable, iteration}}));
    for (int64_t row = 0; row < tile_.mr; ++row)
      for (int64_t iteration = 0; iteration < *last.size.constant(); ++iteration)
        body.emplace_back(loops::substitute(terms, {{last.variable, iteration}, {kRowVariable, row}}));
    return body;
  }

  // As in the formula.
  Scalar product_of(Scalar across, Scalar along) const {
    const Scalar& value = sum_.values.front();
    if (value.operands()[0] != *across_)
      std::swap(across, along);
    return Scalar::apply(value.function(), {std::move(across), std::move(along)});
  }

  // Contiguous panels are read sequentially.
  std::vector<Statement> fetch_ahead() const {
    std::optional<loops::Place> here;
    loops::for_each_load(placed(*along_, false), [&](const Scalar& load) {
      if (load.name() == packed_b_->buffer)
        here = {load.name(), load.operands()};
    });
    CHECK(here, "no factor is in the panels {}", packed_b_->buffer);
    PackedBReads reads{
        .here = *here, .next = *here, .summed = sum_.reduced.back().variable, .lane = kLaneVariable};
    for (const Axis& axis : sum_.reduced) {
      reads.iteration = reads.iteration * axis.size + Dim::symbol(axis.variable);
      reads.iterations = reads.iterations * axis.size;
    }
    const size_t lane = here->at.size() - 1, panel = lane - 1 - sum_.reduced.size();
    reads.next.at[panel] = Scalar::index(Dim::symbol(kLanesVariable) + 1);
    for (size_t i = panel + 1; i <= lane; ++i)
      reads.next.at[i] = Scalar::index(0);
    if (blocks_.k_blocks) {
      const Dim first = Dim::symbol(kIterationsVariable) * blocks_.k_blocks->iterations;
      reads.next.at[panel + 1] = Scalar::index(first);
      reads.iteration = reads.iteration - first;
      reads.iterations = blocks_.k_blocks->iterations;
    }
    reads.lanes = tile_.nr;
    reads.line = kCacheLine / info(along_->dtype()).bytes;
    reads.passes = 1;
    for (size_t i : axes_within_panel()) {
      reads.pass = reads.pass * sum_.axes[i].size + Dim::symbol(sum_.axes[i].variable) - first_iteration(i);
      reads.passes = reads.passes * sum_.axes[i].size;
    }
    const Dim blocks = row_blocks();
    reads.pass = reads.pass * blocks + Dim::symbol(kRowsVariable) - first_iteration(*tile_.row);
    reads.passes = floor_div(reads.passes * blocks, blocks_.parts);
    std::vector<Statement> fetches = prefetch_b(reads);
    if (blocks_.prefetches_rows)
      fetches.emplace_back(fetch_rows());
    return fetches;
  }
  // Of the next row block, as many elements in each iteration as a block has rows.
  loops::Prefetch fetch_rows() const {
    const Axis& summed = sum_.reduced.front();
    std::map<std::string, Dim> at{{summed.variable, Dim::symbol(summed.variable) * tile_.mr}};
    place_in_axes(at, (Dim::symbol(kRowsVariable) + 1) * tile_.mr, tile_.first_row_axis, *tile_.row + 1);
    const Scalar load = across_->substitute(at);
    return {{load.name(), load.operands()}};
  }

  // The epilogue.
  std::vector<Statement> store() {
    std::vector<Statement> stores;
    const DType dtype = sum_.results.front().dtype;
    for (Assign& assign : build_epilogue(definitions_, outputs_,
                                         blocks_.k_blocks ? Scalar::load(kTotals, dtype, place_of_total())
                                                          : Scalar::load(whole_sums(), dtype, place_of_sum()),
                                         [&](const Scalar& scalar) { return placed(scalar, true); }))
      stores.emplace_back(std::move(assign));
    return for_block(std::move(stores), true);
  }

  void name_next_block() {
    sums_ = fmt::format("sums{}", made_);
    factors_ = fmt::format("factors{}", made_++);
  }
  Local of_block(const std::string& name) const {
    std::vector<Dim> sizes;
    if (tile_.row)
      sizes.emplace_back(tile_.mr);
    sizes.emplace_back(tile_.nr);
    return {{.name = name,
             .dtype = sum_.results.front().dtype,
             .sizes = std::move(sizes),
             .space = Space::Private}};
  }
  std::vector<Statement> assign(const loops::Place& to, const std::string& combine,
                                const Scalar& value) const {
    return for_block(Assign{.places = {to}, .combine = combine, .values = {value}}, false);
  }

  // What is computed of one block of rows and lanes.
  std::vector<Statement> block() {
    name_next_block();
    const DType dtype = sum_.results.front().dtype;
    const loops::Place sums{sums_, place_of_sum()}, all{whole_sums(), place_of_sum()};
    std::vector<Statement> block;
    for (const std::string& name : std::set{sums_, whole_sums()})
      block.emplace_back(of_block(name));
    append(block, assign(all, "", sum_.initial.front()));
    if (tile_.tiles) {
      append(block, add_tiles());
      append(block, store());
      return block;
    }
    append(block,
           reduce_over(iterations_of_sum(), Mark::Serial, parts_, assign(sums, "", Scalar::zero(dtype)),
                       add_terms(), assign(all, sum_.combine, Scalar::load(sums_, dtype, sums.at))));
    append(block, store());
    return block;
  }

  // --- cache blocking of the reduction, where rows would be evicted before the next panel needs them ---

  // A block of reduction iterations for all rows and some panels, then the next.
  std::vector<Statement> in_k_blocks() {
    const Axis& summed = sum_.reduced.front();
    const auto over_group = [&](Body body) {
      Loop panels = make_loop(kLanesVariable, whole_panels(), Mark::Serial, over_rows(Mark::Serial, body));
      panels.begin = Dim::symbol(kGroupVariable) * blocks_.k_blocks->panels;
      panels.end = min(panels.begin + blocks_.k_blocks->panels, whole_panels());
      return as_list(std::move(panels));
    };
    std::vector<Statement> body = as_list(Local{
        {.name = kTotals,
         .dtype = sum_.results.front().dtype,
         .sizes = {blocks_.k_blocks->panels, ceil_div(row_blocks(), blocks_.parts) * tile_.mr, tile_.nr}}});
    append(body, over_group(&GemmBuilder::start_totals));
    body.emplace_back(make_loop(kIterationsVariable, ceil_div(summed.size, blocks_.k_blocks->iterations),
                                Mark::Serial, over_group(&GemmBuilder::add_k_block)));
    append(body, over_group(&GemmBuilder::store));
    return as_list(make_loop(kGroupVariable, ceil_div(whole_panels(), blocks_.k_blocks->panels),
                             Mark::Parallel, std::move(body)));
  }
  std::vector<Scalar> place_of_total() const {
    return {
        Scalar::index(Dim::symbol(kLanesVariable) - Dim::symbol(kGroupVariable) * blocks_.k_blocks->panels),
        Scalar::index((Dim::symbol(kRowsVariable) - first_iteration(*tile_.row)) * tile_.mr +
                      Dim::symbol(kRowVariable)),
        Scalar::index(Dim::symbol(kLaneVariable))};
  }
  std::vector<Statement> start_totals() {
    return assign({kTotals, place_of_total()}, "", sum_.initial.front());
  }
  std::vector<Statement> add_k_block() {
    name_next_block();
    const DType dtype = sum_.results.front().dtype;
    const Axis& summed = sum_.reduced.front();
    const loops::Place sums{sums_, place_of_sum()};
    std::vector<Statement> block = as_list(of_block(sums_));
    append(block, assign(sums, "", Scalar::zero(dtype)));
    Loop terms = make_loop(summed.variable, summed.size, Mark::Serial, add_terms());
    terms.begin = Dim::symbol(kIterationsVariable) * blocks_.k_blocks->iterations;
    terms.end = min(terms.begin + blocks_.k_blocks->iterations, summed.size);
    block.emplace_back(std::move(terms));
    append(block, assign({kTotals, place_of_total()}, sum_.combine, Scalar::load(sums_, dtype, sums.at)));
    return block;
  }

  using Body = std::vector<Statement> (GemmBuilder::*)();

  // The row blocks. A dynamic number of rows may be one, as in each step of a decoder, where a full block
  // would waste most of its work: a single last row gets a block of its own.
  std::vector<Statement> over_rows(Mark mark, Body body) {
    if (!tile_.row)
      return (this->*body)();
    if (row_size().is_constant()) {
      const Dim blocks = row_blocks();
      return as_list(blocks_.parted_axis == tile_.row
                         ? over_part(kRowsVariable, blocks, mark, (this->*body)())
                         : make_loop(kRowsVariable, blocks, mark, (this->*body)()));
    }
    const Dim blocks = floor_div(row_size() + (tile_.mr - 2), tile_.mr);
    std::vector<Statement> rows = as_list(make_loop(kRowsVariable, blocks, mark, (this->*body)()));
    const int64_t several = std::exchange(tile_.mr, 1);
    const bool packs = std::exchange(tile_.packs, tile_.packs && !reads_row_directly());
    Loop alone = make_loop(kRowsVariable, row_size(), mark, (this->*body)());
    alone.begin = blocks * several;
    rows.emplace_back(std::move(alone));
    tile_.mr = several;
    tile_.packs = packs;
    return rows;
  }

  // The blocks of a dynamic number of lanes: as wide as fits.
  std::vector<Statement> over_lanes() {
    const int64_t widest = tile_.nr;
    std::vector<Statement> widths;
    std::vector<Dim> too_wide;  // the condition under which the width before does not fit
    for (int64_t lanes : std::set<int64_t, std::greater<>>{widest, std::max<int64_t>(widest / 4, 1), 1}) {
      tile_.nr = lanes;
      std::vector<Dim> conditions = std::exchange(too_wide, {lanes - 1 - lane_size()});
      conditions.push_back(lane_size() - lanes);
      widths.emplace_back(
          Guard{std::move(conditions),
                as_list(make_loop(kLanesVariable, ceil_div(lane_size(), lanes), Mark::Serial, block()))});
    }
    tile_.nr = widest;
    return widths;
  }

  Loop over_part(const std::string& variable, const Dim& iterations, Mark mark,
                 std::vector<Statement> body) const {
    Loop loop = make_loop(variable, iterations, mark, std::move(body));
    if (const int64_t count = blocks_.parts; count > 1) {
      loop.begin = Dim::symbol(kPartVariable) * ceil_div(iterations, count);
      loop.end = min(loop.begin + ceil_div(iterations, count), iterations);
    }
    return loop;
  }

  // The blocks of lanes. Where the last one of a group overlaps the one before, one iteration does both: two
  // threads must not write the same element.
  Loop over_panels(std::vector<Statement> body) const {
    if (fills_lanes())
      return make_loop(kLanesVariable, whole_panels(), Mark::Parallel, std::move(body));
    const Dim iteration = Dim::symbol(kPanelVariable), iterations = whole_panels_of_group();
    const Dim group = tile_.groups == 1 ? Dim(0) : floor_div(iteration, iterations);
    const Dim first = iteration + group, left = iterations - (iteration - group * iterations);
    Loop both = make_loop(kLanesVariable, first + 1 + max(2 - left, 0), Mark::Serial, std::move(body));
    both.begin = first;
    return make_loop(kPanelVariable, whole_panels(), Mark::Parallel, as_list(std::move(both)));
  }

  std::vector<Statement> blocks() {
    if (!lane_size().is_constant())
      return over_rows(Mark::Parallel, &GemmBuilder::over_lanes);
    std::vector<Statement> body =
        blocks_.k_blocks ? in_k_blocks() : over_rows(Mark::Serial, &GemmBuilder::block);
    if (blocks_.rows_share_panel) {
      const std::vector<size_t> within = axes_within_panel();
      for (size_t i = within.size(); i-- > 0;) {
        const Axis& axis = sum_.axes[within[i]];
        body = as_list(blocks_.parted_axis == within[i]
                           ? over_part(axis.variable, axis.size, Mark::Serial, std::move(body))
                           : make_loop(axis.variable, axis.size, Mark::Serial, std::move(body)));
      }
    }
    if (tile_.packs) {
      std::vector<Statement> packed = pack();
      append(packed, std::move(body));
      body = std::move(packed);
    }
    if (!blocks_.k_blocks)
      body = as_list(over_panels(std::move(body)));
    if (const int64_t count = blocks_.parts; count > 1)
      body = as_list(make_loop(kPartVariable, count, Mark::Parallel, std::move(body)));
    return body;
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const Target& target_;
  const lowering::CacheBlocks& blocks_;
  const std::optional<Parts> parts_;
  int64_t made_ = 0;            // blocks so far
  std::string sums_, factors_;  // what the last keeps
};

}  // namespace

std::vector<Statement> build_gemm(const std::vector<Definition>& definitions,
                                  const std::set<std::string>& outputs, const ContractionPlan& plan,
                                  const Target& target, const std::optional<PackedB>& packed_b,
                                  const std::optional<PackedA>& packed_a) {
  return GemmBuilder(definitions, outputs, plan, target, packed_b, packed_a).run();
}

}  // namespace tenon::schedule
