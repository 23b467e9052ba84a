#include "schedule/cpu/gemm.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "schedule/cpu/assign.h"
#include "schedule/cpu/blocked_sum.h"
#include "schedule/cpu/cache_blocks.h"
#include "schedule/cpu/gemm_indices.h"
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
using lowering::ContractionChoice;
using lowering::PackedA;
using lowering::PackedB;

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kUnknownRows = 128, kUnknownIterations = 32;  // assumed for dynamic sizes
constexpr const char *kPanel = "panel", *kTotals = "totals";
// Loop variables, beside those of GemmIndices.
constexpr const char *kPartVariable = "part0", *kPanelVariable = "panel0",
                     *kIterationsVariable = "iterations0", *kGroupVariable = "group0";

class Contraction : GemmIndices {
 public:
  Contraction(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
              const Target& target, bool may_pack, const std::optional<PackedB>& packed_b,
              const std::optional<PackedA>& packed_a, GemmTile tile)
      : GemmIndices(definitions.front(), packed_b, packed_a, std::move(tile)),
        definitions_(definitions),
        outputs_(outputs),
        target_(target),
        may_pack_(may_pack),
        parts_(tile_.tiles ? std::nullopt : parts_of(sum_)) {
    CHECK(tile_.tiles || products_in(sum_.values.front()).size() == 1,
          "only tiles add several products at once");
    CHECK(!packed_a_ || packed_a_->rows == tile_.mr, "rows lie in blocks of {}, and are read in those of {}",
          packed_a_->rows, tile_.mr);
  }

  std::vector<Statement> run() {
    std::vector<Statement> body = blocks();
    const std::vector<size_t> outer = outer_axes();
    for (size_t i = outer.size(); i-- > 0;)
      if (const Axis& axis = sum_.axes[outer[i]];
          !rows_share_panel() || mentions(*tile_.along, axis.variable))
        body = as_list(make_loop(axis.variable, axis.size, Mark::Parallel, std::move(body)));
    return body;
  }

 private:
  // Whether several row blocks read the operands of one block of lanes.
  bool rows_share_panel() const { return tile_.packs || (packed_b_ && tile_.row && !goes_pixel_by_pixel()); }
  // Depthwise weights that stay in L1 are better reloaded than the channels of a pixel visited separately.
  bool goes_pixel_by_pixel() const {
    return packed_b_ && tile_.both_along && bytes_read(*tile_.along, sum_) <= target_.caches.level1_data;
  }

  // Whether a single row reads contiguous operands in place: packing would take as long as computing.
  bool reads_row_directly() const {
    return !row_size().is_constant() && runs_through_memory(sum_.values.front(), sum_.axes.back());
  }

  // The packed operands of a block of lanes, by reduced axes and lane.
  Buffer panel() const {
    Buffer panel{.name = kPanel, .dtype = tile_.along->dtype(), .sizes = {}};
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
    std::vector<Statement> body =
        as_list(make_loop(kLaneVariable, tile_.nr, Mark::Vector,
                          as_list(Assign{.places = {{kPanel, place_in_panel()}},
                                         .combine = "",
                                         .values = {placed(*tile_.along, false)}})));
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
    for (const Scalar& product : products_in(sum_.values.front()))
      products.push_back(Scalar::apply(product.function(), {placed_in_first_lane(product.operands()[0]),
                                                            placed(product.operands()[1], false)}));
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
    const int64_t count = parts();
    return parted_axis() == axis && count > 1
               ? Dim::symbol(kPartVariable) * ceil_div(parted_iterations(), count)
               : Dim(0);
  }

