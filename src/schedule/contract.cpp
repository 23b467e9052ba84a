#include "schedule/contract.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/error.h"
#include "schedule/assign.h"
#include "schedule/sum_in_parts.h"

namespace tenon {

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

namespace {

constexpr const char* kPanel = "panel";
constexpr int64_t kLeastLanes = 4;
constexpr int64_t kMostRows = 14;       // of a block: more make its code longer, and no faster
constexpr int64_t kTurnsPerThread = 8;  // are enough for threads to have about as much to do
// Loop variables, which end in a number: no size of the user's does when it gets here.
constexpr const char *kRowsVariable = "rows0", *kRowVariable = "row0", *kLanesVariable = "lanes0",
                     *kLaneVariable = "lane0", *kPartVariable = "part0";

// Whether a load that moves along the axis moves from element to element in memory.
bool runs_through_memory(const Scalar& value, const Axis& axis) {
  bool through = true;
  loops::for_each_load(value, [&](const Scalar& load) {
    for (size_t i = 0; i < load.operands().size(); ++i)
      if (mentions(load.operands()[i], axis.variable))
        through =
            through && i + 1 == load.operands().size() && load.operands()[i].kind() == Scalar::Kind::Index;
  });
  return through;
}

class Contraction {
 public:
  Contraction(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
              const Target& target, bool may_pack)
      : definitions_(definitions),
        outputs_(outputs),
        sum_(definitions.front()),
        target_(target),
        may_pack_(may_pack),
        parts_(parts_of(sum_)) {}

  std::optional<std::vector<Statement>> run() {
    if (sum_.results.size() != 1 || sum_.axes.empty())
      return std::nullopt;
    choose_factors();
    first_lane_axis_ = row_ ? first_axis_of_lanes() : sum_.axes.size() - 1;
    if (!choose_sizes())
      return std::nullopt;
    // Without rows that share what is read, lanes of any number need no blocks.
    if (!lane_size().is_constant() && !row_)
      return std::nullopt;
    packs_ = row_ && may_pack_ && pays_to_pack();
    if (!packs_ && first_lane_axis_ + 1 != sum_.axes.size()) {
      first_lane_axis_ = sum_.axes.size() - 1;
      if (!choose_sizes())
        return std::nullopt;
    }
    if (!packs_ && !runs_through_memory(sum_.values.front(), sum_.axes.back()))
      return std::nullopt;
    return nest();
  }

 private:
  // The last axis runs in the lanes of vectors. Rows of a second axis share what is read along the lanes,
  // where the formula is a product whose one factor does not move along it; at best the other does not move
  // along the lanes, or only from block to block as it does where groups of channels are convolved by
  // themselves, and not from lane to lane as where each channel is.
  void choose_factors() {
    const Scalar& value = sum_.values.front();
    if (value.kind() != Scalar::Kind::Apply || value.function() != Function::Multiply)
      return;
    for (int64_t lanes = whole_lanes(); lanes >= kLeastLanes && !row_; lanes /= 2) {
      most_lanes_ = lanes;
      choose_factors(value, false);
    }
    if (!row_) {
      most_lanes_ = whole_lanes();
      choose_factors(value, true);
    }
  }
  void choose_factors(const Scalar& value, bool both_along) {
    const std::string& lane = sum_.axes.back().variable;
    for (size_t moving = 0; moving < 2; ++moving) {
      const Scalar &along = value.operands()[moving], &across = value.operands()[1 - moving];
      if (!mentions(along, lane) || is_same_in_blocks(across) == both_along)
        continue;
      for (size_t i = 0; i + 1 < sum_.axes.size(); ++i) {
        if (mentions(along, sum_.axes[i].variable) || !mentions(across, sum_.axes[i].variable))
          continue;
        row_ = i;
        along_ = along;
        across_ = across;
        both_along_ = both_along;
      }
    }
  }

