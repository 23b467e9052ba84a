#include "schedule/cpu/gemm_tile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>

#include "loops/contraction.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Definition;
using loops::Function;
using loops::mentions;
using loops::Scalar;
using lowering::ContractionChoice;
using lowering::GemmTile;
using lowering::PackA;
using lowering::PackB;
using lowering::PackedB;

namespace {

constexpr int64_t kLeastLanes = 4;
constexpr int64_t kMostRows = 14;  // of a tile: more make its code longer, and no faster
constexpr int64_t kLeastPanels =
    12;                              // panels that read packed A: for fewer, packing costs more than it saves
constexpr int64_t kToEndRow = 16;    // instructions that begin and end a row of a block
constexpr double kLeastGain = 1.04;  // of other tiles: smaller estimated gains are noise
constexpr int64_t kLanesOfMatrices = 4;  // in registers, that are loaded at a time
constexpr int64_t kMostLanesOfMatrices = 16;
constexpr int64_t kEnoughRowsOfMatrices = 6;  // at a time, where dot products would take more

// Of a block: at most `most`, and more than half of that where there are so many.
template <class Time>
int64_t fastest_rows(int64_t all, int64_t most, Time time_of) {
  int64_t best = std::clamp<int64_t>(all, 1, most);
  for (int64_t rows = best - 1; rows > most / 2; --rows)
    if (time_of(rows) < time_of(best))
      best = rows;
  return best;
}

// Reductions other than sums have tiles, too.
std::optional<loops::Product> first_product(const Definition& sum) {
  const std::vector<loops::Product> products = loops::match_products(sum.values.front());
  return products.empty() ? std::nullopt : std::optional(products.front());
}

class GemmTileChooser {
 public:
  GemmTileChooser(const Definition& sum, const Target& target, const ContractionChoice& choice)
      : sum_(sum), target_(target), choice_(choice), product_(first_product(sum)) {}

  std::optional<GemmTile> run(bool may_pack, const std::optional<PackedB>& packed_b) {
    if (sum_.results.size() != 1 || sum_.axes.empty())
      return std::nullopt;
    choose_factors();
    if (packed_b) {
      tile_.first_lane_axis = sum_.axes.size() - 1;
      tile_.nr = packed_b->lanes;
      tile_.groups = packed_b->groups;
      tile_.first_row_axis = tile_.row.value_or(0) + 1 - packed_b->row_axes;
      tile_.mr = tile_.row ? best_rows(tile_.nr) : 1;
      if (fits_tiles()) {
        tile_.tiles = true;
        tile_.first_row_axis = *tile_.row;
        while (runs_on_into(tile_.first_row_axis))
          --tile_.first_row_axis;
        tile_.mr = target_.matrix_tiles ? rows_of_tiles(*row_size().constant()) : rows_of_matrices(tile_.nr);
      }
      return tile_;
    }
    tile_.first_lane_axis = tile_.row ? first_axis_of_lanes() : sum_.axes.size() - 1;
    if (!choose_sizes())
      return std::nullopt;
    // Without rows that share loads, lanes need no tiles.
    if (!lane_size().is_constant() && !tile_.row)
      return std::nullopt;
    tile_.packs = tile_.row && may_pack && pays_to_pack();
    if (!tile_.packs && tile_.first_lane_axis + 1 != sum_.axes.size()) {
      tile_.first_lane_axis = sum_.axes.size() - 1;
      if (!choose_sizes())
        return std::nullopt;
    }
    if (!tile_.packs && !runs_through_memory(sum_.values.front(), sum_.axes.back()))
      return std::nullopt;
    return tile_;
  }