  std::vector<Statement> add_terms() const {
    const auto sums = [&](Scalar value) {
      return Assign{
          .places = {{sums_, place_of_sum()}}, .combine = sum_.combine, .values = {std::move(value)}};
    };
    if (!tile_.row)
      return for_block(sums(placed(sum_.values.front(), false)), false);
    // What all rows share is loaded once.
    const DType dtype = tile_.along->dtype();
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
                                                        : placed(*tile_.along, false)}})));
    if (packed_b_ && rows_share_panel())
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
    const DType dtype = tile_.along->dtype();
    const std::vector<Scalar> of_factors{Scalar::index(Dim::symbol(last.variable)),
                                         Scalar::index(Dim::symbol(kLaneVariable))};
    const Loop factors =
        make_loop(kLaneVariable, tile_.nr, Mark::Vector,
                  as_list(Assign{.places = {{factors_, of_factors}},
                                 .combine = "",
                                 .values = {tile_.packs ? Scalar::load(kPanel, dtype, place_in_panel())
                                                        : placed(*tile_.along, false)}}));
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
    if (value.operands()[0] != *tile_.across)
      std::swap(across, along);
    return Scalar::apply(value.function(), {std::move(across), std::move(along)});
  }

  // Contiguous panels are read sequentially.
  std::vector<Statement> fetch_ahead() const {
    std::optional<loops::Place> here;
    loops::for_each_load(placed(*tile_.along, false), [&](const Scalar& load) {
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
    if (long_sums_) {
      const Dim first = Dim::symbol(kIterationsVariable) * long_sums_->iterations;
      reads.next.at[panel + 1] = Scalar::index(first);
      reads.iteration = reads.iteration - first;
      reads.iterations = long_sums_->iterations;
    }
    reads.lanes = tile_.nr;
    reads.line = kLineBytes / info(tile_.along->dtype()).bytes;
    reads.passes = 1;
    for (size_t i : axes_within_panel()) {
      reads.pass = reads.pass * sum_.axes[i].size + Dim::symbol(sum_.axes[i].variable) - first_iteration(i);
      reads.passes = reads.passes * sum_.axes[i].size;
    }
    const Dim blocks = row_blocks();
    reads.pass = reads.pass * blocks + Dim::symbol(kRowsVariable) - first_iteration(*tile_.row);
    reads.passes = floor_div(reads.passes * blocks, parts());
    std::vector<Statement> fetches = prefetch_b(reads);
    if (packed_b_->rows_adjoin && !packed_a_ && bytes_across() > target_.caches.level2 / 2)
      fetches.emplace_back(fetch_rows());
    return fetches;
  }
  // Of the next row block, as many elements in each iteration as a block has rows.
  loops::Prefetch fetch_rows() const {
    const Axis& summed = sum_.reduced.front();
    std::map<std::string, Dim> at{{summed.variable, Dim::symbol(summed.variable) * tile_.mr}};
    place_in_axes(at, (Dim::symbol(kRowsVariable) + 1) * tile_.mr, tile_.first_row_axis, *tile_.row + 1);
    const Scalar load = tile_.across->substitute(at);
    return {{load.name(), load.operands()}};
  }

  // The epilogue.
  std::vector<Statement> store() {
    std::vector<Statement> stores;
    const DType dtype = sum_.results.front().dtype;
    for (Assign& assign : build_epilogue(definitions_, outputs_,
                                         long_sums_ ? Scalar::load(kTotals, dtype, place_of_total())
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
      panels.begin = Dim::symbol(kGroupVariable) * long_sums_->panels;
      panels.end = min(panels.begin + long_sums_->panels, whole_panels());
      return as_list(std::move(panels));
    };
    std::vector<Statement> body =
        as_list(Local{{.name = kTotals,
                       .dtype = sum_.results.front().dtype,
                       .sizes = {long_sums_->panels, ceil_div(row_blocks(), parts()) * tile_.mr, tile_.nr}}});
    append(body, over_group(&Contraction::start_totals));
    body.emplace_back(make_loop(kIterationsVariable, ceil_div(summed.size, long_sums_->iterations),
                                Mark::Serial, over_group(&Contraction::add_k_block)));
    append(body, over_group(&Contraction::store));
    return as_list(make_loop(kGroupVariable, ceil_div(whole_panels(), long_sums_->panels), Mark::Parallel,
                             std::move(body)));
  }
  std::vector<Scalar> place_of_total() const {
    return {Scalar::index(Dim::symbol(kLanesVariable) - Dim::symbol(kGroupVariable) * long_sums_->panels),
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
    terms.begin = Dim::symbol(kIterationsVariable) * long_sums_->iterations;
    terms.end = min(terms.begin + long_sums_->iterations, summed.size);
    block.emplace_back(std::move(terms));
    append(block, assign({kTotals, place_of_total()}, sum_.combine, Scalar::load(sums_, dtype, sums.at)));
    return block;
  }

  // Rows split into many parts stay in cache.
  std::optional<LongSums> find_long_sums() const {
    constexpr int64_t kMostParts = 2;
    if (!packed_b_ || !tile_.row || tile_.tiles || packed_a_ || sum_.reduced.size() != 1 ||
        !axes_within_panel().empty() || !fills_lanes() || sum_.combine != "+" ||
        row_size().constant().value_or(INT64_MAX) <= tile_.mr || *whole_panels().constant() == 1 ||
        parts() > kMostParts)
      return std::nullopt;
    return choose_long_sums({.iterations = sum_.reduced.front().size.constant().value_or(0),
                             .rows = row_size().constant().value_or(kUnknownRows),
                             .panels = *whole_panels().constant(),
                             .bytes_of_row = info(tile_.across->dtype()).bytes,
                             .bytes_of_panel = tile_.nr * info(tile_.along->dtype()).bytes},
                            target_);
  }

  using Body = std::vector<Statement> (Contraction::*)();

  // The row blocks. A dynamic number of rows may be one, as in each step of a decoder, where a full block
  // would waste most of its work: a single last row gets a block of its own.
  std::vector<Statement> over_rows(Mark mark, Body body) {
    if (!tile_.row)
      return (this->*body)();
    if (row_size().is_constant()) {
      const Dim blocks = row_blocks();
      return as_list(parted_axis() == tile_.row ? over_part(kRowsVariable, blocks, mark, (this->*body)())
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

  // The axes besides rows and lanes; those along which the same panel is read.
  std::vector<size_t> outer_axes() const {
    std::vector<size_t> axes;
    for (size_t i = 0; i < tile_.first_lane_axis; ++i)
      if (!tile_.row || i < tile_.first_row_axis || i > *tile_.row)
        axes.push_back(i);
    return axes;
  }
  std::vector<size_t> axes_within_panel() const {
    std::vector<size_t> axes;
    for (size_t i : outer_axes())
      if (!mentions(*tile_.along, sum_.axes[i].variable))
        axes.push_back(i);
    return axes;
  }

  // The axis whose iterations are split: among threads, where panels are too few for them; and such that what
  // a part reads stays in cache while it iterates over panels. The first axis that shares a panel, or whose
  // size is static, else the rows. Where all are dynamic, the last may be the longest.
  std::optional<size_t> parted_axis() const {
    if (!lane_size().is_constant() || !tile_.row || !may_pack_)
      return std::nullopt;
    const std::vector<size_t> within = rows_share_panel() ? axes_within_panel() : std::vector<size_t>();
    if (within.empty())
      return *tile_.row;
    const auto known =
        std::ranges::find_if(within, [&](size_t axis) { return sum_.axes[axis].size.is_constant(); });
    return known == within.end() ? within.back() : *known;
  }
  // The iterations of that axis, which are blocks where it is the rows.
  Dim parted_iterations() const {
    return parted_axis() == tile_.row ? row_blocks() : sum_.axes[*parted_axis()].size;
  }
  int64_t parts() const {
    if (!parted_axis())
      return 1;
    Dim iterations = long_sums_ ? ceil_div(whole_panels(), long_sums_->panels) : whole_panels();
    for (size_t i : outer_axes())
      if (!rows_share_panel() || mentions(*tile_.along, sum_.axes[i].variable))
        iterations = iterations * sum_.axes[i].size;
    Dim parted = parted_iterations();
    if (!parted.is_constant() && parted_axis() != tile_.row)
      parted = kUnknownIterations;
    return count_parts(iterations, parted, goes_pixel_by_pixel() ? 0 : bytes_across(), target_);
  }
  int64_t bytes_across() const {
    if (long_sums_)
      return bytes_read(*tile_.across, sum_) /
             *ceil_div(sum_.reduced.front().size, long_sums_->iterations).constant();
    if (!tile_.tiles)
      return bytes_read(*tile_.across, sum_);
    std::vector<Scalar> factors;
    for (const Scalar& product : products_in(sum_.values.front()))
      factors.push_back(product.operands()[0]);
    return bytes_read_once(factors, sum_);
  }
  Loop over_part(const std::string& variable, const Dim& iterations, Mark mark,
                 std::vector<Statement> body) const {
    Loop loop = make_loop(variable, iterations, mark, std::move(body));
    if (const int64_t count = parts(); count > 1) {
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
      return over_rows(Mark::Parallel, &Contraction::over_lanes);
    long_sums_ = find_long_sums();
    std::vector<Statement> body = long_sums_ ? in_k_blocks() : over_rows(Mark::Serial, &Contraction::block);
    if (rows_share_panel()) {
      const std::vector<size_t> within = axes_within_panel();
      for (size_t i = within.size(); i-- > 0;) {
        const Axis& axis = sum_.axes[within[i]];
        body = as_list(parted_axis() == within[i]
                           ? over_part(axis.variable, axis.size, Mark::Serial, std::move(body))
                           : make_loop(axis.variable, axis.size, Mark::Serial, std::move(body)));
      }
    }
    if (tile_.packs) {
      std::vector<Statement> packed = pack();
      append(packed, std::move(body));
      body = std::move(packed);
    }
    if (!long_sums_)
      body = as_list(over_panels(std::move(body)));
    if (const int64_t count = parts(); count > 1)
      body = as_list(make_loop(kPartVariable, count, Mark::Parallel, std::move(body)));
    return body;
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const Target& target_;
  const bool may_pack_;
  const std::optional<Parts> parts_;
  std::optional<LongSums> long_sums_;
  int64_t made_ = 0;            // blocks so far
  std::string sums_, factors_;  // what the last keeps
};

}  // namespace

std::optional<std::vector<Statement>> build_gemm(const std::vector<Definition>& definitions,
                                                 const std::set<std::string>& outputs, const Target& target,
                                                 bool may_pack, const std::optional<PackedB>& packed_b,
                                                 const std::optional<PackedA>& packed_a,
                                                 const ContractionChoice& choice) {
  std::optional<GemmTile> tile = choose_gemm_tile(definitions.front(), target, may_pack, packed_b, choice);
  if (!tile)
    return std::nullopt;
  return Contraction(definitions, outputs, target, may_pack, packed_b, packed_a, std::move(*tile)).run();
}

}  // namespace tenon::schedule