  // Whether a factor is the same in all lanes of a block.
  bool is_same_in_blocks(const Scalar& factor) const {
    const Axis& lane = sum_.axes.back();
    if (!mentions(factor, lane.variable))
      return true;
    if (lane.size.constant().value_or(1) % most_lanes_ != 0)
      return false;
    const auto in_lane = [&](int64_t number) {
      return factor.substitute({{lane.variable, Dim::symbol(kLanesVariable) * most_lanes_ + number}});
    };
    const Scalar first = in_lane(0);
    for (int64_t i = 1; i < most_lanes_; ++i)
      if (in_lane(i) != first)
        return false;
    return true;
  }

  // Lanes run over several axes at once, the rows and columns of an image, where one alone would not fill
  // them, or all that they read lies side by side.
  size_t first_axis_of_lanes() const {
    size_t first = sum_.axes.size() - 1;
    while (first > 0 && first - 1 != *row_ && sum_.axes[first - 1].size.is_constant() &&
           sum_.axes[first].size.is_constant() && mentions(*along_, sum_.axes[first - 1].variable) &&
           !mentions(*across_, sum_.axes[first - 1].variable) &&
           (*size_from(first).constant() < whole_lanes() || lie_side_by_side(first - 1, first)))
      --first;
    return first;
  }

  // Whether what is read along two axes is read in the order in which it lies in memory.
  bool lie_side_by_side(size_t outer, size_t inner) const {
    bool all = true;
    loops::for_each_load(*along_, [&](const Scalar& load) {
      for (size_t i = 0; i < load.operands().size(); ++i)
        if (loops::axis_of(sum_.axes, load.operands()[i]) == outer)
          all = all && i + 1 < load.operands().size() &&
                loops::axis_of(sum_.axes, load.operands()[i + 1]) == inner;
        else
          all = all && !mentions(load.operands()[i], sum_.axes[outer].variable);
    });
    return all;
  }

  Dim size_from(size_t axis) const {
    Dim size = 1;
    for (size_t i = axis; i < sum_.axes.size(); ++i)
      size = size * sum_.axes[i].size;
    return size;
  }
  Dim lane_size() const { return size_from(first_lane_axis_); }
  const Dim& row_size() const { return sum_.axes[*row_].size; }

  int64_t whole_lanes() const { return lanes_of_block(sum_.results.front().dtype, target_); }

  bool choose_sizes() {
    const std::optional<int64_t> size = lane_size().constant();
    if (size.value_or(kLeastLanes) < kLeastLanes)
      return false;
    const int64_t most = most_lanes_;
    lanes_ = size ? std::min(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(*size)))) : most;
    if (!row_)
      return true;
    rows_ = best_rows(lanes_);
    if (const int64_t fewer = whole_lanes() / kRegistersPerVector; size && lanes_ > fewer)
      if (const int64_t rows = best_rows(fewer); time_of(rows, fewer) < time_of(rows_, lanes_)) {
        lanes_ = fewer;
        rows_ = rows;
      }
    return true;
  }

  // As many rows as there are registers for their sums, beside those for the factors.
  int64_t most_rows(int64_t lanes) const {
    const int64_t vectors = vectors_of(lanes);
    return std::max<int64_t>((target_.vector_registers - 2 - vectors) / vectors, 1);
  }
  int64_t vectors_of(int64_t lanes) const {
    return std::max<int64_t>(lanes * kRegistersPerVector / whole_lanes(), 1);
  }
  int64_t best_rows(int64_t lanes) const {
    const int64_t most = std::min<int64_t>(most_rows(lanes), kMostRows);
    if (!row_size().is_constant())
      return std::min<int64_t>(most, target_.vector_registers / 4);
    int64_t best = std::clamp<int64_t>(*row_size().constant(), 1, most);
    for (int64_t rows = best - 1; rows > most / 2; --rows)
      if (time_of(rows, lanes) < time_of(best, lanes))
        best = rows;
    return best;
  }
  // Of all blocks, in instructions for each turn of the sum: rows and lanes that a last block computes in
  // vain count too.
  double time_of(int64_t rows, int64_t lanes) const {
    const int64_t vectors = vectors_of(lanes);
    const auto blocks = [](const Dim& size, int64_t block) {
      return static_cast<double>(*ceil_div(size, block).constant());
    };
    return blocks(lane_size(), lanes) * blocks(row_size(), rows) *
           static_cast<double>(std::max(vectors * rows, vectors + rows) + 1);
  }