  // Arm multiplies by one lane of a register, and one load brings those of several rows where they are
  // contiguous. x86 broadcasts an element as it is loaded, from anywhere, if rows don't evict each other.
  std::optional<PackA> choose_packed_a(const PackedB& packed_b, const lowering::BufferTable& buffers) {
    run(false, packed_b);
    if (!tile_.row || tile_.tiles || tile_.both_along || across_->kind() != Scalar::Kind::Load ||
        !choice_.pack_a.value_or(target_.architecture == Architecture::Arm64 || rows_conflict(buffers)) ||
        sum_.reduced.size() != 1 || !sum_.reduced.front().size.is_constant() ||
        row_size().constant().value_or(0) < 2 * tile_.mr ||
        ceil_div(lane_size(), tile_.nr).constant().value_or(0) < (choice_.pack_a ? 1 : kLeastPanels) ||
        !runs_through_memory(*across_, sum_.reduced.front()))
      return std::nullopt;
    const std::vector<Axis> rows(sum_.axes.begin() + static_cast<int64_t>(tile_.first_row_axis),
                                 sum_.axes.begin() + static_cast<int64_t>(*tile_.row) + 1);
    for (const Scalar& index : across_->operands())
      if (index != Scalar::index(0) && !loops::axis_of(rows, index) && !loops::axis_of(sum_.reduced, index))
        return std::nullopt;
    return PackA{*across_, rows, tile_.mr};
  }

  std::optional<PackB> choose_packed_b(const std::function<bool(const std::string&)>& is_constant,
                                       const lowering::BufferTable& buffers) {
    if (sum_.axes.empty() || !match_contraction(sum_))
      return std::nullopt;
    choose_factors();
    if (tile_.row && first_axis_of_lanes() + 1 != sum_.axes.size())
      return std::nullopt;
    tile_.first_lane_axis = sum_.axes.size() - 1;
    if (!lane_size().is_constant() || !choose_sizes())
      return std::nullopt;
    join_rows(buffers);
    const std::optional<Scalar> load = constant_in(along_ ? *along_ : sum_.values.front(), is_constant);
    if (!load || !reads_all_of(*load, buffers.at(load->name())))
      return std::nullopt;
    return PackB{*load,
                 {.buffer = "",
                  .lanes = tile_.nr,
                  .groups = tile_.groups,
                  .row_axes = tile_.row.value_or(0) + 1 - tile_.first_row_axis,
                  .rows_adjoin = tile_.row && rows_adjoin(buffers)}};
  }