  // Whether several blocks of rows read what one block of lanes needs, and all of that stays in cache: then
  // it is put side by side first, however far apart it lies, and whatever its formula is.
  bool pays_to_pack() const {
    if (!lane_size().is_constant() ||
        (row_size().constant().value_or(2 * rows_) <= rows_ && axes_within_panel().empty()))
      return false;
    Dim bytes = lanes_ * info(along_->dtype()).bytes;
    for (const Axis& axis : sum_.reduced)
      bytes = bytes * axis.size;
    return bytes.constant().value_or(INT64_MAX) <= target_.caches.level2;
  }

  // Whether a row that is alone reads what lies side by side as it is: to put it elsewhere first would take
  // as long as to compute with it.
  bool reads_row_directly() const {
    return !row_size().is_constant() && runs_through_memory(sum_.values.front(), sum_.axes.back());
  }

  // What a block of lanes needs, by reduced axes and lane.
  Buffer panel() const {
    Buffer panel{.name = kPanel, .dtype = along_->dtype(), .sizes = {}};
    for (const Axis& axis : sum_.reduced)
      panel.sizes.push_back(axis.size);
    panel.sizes.emplace_back(lanes_);
    return panel;
  }
  std::vector<Scalar> place_in_panel() const {
    std::vector<Scalar> place = loops::variables_of(sum_.reduced);
    place.push_back(Scalar::index(Dim::symbol(kLaneVariable)));
    return place;
  }
  std::vector<Statement> pack() const {
    std::vector<Statement> body = as_list(make_loop(
        kLaneVariable, lanes_, Mark::Vector,
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

  // Whether blocks fill the lanes, so that none reaches past the last.
  bool fills_lanes() const {
    return lanes_ == 1 || (lane_size().is_constant() && *lane_size().constant() % lanes_ == 0);
  }
  Dim first_lane() const {
    const Dim at = Dim::symbol(kLanesVariable) * lanes_;
    // The last block goes back as far as it must to be whole; what it computes twice is the same.
    return fills_lanes() ? at : min(at, lane_size() - lanes_);
  }
  bool fills_rows() const {
    return rows_ == 1 || (row_size().is_constant() && *row_size().constant() % rows_ == 0);
  }
  Dim row(bool may_leave) const {
    const Dim at = Dim::symbol(kRowsVariable) * rows_ + Dim::symbol(kRowVariable);
    return fills_rows() || may_leave ? at : min(at, row_size() - 1);
  }

  // The formula with the places in this block for the two axes.
  Scalar placed(const Scalar& scalar, bool may_leave) const {
    return placed(scalar, may_leave, Dim::symbol(kLaneVariable));
  }
  // The factor across the lanes; where it is the same in all of a block, as it is in the first.
  Scalar placed_across() const {
    return placed(*across_, false, both_along_ ? Dim::symbol(kLaneVariable) : Dim(0));
  }
  Scalar placed(const Scalar& scalar, bool may_leave, const Dim& lane) const {
    std::map<std::string, Dim> at;
    Dim position = first_lane() + lane;
    for (size_t i = sum_.axes.size(); i-- > first_lane_axis_;) {
      const Dim outer = i == first_lane_axis_ ? Dim(0) : floor_div(position, sum_.axes[i].size);
      at.emplace(sum_.axes[i].variable, position - outer * sum_.axes[i].size);
      position = outer;
    }
    if (row_)
      at.emplace(sum_.axes[*row_].variable, row(may_leave));
    return scalar.substitute(at);
  }

  std::vector<Scalar> place_of_sum() const {
    std::vector<Scalar> place;
    if (row_)
      place.push_back(Scalar::index(Dim::symbol(kRowVariable)));
    place.push_back(Scalar::index(Dim::symbol(kLaneVariable)));
    return place;
  }

  // Where the sums of a block are in the end.
  std::string totals() const { return parts_ ? "all_" + sums_ : sums_; }

  // A statement for each row and lane of the block.
  std::vector<Statement> for_block(Statement statement, bool guarded) const {
    Statement lanes = make_loop(kLaneVariable, lanes_, Mark::Vector, as_list(std::move(statement)));
    if (!row_)
      return as_list(std::move(lanes));
    std::vector<Statement> body = as_list(std::move(lanes));
    if (guarded && !fills_rows())
      body = as_list(Guard{{row_size() - 1 - row(true)}, std::move(body)});
    return as_list(make_loop(kRowVariable, rows_, Mark::Unrolled, std::move(body)));
  }

  std::vector<Statement> add_terms() const {
    const auto sums = [&](Scalar value) {
      return Assign{
          .places = {{sums_, place_of_sum()}}, .combine = sum_.combine, .values = {std::move(value)}};
    };
    if (!row_)
      return for_block(sums(placed(sum_.values.front(), false)), false);
    // What all rows share is read once.
    const DType dtype = along_->dtype();
    const std::vector<Scalar> at{Scalar::index(Dim::symbol(kLaneVariable))};
    std::vector<Statement> body;
    body.emplace_back(Local{{.name = factors_, .dtype = dtype, .sizes = {lanes_}, .space = Space::Private}});
    body.emplace_back(make_loop(
        kLaneVariable, lanes_, Mark::Vector,
        as_list(Assign{
            .places = {{factors_, at}},
            .combine = "",
            .values = {packs_ ? Scalar::load(kPanel, dtype, place_in_panel()) : placed(*along_, false)}})));
    for (Statement& statement : for_block(
             sums(Scalar::apply(Function::Multiply, {placed_across(), Scalar::load(factors_, dtype, at)})),
             false))
      body.push_back(std::move(statement));
    return body;
  }

  // What becomes of the sums.
  std::vector<Statement> store() const {
    std::vector<Statement> stores;
    for (Assign& assign : go_on_with(definitions_, outputs_,
                                     Scalar::load(totals(), sum_.results.front().dtype, place_of_sum()),
                                     [&](const Scalar& scalar) { return placed(scalar, true); }))
      for (Statement& statement : for_block(std::move(assign), true))
        stores.push_back(std::move(statement));
    return stores;
  }

  // What is computed of one block of rows and lanes.
  std::vector<Statement> block() {
    sums_ = fmt::format("sums{}", made_);
    factors_ = fmt::format("factors{}", made_++);
    const Buffer& result = sum_.results.front();
    std::vector<Dim> sizes;
    if (row_)
      sizes.emplace_back(rows_);
    sizes.emplace_back(lanes_);
    std::vector<Statement> block;
    const auto assign = [&](const std::string& to, const std::string& combine, const Scalar& value) {
      return for_block(Assign{.places = {{to, place_of_sum()}}, .combine = combine, .values = {value}},
                       false);
    };
    for (const std::string& name : std::set{sums_, totals()})
      block.emplace_back(
          Local{{.name = name, .dtype = result.dtype, .sizes = sizes, .space = Space::Private}});
    append(block, assign(totals(), "", sum_.initial.front()));
    append(block,
           reduce_over(sum_.reduced, Mark::Serial, parts_, assign(sums_, "", Scalar::zero(result.dtype)),
                       add_terms(),
                       assign(totals(), sum_.combine, Scalar::load(sums_, result.dtype, place_of_sum()))));
    append(block, store());
    return block;
  }

  using Body = std::vector<Statement> (Contraction::*)();

  // The blocks of rows. Where running tells how many rows there are, there may be one, as in each step of a
  // decoder, and a block of several would mostly compute what nobody needs: a last row that is alone is taken
  // by itself.
  std::vector<Statement> over_rows(Mark mark, Body body) {
    if (!row_)
      return (this->*body)();
    if (row_size().is_constant()) {
      const Dim blocks = ceil_div(row_size(), rows_);
      return as_list(parted_axis() == row_ ? over_part(kRowsVariable, blocks, mark, (this->*body)())
                                           : make_loop(kRowsVariable, blocks, mark, (this->*body)()));
    }
    const Dim blocks = floor_div(row_size() + (rows_ - 2), rows_);
    std::vector<Statement> rows = as_list(make_loop(kRowsVariable, blocks, mark, (this->*body)()));
    const int64_t several = std::exchange(rows_, 1);
    const bool packs = std::exchange(packs_, packs_ && !reads_row_directly());
    Loop alone = make_loop(kRowsVariable, row_size(), mark, (this->*body)());
    alone.begin = blocks * several;
    rows.emplace_back(std::move(alone));
    rows_ = several;
    packs_ = packs;
    return rows;
  }

  // The blocks of lanes, where running tells how many lanes there are: as wide as fits.
  std::vector<Statement> over_lanes() {
    const int64_t widest = lanes_;
    std::vector<Statement> widths;
    std::vector<Dim> too_wide;  // the condition under which the width before does not fit
    for (int64_t lanes : std::set<int64_t, std::greater<>>{widest, std::max<int64_t>(widest / 4, 1), 1}) {
      lanes_ = lanes;
      std::vector<Dim> conditions = std::exchange(too_wide, {lanes - 1 - lane_size()});
      conditions.push_back(lane_size() - lanes);
      widths.emplace_back(
          Guard{std::move(conditions),
                as_list(make_loop(kLanesVariable, ceil_div(lane_size(), lanes), Mark::Serial, block()))});
    }
    lanes_ = widest;
    return widths;
  }

  // The axes besides rows and lanes; those along which the same panel is read.
  std::vector<size_t> outer_axes() const {
    std::vector<size_t> axes;
    for (size_t i = 0; i < first_lane_axis_; ++i)
      if (i != row_)
        axes.push_back(i);
    return axes;
  }
  std::vector<size_t> axes_within_panel() const {
    std::vector<size_t> axes;
    for (size_t i : outer_axes())
      if (!mentions(*along_, sum_.axes[i].variable))
        axes.push_back(i);
    return axes;
  }

  // The axis whose turns are parted: among threads, where panels are too few for them or blocks of lanes
  // overlap, which two threads must not write at once; and such that what one part reads stays in cache while
  // panel after panel meets it. It is the first of those that share a panel, else the rows.
  std::optional<size_t> parted_axis() const {
    if (!lane_size().is_constant() || !row_ || !may_pack_)
      return std::nullopt;
    const std::vector<size_t> within = packs_ ? axes_within_panel() : std::vector<size_t>();
    return within.empty() ? *row_ : within.front();
  }
  // The turns of that axis, which are blocks where it is the rows.
  Dim parted_turns() const {
    return parted_axis() == row_ ? ceil_div(row_size(), rows_) : sum_.axes[*parted_axis()].size;
  }
  int64_t parts() const {
    if (!parted_axis())
      return 1;
    Dim turns = fills_lanes() ? ceil_div(lane_size(), lanes_) : Dim(1);
    for (size_t i : outer_axes())
      if (!packs_ || mentions(*along_, sum_.axes[i].variable))
        turns = turns * sum_.axes[i].size;
    const int64_t most = std::max<int64_t>(parted_turns().constant().value_or(1), 1), cores = target_.cores,
                  enough = kTurnsPerThread * cores,
                  panels = std::min(turns.constant().value_or(enough), enough);
    int64_t parts = std::clamp<int64_t>(bytes_across() / (target_.caches.level2 / 2), 1, most);
    while (parts < most && parts < enough && panels * parts % cores != 0 && panels * parts < enough)
      ++parts;
    return parts;
  }
  // Of all that the factor across the lanes reads; 0 where only running tells.
  int64_t bytes_across() const {
    std::map<std::string, Dim> first, last;
    for (const std::vector<Axis>* axes : {&sum_.axes, &sum_.reduced})
      for (const Axis& axis : *axes) {
        first.emplace(axis.variable, 0);
        last.emplace(axis.variable, axis.size - 1);
      }
    Dim bytes = 0;
    loops::for_each_load(*across_, [&](const Scalar& load) {
      Dim own = info(load.dtype()).bytes;
      for (const Scalar& index : load.operands())
        if (index.kind() == Scalar::Kind::Index)
          own = own * (index.index().substitute(last) - index.index().substitute(first) + 1);
      bytes = bytes + own;
    });
    return bytes.constant().value_or(0);
  }
  Loop over_part(const std::string& variable, const Dim& turns, Mark mark,
                 std::vector<Statement> body) const {
    Loop loop = make_loop(variable, turns, mark, std::move(body));
    if (const int64_t count = parts(); count > 1) {
      loop.begin = Dim::symbol(kPartVariable) * ceil_div(turns, count);
      loop.end = min(loop.begin + ceil_div(turns, count), turns);
    }
    return loop;
  }

  std::vector<Statement> blocks() {
    if (!lane_size().is_constant())
      return over_rows(Mark::Parallel, &Contraction::over_lanes);
    std::vector<Statement> body = over_rows(Mark::Serial, &Contraction::block);
    if (packs_) {
      const std::vector<size_t> within = axes_within_panel();
      for (size_t i = within.size(); i-- > 0;) {
        const Axis& axis = sum_.axes[within[i]];
        body = as_list(parted_axis() == within[i]
                           ? over_part(axis.variable, axis.size, Mark::Serial, std::move(body))
                           : make_loop(axis.variable, axis.size, Mark::Serial, std::move(body)));
      }
      std::vector<Statement> packed = pack();
      packed.insert(packed.end(), std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
      body = std::move(packed);
    }
    body = as_list(make_loop(kLanesVariable, ceil_div(lane_size(), lanes_),
                             fills_lanes() ? Mark::Parallel : Mark::Serial, std::move(body)));
    if (const int64_t count = parts(); count > 1)
      body = as_list(make_loop(kPartVariable, count, Mark::Parallel, std::move(body)));
    return body;
  }

  std::vector<Statement> nest() {
    std::vector<Statement> body = blocks();
    const std::vector<size_t> outer = outer_axes();
    for (size_t i = outer.size(); i-- > 0;)
      if (const Axis& axis = sum_.axes[outer[i]]; !packs_ || mentions(*along_, axis.variable))
        body = as_list(make_loop(axis.variable, axis.size, Mark::Parallel, std::move(body)));
    return body;
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const Definition& sum_;
  const Target& target_;
  const bool may_pack_;
  const std::optional<Parts> parts_;
  size_t first_lane_axis_ = 0;  // lanes run over this and those that follow
  int64_t lanes_ = 1;
  std::optional<size_t> row_;
  int64_t rows_ = 1;
  bool packs_ = false;
  int64_t made_ = 0;                      // blocks so far
  std::string sums_, factors_;            // what the last keeps
  std::optional<Scalar> along_, across_;  // the factor that moves along the lanes, and the one along the rows
  bool both_along_ = false;               // whether the other moves along the lanes, too
  int64_t most_lanes_ = whole_lanes();    // of a block, in all of which it is the same
};

}  // namespace

std::optional<std::vector<Statement>> contract_in_registers(const std::vector<Definition>& definitions,
                                                            const std::set<std::string>& outputs,
                                                            const Target& target, bool may_pack) {
  return Contraction(definitions, outputs, target, may_pack).run();
}

int64_t lanes_of_block(DType dtype, const Target& target) {
  return target.vector_bytes / std::max(info(dtype).bytes, 4) * kRegistersPerVector;
}

int64_t rows_of_block(const Target& target) { return std::max(target.vector_registers / 4, 2); }

}  // namespace tenon