  WeighedTiles weigh(const GemmTile& chosen) {
    choose_factors();
    tile_ = chosen;
    const std::optional<int64_t> size = group_size().constant();
    if (!tile_.row || tile_.tiles || !size || !row_size().is_constant())
      return {};
    std::set<int64_t> widths{
        std::min(most_lanes_, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(*size))))};
    if (*widths.begin() > lanes_of_vector())
      widths.insert(lanes_of_vector());
    if (may_be_wide())
      for (const int64_t wider : {wider_lanes(*size), kRegistersPerVector * whole_lanes()})
        if (wider > 0 && wider <= *size)
          widths.insert(wider);
    WeighedTiles weighed;
    for (const int64_t lanes : widths)
      weighed.push_back({best_rows(lanes), lanes, time_of(best_rows(lanes), lanes)});
    if (!widths.contains(chosen.nr) || best_rows(chosen.nr) != chosen.mr)
      weighed.push_back({chosen.mr, chosen.nr, time_of(chosen.mr, chosen.nr)});
    return weighed;
  }

 private:
  // Whether lanes and reduction divide into matrix instructions exactly, and rows do or overlap at the end.
  bool fits_tiles() const {
    if (!tile_.row || tile_.both_along || !multiplies_matrices() || product_->lhs != *across_)
      return false;
    const Axis& last = sum_.reduced.back();
    if (!is_word(*across_) || !is_word(*along_) || !runs_through_memory(*across_, last))
      return false;
    const int64_t rows = size_of_rows_on().constant().value_or(0), words = last.size.constant().value_or(1);
    if (target_.matrix_tiles)  // convolutions of bytes have too few rows at a time for tiles of 16 to pay
      return !joins_bytes(*across_) && tile_.nr == 2 * kMatrixTileSide && rows >= kMatrixTileSide &&
             words % kMatrixTileSide == 0;
    // Dot products take rows together that do not follow each other in memory.
    const bool enough = rows >= std::min(row_size().constant().value_or(0), kEnoughRowsOfMatrices);
    return tile_.nr % kLanesOfMatrices == 0 && rows >= 2 && enough && words % 2 == 0;
  }
  bool multiplies_matrices() const {
    return product_ && !product_->multiplies() &&
           (target_.matrix_tiles || target_.multiplies_matrices(product_->function == Function::DotI8x4));
  }
  static bool joins_bytes(const Scalar& factor) {
    return factor.kind() == Scalar::Kind::Apply && factor.function() == Function::PackI8x4;
  }
  static bool is_word(const Scalar& factor) {
    return factor.kind() == Scalar::Kind::Load || loops::first_of_word(factor) != nullptr;
  }

  // Whether the rows of an axis are contiguous with those of the one before, so that tiles may span both.
  bool runs_on_into(size_t axis) const {
    return may_run_on_into(axis) && loops::runs_on(*across_, sum_.axes[axis - 1], sum_.axes[axis]);
  }
  bool may_run_on_into(size_t axis) const {
    return axis > 0 && sum_.axes[axis - 1].size.is_constant() && sum_.axes[axis].size.is_constant() &&
           !mentions(*along_, sum_.axes[axis - 1].variable) &&
           mentions(*across_, sum_.axes[axis - 1].variable);
  }
  // Where tiles that span axes waste less work, or have more rows. Rows that are not contiguous need an
  // address each.
  void join_rows(const lowering::BufferTable& buffers) {
    constexpr double kToFindRows = 1.09;
    if (!tile_.row || tile_.both_along || !row_size().is_constant())
      return;
    GemmTile best = tile_;
    double least = time_of(tile_.mr, tile_.nr), factor = 1;
    while (may_run_on_into(tile_.first_row_axis)) {
      least *= static_cast<double>(*sum_.axes[tile_.first_row_axis - 1].size.constant());
      if (!lies_after_the_one_before(tile_.first_row_axis, buffers))
        factor = kToFindRows;
      --tile_.first_row_axis;
      choose_sizes();
      if (const double time = factor * time_of(tile_.mr, tile_.nr); time < least) {
        best = tile_;
        least = time;
      }
    }
    tile_ = std::move(best);
  }
  // Whether they do in memory, whatever the indices.
  bool lies_after_the_one_before(size_t axis, const lowering::BufferTable& buffers) const {
    bool all = true;
    loops::for_each_load(*across_, [&](const Scalar& load) {
      const std::optional<Scalar> place = place_in_memory(load, buffers);
      all = all && place && loops::runs_on(*place, sum_.axes[axis - 1], sum_.axes[axis]);
    });
    return all;
  }
  bool rows_adjoin(const lowering::BufferTable& buffers) const {
    if (across_->kind() != Scalar::Kind::Load || sum_.reduced.size() != 1 ||
        mentions(*across_, sum_.axes.back().variable))
      return false;
    const std::optional<Scalar> place = place_in_memory(*across_, buffers);
    return place && loops::runs_on(*place, sum_.axes[*tile_.row], sum_.reduced.front());
  }
  // In elements from the start of the buffer.
  static std::optional<Scalar> place_in_memory(const Scalar& load, const lowering::BufferTable& buffers) {
    Dim place = 0;
    for (size_t i = 0; i < load.operands().size(); ++i) {
      if (load.operands()[i].kind() != Scalar::Kind::Index)
        return std::nullopt;
      place = place * buffers.at(load.name()).sizes[i] + load.operands()[i].index();
    }
    return Scalar::index(place);
  }
  // Whether the rows of a tile are at a stride that maps more of them to one set of the first cache than that
  // has ways.
  bool rows_conflict(const lowering::BufferTable& buffers) const {
    constexpr int64_t kBytesOfWay = 4096;
    const std::optional<Scalar> place = place_in_memory(*across_, buffers);
    if (!place)
      return false;
    const std::string& row = sum_.axes[*tile_.row].variable;
    const Dim stride = place->index().substitute({{row, Dim::symbol(row) + 1}}) - place->index();
    if (!stride.is_constant() || *stride.constant() == 0)
      return false;
    const int64_t bytes = *stride.constant() * info(across_->dtype()).bytes,
                  rows_apart = kBytesOfWay / std::gcd(bytes, kBytesOfWay);
    return (tile_.mr + rows_apart - 1) / rows_apart > target_.caches.level1_data / kBytesOfWay;
  }

  // Of all that rows of tiles run over.
  Dim size_of_rows_on() const {
    Dim size = sum_.axes[*tile_.row].size;
    for (size_t axis = *tile_.row; runs_on_into(axis); --axis)
      size = size * sum_.axes[axis - 1].size;
    return size;
  }
  // Two tiles below each other share loads; one wastes fewer rows.
  static int64_t rows_of_tiles(int64_t size) {
    constexpr double kTimeOfOne = 1.3;  // a row of one tile takes so long
    const auto rows = [&](int64_t block) { return static_cast<double>((size + block - 1) / block * block); };
    return size < 2 * kMatrixTileSide || kTimeOfOne * rows(kMatrixTileSide) < rows(2 * kMatrixTileSide)
               ? kMatrixTileSide
               : 2 * kMatrixTileSide;
  }

  // --- matrices of two rows and two lanes in registers ---

  bool may_multiply_in_registers() const {
    return !target_.matrix_tiles && multiplies_matrices() && row_size().constant().value_or(0) >= 2 &&
           !mentions(*across_, sum_.axes.back().variable) &&
           sum_.reduced.back().size.constant().value_or(1) % 2 == 0;
  }
  void choose_lanes_of_matrices() {
    std::optional<int64_t> least;
    for (int64_t lanes = kLanesOfMatrices; lanes <= std::min(kMostLanesOfMatrices, *lane_size().constant());
         lanes += kLanesOfMatrices)
      if (const int64_t rows = rows_of_matrices(lanes), time = time_of_matrices(rows, lanes);
          !least || time <= *least) {
        tile_.nr = lanes;
        tile_.mr = rows;
        least = time;
      }
  }
  int64_t rows_of_matrices(int64_t lanes) const {
    constexpr int64_t kOthers = 2;  // registers, beside those of sums, rows and lanes
    int64_t best = (target_.vector_registers - lanes / 2 - kOthers) / (lanes / 2 + 1) * 2;
    best = std::clamp<int64_t>(best, 2, std::min(kMostRows, *row_size().constant() / 2 * 2));
    for (int64_t rows = best - 2; rows > 0; rows -= 2)
      if (time_of_matrices(rows, lanes) < time_of_matrices(best, lanes))
        best = rows;
    return best;
  }
  // In instructions: an iteration builds a matrix of each two rows and of each two lanes, and multiplies all.
  int64_t time_of_matrices(int64_t rows, int64_t lanes) const {
    return *(ceil_div(lane_size(), lanes) * ceil_div(row_size(), rows)).constant() *
           (rows / 2 * (lanes / 2) + rows / 2 + lanes / 2);
  }

  // The operand indexed by the lanes and the reduction.
  std::optional<Scalar> constant_in(const Scalar& factor,
                                    const std::function<bool(const std::string&)>& is_constant) const {
    std::optional<Scalar> found;
    bool only = true;
    loops::for_each_load(factor, [&](const Scalar& load) {
      if (!mentions(load, sum_.axes.back().variable) || !moves_along_reduced(load))
        return;
      only = only && (!found || *found == load) && is_constant(load.name()) && has_axes_of_its_own(load);
      found = load;
    });
    return only ? found : std::nullopt;
  }
  bool moves_along_reduced(const Scalar& load) const {
    return std::any_of(sum_.reduced.begin(), sum_.reduced.end(),
                       [&](const Axis& axis) { return mentions(load, axis.variable); });
  }
  // Whether axes cover all of a buffer, not a slice of it.
  bool reads_all_of(const Scalar& load, const loops::Buffer& buffer) const {
    const std::vector<Axis> all = all_axes();
    for (size_t dim = 0; dim < load.operands().size(); ++dim) {
      const std::optional<size_t> axis = loops::axis_of(all, load.operands()[dim]);
      if (axis && all[*axis].size != buffer.sizes[dim])
        return false;
    }
    return true;
  }
  std::vector<Axis> all_axes() const {
    std::vector<Axis> all = sum_.axes;
    all.insert(all.end(), sum_.reduced.begin(), sum_.reduced.end());
    return all;
  }
  bool has_axes_of_its_own(const Scalar& load) const {
    const std::vector<Axis> all = all_axes();
    std::vector<size_t> known;  // of these
    for (const Scalar& index : load.operands()) {
      if (index == Scalar::index(0))
        continue;
      const std::optional<size_t> axis = loops::axis_of(all, index);
      if (!axis || axis == tile_.row || std::find(known.begin(), known.end(), *axis) != known.end())
        return false;
      known.push_back(*axis);
    }
    return std::all_of(sum_.reduced.begin(), sum_.reduced.end(),
                       [&](const Axis& axis) { return mentions(load, axis.variable); });
  }

  // The last axis is vectorised. Rows of a second axis share the operand read along the lanes, where that is
  // not indexed by the rows. At best the other operand is not indexed by the lanes (broadcast), or only from
  // tile to tile, as in a grouped convolution, and not from lane to lane, as in a depthwise one.
  void choose_factors() {
    if (!product_)
      return;
    for (size_t i = 0; i < 2; ++i)
      lanes_alike_[i] = lanes_alike(product_->operand(i));
    for (int64_t lanes = whole_lanes(); lanes >= kLeastLanes && !tile_.row; lanes /= 2) {
      most_lanes_ = lanes;
      choose_factors(false);
    }
    if (!tile_.row || fills_by_groups()) {
      most_lanes_ = whole_lanes();
      choose_factors(true);
    }
    tile_.first_row_axis = tile_.row.value_or(0);
    tile_.slides = tile_.both_along && slides_along_rows();
    if (tile_.slides &&
        (converts_across() || 2 * kRegistersPerVector * size_of_window() > target_.vector_registers))
      most_lanes_ /= kRegistersPerVector;  // so that there are registers for what rows share
  }

  // Whether tiles as narrow as groups of channels, which most_lanes_ are now, would leave most of a register
  // empty, and several groups fill it: each lane then selects its element of those that all of them load.
  bool fills_by_groups() const {
    return group_size_ == most_lanes_ && most_lanes_ <= whole_lanes() / kRegistersPerVector / 4 &&
           sum_.axes.back().size.constant().value_or(1) % whole_lanes() == 0;
  }

  // Whether rows slide along the same elements as a few iterations of the sum, loaded directly or converted.
  bool slides_along_rows() const {
    if (sum_.reduced.empty() || (chooses_in_lanes() && !converts_across()))
      return false;
    const Axis& last = sum_.reduced.back();
    if (const int64_t shared = last.size.constant().value_or(1); shared < 2 || shared > most_shared())
      return false;
    const Scalar& load = converts_across() ? across_->operands().front() : *across_;
    return load.kind() == Scalar::Kind::Load &&
           std::ranges::any_of(load.operands(), [&](const Scalar& index) {
             return mentions(index, last.variable) && mentions(index, sum_.axes[*tile_.row].variable);
           });
  }
  // So many that a vector of each leaves registers for sums.
  int64_t most_shared() const { return target_.vector_registers * 7 / 16; }
  // Along the rows.
  int64_t size_of_window() const { return *sum_.reduced.back().size.constant(); }
  bool converts_across() const {
    return across_->kind() == Scalar::Kind::Apply && across_->function() == Function::Cast;
  }
  void choose_factors(bool both_along) {
    const std::string& lane = sum_.axes.back().variable;
    for (size_t moving = 0; moving < 2; ++moving) {
      const Scalar &along = product_->operand(moving), &across = product_->operand(1 - moving);
      if (!mentions(along, lane) || (lanes_alike_[1 - moving] >= most_lanes_) == both_along)
        continue;
      for (size_t i = 0; i + 1 < sum_.axes.size(); ++i) {
        if (mentions(along, sum_.axes[i].variable) || !mentions(across, sum_.axes[i].variable))
          continue;
        tile_.row = i;
        tile_.along = moving;
        along_ = along;
        across_ = across;
        tile_.both_along = both_along;
        group_size_ =
            both_along || !mentions(across, lane) ? std::nullopt : std::optional(lanes_alike_[1 - moving]);
      }
    }
  }

  // Whether a factor is the same in all lanes of a block.
  bool is_same_in_blocks(const Scalar& factor, int64_t lanes) const {
    const Axis& lane = sum_.axes.back();
    if (!mentions(factor, lane.variable))
      return true;
    if (lane.size.constant().value_or(1) % lanes != 0)
      return false;
    const auto in_lane = [&](int64_t number) {
      return factor.substitute({{lane.variable, Dim::symbol("block") * lanes + number}});
    };
    const Scalar first = in_lane(0);
    for (int64_t i = 1; i < lanes; ++i)
      if (in_lane(i) != first)
        return false;
    return true;
  }

  // How many consecutive lanes share an operand, all lanes being groups of so many; 0 for none.
  int64_t lanes_alike(const Scalar& factor) const {
    const Axis& lane = sum_.axes.back();
    if (!mentions(factor, lane.variable))
      return INT64_MAX;
    int64_t alike = 1;
    const Scalar first = factor.substitute({{lane.variable, 0}});
    while (alike < lane.size.constant().value_or(0) && factor.substitute({{lane.variable, alike}}) == first)
      ++alike;
    return is_same_in_blocks(factor, alike) ? alike : 0;
  }

  // Vectorises several axes together, such as the rows and columns of an image, where one alone would not
  // fill the lanes, or all loads are contiguous.
  size_t first_axis_of_lanes() const {
    size_t first = sum_.axes.size() - 1;
    while (first > 0 && first - 1 != *tile_.row && sum_.axes[first - 1].size.is_constant() &&
           sum_.axes[first].size.is_constant() && mentions(*along_, sum_.axes[first - 1].variable) &&
           !mentions(*across_, sum_.axes[first - 1].variable) &&
           (*size_from(first).constant() < whole_lanes() || lie_side_by_side(first - 1, first)))
      --first;
    return first;
  }

  // Whether loads along two axes are contiguous.
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
  Dim lane_size() const { return size_from(tile_.first_lane_axis); }
  Dim group_size() const { return group_size_ ? Dim(*group_size_) : lane_size(); }
  Dim row_size() const { return tile_.row_size(sum_); }

  int64_t whole_lanes() const { return lanes_of_block(sum_.results.front().dtype, target_); }

  bool choose_sizes() {
    const std::optional<int64_t> size = group_size().constant();
    if (size.value_or(kLeastLanes) < kLeastLanes)
      return false;
    choose_block(size);
    // Where blocks fill groups, they need not know of these.
    tile_.groups = size && *size % tile_.nr != 0 ? *lane_size().constant() / *size : 1;
    return true;
  }

  // Of groups of this size, where it is known.
  void choose_block(const std::optional<int64_t>& size) {
    int64_t& lanes = tile_.nr;
    lanes = size ? std::min(most_lanes_, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(*size))))
                 : most_lanes_;
    if (!tile_.row)
      return;
    if (size && may_choose_lanes(*size)) {
      lanes = *choice_.nr;
      tile_.mr = best_rows(lanes);
      return;
    }
    if (size && may_multiply_in_registers()) {
      choose_lanes_of_matrices();
      return;
    }
    tile_.mr = best_rows(lanes);
    if (const int64_t fewer = whole_lanes() / kRegistersPerVector; size && lanes > fewer)
      take_if_faster(fewer);
    if (!size || !may_be_wide())
      return;
    if (const int64_t more = wider_lanes(*size); more > 0 && *size >= more)
      take_if_faster(more);
    if (const int64_t more = kRegistersPerVector * whole_lanes(); *size >= more)
      take_if_faster(more);
  }

  // One vector more than usual, where the usual width does not fill a size; else 0.
  int64_t wider_lanes(int64_t size) const {
    return size % whole_lanes() == 0 ? 0 : lanes_of_vector() * (kRegistersPerVector + 1);
  }
  void take_if_faster(int64_t lanes) {
    if (const int64_t rows = best_rows(lanes);
        kLeastGain * time_of(rows, lanes) < time_of(tile_.mr, tile_.nr)) {
      tile_.nr = lanes;
      tile_.mr = rows;
    }
  }
  // Whether more lanes share the broadcast operand, and tiles exclude them.
  bool may_be_wide() const {
    return !choice_.bf16x3.value_or(false) && !tile_.both_along && row_size().is_constant() &&
           product_->multiplies();
  }

  int64_t lanes_of_vector() const { return whole_lanes() / kRegistersPerVector; }
  // Whether so many lanes are whole vectors, and share the broadcast operand.
  bool may_choose_lanes(int64_t size) const {
    return choice_.nr && *choice_.nr >= kLeastLanes && *choice_.nr <= size &&
           *choice_.nr % lanes_of_vector() == 0 && (!tile_.both_along || most_lanes_ % *choice_.nr == 0);
  }

  // As many rows as registers allow beside those for the operands: a whole window where it slides.
  int64_t most_rows(int64_t lanes) const {
    const int64_t vectors = vectors_of(lanes);
    const int64_t to_choose = chooses_in_lanes() ? vectors + 1 : 0;
    const int64_t factors = vectors * (tile_.slides ? size_of_window() : 1);
    return std::max<int64_t>((target_.vector_registers - 2 - factors - to_choose) / vectors, 1);
  }
  // Whether neighbouring lanes load the same.
  bool chooses_in_lanes() const { return tile_.both_along && is_same_in_blocks(*across_, 2); }
  int64_t vectors_of(int64_t lanes) const {
    return std::max<int64_t>(lanes * kRegistersPerVector / whole_lanes(), 1);
  }
  int64_t best_rows(int64_t lanes) const {
    if (choice_.mr)
      return std::max<int64_t>(
          std::min({*choice_.mr, most_rows(lanes), row_size().constant().value_or(INT64_MAX)}), 1);
    const int64_t most = std::min<int64_t>(most_rows(lanes), kMostRows);
    if (!row_size().is_constant())
      return std::min(most, usual_rows_of_block(target_));
    return fastest_rows(*row_size().constant(), most, [&](int64_t rows) { return time_of(rows, lanes); });
  }
  // Of all tiles, in instructions, with the wasted rows and lanes of the last. Prologue and epilogue of a row
  // take as long as some iterations of the sum.
  double time_of(int64_t rows, int64_t lanes) const {
    const auto blocks = [](const Dim& size, int64_t block) {
      return static_cast<double>(*ceil_div(size, block).constant());
    };
    const double iteration = time_of_iteration({.rows = rows,
                                                .vectors = vectors_of(lanes),
                                                .iterations = iterations(),
                                                .element_bytes = info(across_->dtype()).bytes},
                                               target_);
    const double groups = group_size_ ? blocks(lane_size(), *group_size_) : 1;
    return groups * blocks(group_size(), lanes) * blocks(row_size(), rows) *
           (iteration * static_cast<double>(iterations()) + static_cast<double>(kToEndRow * rows));
  }
  // Of the sum; many where dynamic.
  int64_t iterations() const {
    Dim iterations = 1;
    for (const Axis& axis : sum_.reduced)
      iterations = iterations * axis.size;
    return iterations.constant().value_or(INT32_MAX);
  }

  // Whether several row blocks read the operands of one block of lanes, and these stay in cache: then they
  // are packed first, whatever their stride and expression.
  bool pays_to_pack() const {
    if (!lane_size().is_constant() ||
        (row_size().constant().value_or(2 * tile_.mr) <= tile_.mr && !has_axes_within_panel()))
      return false;
    Dim bytes = tile_.nr * info(along_->dtype()).bytes;
    for (const Axis& axis : sum_.reduced)
      bytes = bytes * axis.size;
    return bytes.constant().value_or(INT64_MAX) <= target_.caches.level2;
  }
  bool has_axes_within_panel() const {
    for (size_t i = 0; i < tile_.first_lane_axis; ++i)
      if (i != tile_.row && !mentions(*along_, sum_.axes[i].variable))
        return true;
    return false;
  }

  const Definition& sum_;
  const Target& target_;
  const ContractionChoice& choice_;
  const std::optional<loops::Product> product_;  // the first, where there are several
  GemmTile tile_;
  // Where there are rows: the operand indexed by the lanes, and the one indexed by the rows.
  std::optional<Scalar> along_, across_;
  int64_t most_lanes_ = whole_lanes();       // of a block, in all of which the factor across them is the same
  std::array<int64_t, 2> lanes_alike_ = {};  // by the factors of the product
  std::optional<int64_t> group_size_;        // of lanes with one factor across them, if not all have one
};

}  // namespace

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

std::optional<GemmTile> choose_gemm_tile(const Definition& sum, const Target& target, bool may_pack,
                                         const std::optional<PackedB>& packed_b,
                                         const ContractionChoice& choice) {
  return GemmTileChooser(sum, target, choice).run(may_pack, packed_b);
}

std::optional<PackB> choose_packed_b(const Definition& sum, const Target& target,
                                     const std::function<bool(const std::string&)>& is_constant,
                                     const lowering::BufferTable& buffers, const ContractionChoice& choice) {
  return GemmTileChooser(sum, target, choice).choose_packed_b(is_constant, buffers);
}

std::optional<PackA> choose_packed_a(const Definition& sum, const PackedB& packed_b, const Target& target,
                                     const lowering::BufferTable& buffers, const ContractionChoice& choice) {
  return GemmTileChooser(sum, target, choice).choose_packed_a(packed_b, buffers);
}

WeighedTiles weigh_tiles(const Definition& sum, const GemmTile& tile, const Target& target) {
  return GemmTileChooser(sum, target, ContractionChoice()).weigh(tile);
}

double time_of_iteration(const BlockOfRows& block, const Target& target) {
  constexpr int64_t kToReadLine = 3;
  const auto [rows, vectors, iterations, element_bytes] = block;
  const int64_t shared = vectors * target.vector_bytes;
  const bool stays = iterations * shared <= target.caches.level1_data / 4 * 3;
  const int64_t bytes = rows * element_bytes + (stays ? 0 : shared);
  return static_cast<double>(std::max(vectors * rows, vectors + rows) + 1) +
         static_cast<double>(kToReadLine * bytes) / kCacheLine;
}

int64_t lanes_of_block(DType dtype, const Target& target) {
  return target.vector_bytes / std::max(info(dtype).bytes, 4) * kRegistersPerVector;
}

int64_t rows_of_block(int64_t all, int64_t vectors, int64_t iterations, const Target& target) {
  const int64_t most = std::clamp<int64_t>((target.vector_registers - 2 - vectors) / vectors, 1, kMostRows);
  return fastest_rows(all, most, [&](int64_t rows) {
    return static_cast<double>((all + rows - 1) / rows) *
           time_of_iteration({.rows = rows, .vectors = vectors, .iterations = iterations, .element_bytes = 4},
                             target);
  });
}

int64_t usual_rows_of_block(const Target& target) { return std::max(target.vector_registers / 4, 2); }

}  // namespace tenon::schedule
