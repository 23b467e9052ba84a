#include "schedule/cpu/winograd.h"

#include <algorithm>

#include "base/error.h"
#include "loops/arithmetic.h"
#include "schedule/assign.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/prefetch_b.h"
#include "schedule/cpu/winograd_weights.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Definition;
using loops::Guard;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;
using lowering::WinogradPlan;

namespace {

// The axis along a dimension of the result.
const Axis& axis_along(const Definition& convolution, size_t dim) {
  for (const Axis& each : convolution.axes)
    if (loops::mentions(convolution.at[dim], each.variable))
      return each;
  CHECK(false, "a convolution of {} has no axis {}", convolution.results.front().name, dim);
}

// The last dimensions of a result are its height and width, and the filters.
const Axis& height_of(const Definition& sum) { return axis_along(sum, sum.at.size() - 3); }
const Axis& width_of(const Definition& sum) { return axis_along(sum, sum.at.size() - 2); }
const Axis& filters_of(const Definition& sum) { return axis_along(sum, sum.at.size() - 1); }

Conv3x3 sums_of(const Definition& convolution) {
  Dim terms = 1;
  for (const Axis& axis : convolution.reduced)
    terms = terms * axis.size;
  const int64_t channels = *convolution.reduced.back().size.constant();
  return {.height = *height_of(convolution).size.constant(),
          .width = *width_of(convolution).size.constant(),
          .channels = channels,
          .filters = *filters_of(convolution).size.constant(),
          .planes = *terms.constant() / 9 / channels};
}

Scalar at(const Dim& index) { return Scalar::index(index); }

// Loop variables.
constexpr const char *kBlock = "block0", *kRow = "tile0", *kColumn = "tile1", *kChannels = "channels0",
                     *kChannel = "channel0", *kFilters = "filters0", *kElement = "element0", *kRows = "rows0",
                     *kRowOfBlock = "row0", *kLanes = "lanes0", *kLane = "lane0", *kDown = "down0",
                     *kAcross = "across0", *kPart = "part0";
// Buffers.
constexpr const char *kTransformed = "transformed", *kProducts = "products", *kSeen = "seen", *kHalf = "half",
                     *kSums = "sums", *kFactors = "factors", *kResults = "results", *kBack = "back";

class WinogradNest {
 public:
  WinogradNest(const std::vector<Definition>& definitions, const std::set<std::string>& outputs,
               const WinogradPlan& plan, const Target& target)
      : definitions_(definitions),
        outputs_(outputs),
        sum_(definitions.front()),
        transforms_(winograd_transforms(plan.tile)),
        tile_(plan.tile),
        side_(plan.tile + 2),
        lanes_(lanes_of_tiles(target)),
        blocks_(plan.blocks) {
    find_factors();
    sums_ = sums_of(sum_);
    filters_ = filters_at_once(sums_.filters, target);
    rows_ = rows_of_block(blocks_.tiles(), filters_ / lanes_, sums_.all_channels(), target);
  }

  std::vector<Statement> run() const {
    std::vector<Statement> iteration;
    iteration.emplace_back(
        local(kTransformed, {side_ * side_, blocks_.tiles(), sums_.all_channels()}, Space::Memory));
    iteration.emplace_back(local(kProducts, {side_ * side_, blocks_.tiles(), filters_}, Space::Memory));
    std::vector<Statement> transform =
        as_list(make_loop(kChannels, sums_.channels / lanes_, Mark::Serial, transform_image()));
    iteration.emplace_back(over_tiles(around(planes_, Mark::Serial, std::move(transform))));
    std::vector<Statement> filters = as_list(multiply());
    filters.emplace_back(
        over_tiles(as_list(make_loop(kLanes, filters_ / lanes_, Mark::Serial, transform_back()))));
    const int64_t count = sums_.filters / filters_, part = divide_up(count, blocks_.parts);
    Loop over_filters = make_loop(kFilters, count, Mark::Serial, std::move(filters));
    if (blocks_.parts > 1) {
      over_filters.begin = Dim::symbol(kPart) * part;
      over_filters.end = min(over_filters.begin + part, count);
    }
    iteration.emplace_back(std::move(over_filters));
    std::vector<Statement> body =
        as_list(make_loop(kPart, blocks_.parts, Mark::Parallel, std::move(iteration)));
    body = as_list(make_loop(kBlock, blocks_.count, Mark::Parallel, std::move(body)));
    for (size_t dim = sum_.at.size() - 3; dim-- > 0;)
      if (const std::optional<size_t> images = loops::axis_of(sum_.axes, sum_.at[dim]))
        body = as_list(loop_over(sum_.axes[*images], Mark::Parallel, std::move(body)));
    return body;
  }

 private:
  void find_factors() {
    for (const Scalar& factor : sum_.values.front().operands())
      (loops::mentions(factor, height_of(sum_).variable) ? image_ : weights_) = factor;
    CHECK(
        image_ && weights_ && image_->kind() == Scalar::Kind::Load && weights_->kind() == Scalar::Kind::Load,
        "a convolution in tiles multiplies something else than elements of an image and weights");
    for (size_t dim = 1; dim + 3 < sum_.at.size(); ++dim)
      for (const Axis& axis : sum_.reduced)
        if (loops::mentions(image_->operands()[dim], axis.variable))
          planes_.push_back(axis);
  }

  static Statement local(std::string name, std::vector<Dim> sizes, Space space) {
    return Local{{.name = std::move(name), .dtype = DType::F32, .sizes = std::move(sizes), .space = space}};
  }
  Statement in_registers(std::string name, int64_t rows, int64_t columns) const {
    return local(std::move(name), {rows, columns, lanes_}, Space::Private);
  }
  static Scalar load(const char* buffer, std::vector<Scalar> place) {
    return Scalar::load(buffer, DType::F32, std::move(place));
  }
  Statement in_lanes(const std::string& to, std::vector<Scalar> place, const Scalar& value) const {
    return make_loop(kLane, lanes_, Mark::Vector,
                     as_list(Assign{.places = {{to, std::move(place)}}, .combine = "", .values = {value}}));
  }
  static Scalar lane() { return at(Dim::symbol(kLane)); }

  // The sum of these elements with the numbers of a row of a matrix; those with 0 are left out.
  static Scalar combined(const std::vector<double>& numbers, const std::function<Scalar(int64_t)>& element) {
    std::optional<Scalar> sum;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0)
        continue;
      const Scalar each = element(static_cast<int64_t>(i));
      if (sum && numbers[i] == -1)
        sum = *sum - each;
      else if (const Scalar term = numbers[i] == 1 ? each : each * numbers[i]; sum)
        sum = *sum + term;
      else
        sum = term;
    }
    return *sum;
  }

  // Rows of tiles, counted in the image.
  Dim row_of_tiles() const { return Dim::symbol(kBlock) * blocks_.rows + Dim::symbol(kRow); }
  bool has_more_rows() const { return blocks_.rows * blocks_.count > blocks_.down; }
  Dim tile_in_block() const { return Dim::symbol(kRow) * blocks_.across + Dim::symbol(kColumn); }

  Statement over_tiles(std::vector<Statement> inner) const {
    Loop across = make_loop(kColumn, blocks_.across, Mark::Serial, std::move(inner));
    return make_loop(kRow, blocks_.rows, Mark::Serial, as_list(std::move(across)));
  }

  // --- the image ---

  // What a tile sees, in the lanes of one block of channels.
  std::vector<Statement> transform_image() const {
    std::vector<Statement> body;
    body.push_back(in_registers(kSeen, side_, side_));
    body.push_back(in_registers(kHalf, side_, side_));
    const Scalar i = at(Dim::symbol(kDown)), j = at(Dim::symbol(kAcross));
    body.emplace_back(
        unrolled(kDown, side_, unrolled(kAcross, side_, in_lanes(kSeen, {i, j, lane()}, seen()))));
    std::vector<Statement> halves, wholes;
    for (int64_t k = 0; k < side_; ++k) {
      const std::vector<double>& row = transforms_.image[static_cast<size_t>(k)];
      halves.push_back(in_lanes(kHalf, {at(k), j, lane()}, combined(row, [&](int64_t each) {
                                  return load(kSeen, {at(each), j, lane()});
                                })));
      const Dim element = Dim::symbol(kDown) * side_ + k;
      wholes.push_back(in_lanes(kTransformed,
                                {at(element), at(tile_in_block()), at(first_channel() + Dim::symbol(kLane))},
                                combined(row, [&](int64_t each) {
                                  return load(kHalf, {i, at(each), lane()});
                                })));
    }
    body.emplace_back(make_loop(kAcross, side_, Mark::Unrolled, std::move(halves)));
    body.emplace_back(make_loop(kDown, side_, Mark::Unrolled, std::move(wholes)));
    return body;
  }

  // Of those of all planes that a window sees, plane by plane.
  Dim first_channel() const {
    Dim plane = 0;
    for (const Axis& axis : planes_)
      plane = plane * axis.size + Dim::symbol(axis.variable);
    return plane * sums_.channels + Dim::symbol(kChannels) * lanes_;
  }

  static Loop unrolled(const char* variable, int64_t end, Statement body) {
    return make_loop(variable, end, Mark::Unrolled, as_list(std::move(body)));
  }

  // An element of the image as read by the window of a tile's first result.
  Scalar seen() const {
    std::map<std::string, Dim> places;
    for (const Axis& each : sum_.reduced)
      if (std::ranges::find(planes_, each) == planes_.end())
        places.emplace(each.variable, 0);
    const Dim row = has_more_rows() ? min(row_of_tiles(), blocks_.down - 1) : row_of_tiles();
    places[height_of(sum_).variable] = row * tile_ + Dim::symbol(kDown);
    places[width_of(sum_).variable] = Dim::symbol(kColumn) * tile_ + Dim::symbol(kAcross);
    places[sum_.reduced.back().variable] = Dim::symbol(kChannels) * lanes_ + Dim::symbol(kLane);
    return image_->substitute(places);
  }

  // --- products ---

  Statement multiply() const {
    const Dim first = blocks_.tiles() % rows_ == 0 ? Dim::symbol(kRows) * rows_
                                                   : min(Dim::symbol(kRows) * rows_, blocks_.tiles() - rows_);
    const Scalar element = at(Dim::symbol(kElement)), channel = at(Dim::symbol(kChannel)),
                 row = at(Dim::symbol(kRowOfBlock)), tile = at(first + Dim::symbol(kRowOfBlock));
    const auto in_filters = [&](Assign assign) {
      return make_loop(kLane, filters_, Mark::Vector, as_list(std::move(assign)));
    };
    const auto in_rows = [&](Assign assign) {
      return unrolled(kRowOfBlock, rows_, in_filters(std::move(assign)));
    };
    std::vector<Statement> terms;
    terms.emplace_back(local(kFactors, {filters_}, Space::Private));
    terms.emplace_back(in_filters(
        {.places = {{kFactors, {lane()}}},
         .combine = "",
         .values = {load(weights_->name().c_str(), {at(Dim::symbol(kFilters)), element, channel, lane()})}}));
    append(terms,
           prefetch_b({.here = {weights_->name(), {at(Dim::symbol(kFilters)), element, channel, lane()}},
                       .next = {weights_->name(),
                                {at(Dim::symbol(kFilters)), at(Dim::symbol(kElement) + 1), at(0), at(0)}},
                       .summed = kChannel,
                       .lane = kLane,
                       .lanes = filters_,
                       .iteration = Dim::symbol(kChannel),
                       .iterations = sums_.all_channels(),
                       .pass = Dim::symbol(kRows),
                       .passes = divide_up(blocks_.tiles(), rows_)}));
    terms.emplace_back(
        in_rows({.places = {{kSums, {row, lane()}}},
                 .combine = "+",
                 .values = {load(kTransformed, {element, tile, channel}) * load(kFactors, {lane()})}}));
    std::vector<Statement> block;
    block.emplace_back(local(kSums, {rows_, filters_}, Space::Private));
    block.emplace_back(
        in_rows({.places = {{kSums, {row, lane()}}}, .combine = "", .values = {Scalar::zero(DType::F32)}}));
    block.emplace_back(make_loop(kChannel, sums_.all_channels(), Mark::Serial, std::move(terms)));
    block.emplace_back(in_rows({.places = {{kProducts, {element, tile, lane()}}},
                                .combine = "",
                                .values = {load(kSums, {row, lane()})}}));
    Loop rows = make_loop(kRows, divide_up(blocks_.tiles(), rows_), Mark::Serial, std::move(block));
    return make_loop(kElement, side_ * side_, Mark::Serial, as_list(std::move(rows)));
  }

  // --- the inverse transform ---

  std::vector<Statement> transform_back() const {
    std::vector<Statement> body;
    body.push_back(in_registers(kBack, tile_, side_));
    body.push_back(in_registers(kResults, tile_, tile_));
    const Scalar i = at(Dim::symbol(kDown)), j = at(Dim::symbol(kAcross));
    const Scalar place = at(Dim::symbol(kLanes) * lanes_ + Dim::symbol(kLane));
    std::vector<Statement> halves, wholes;
    for (int64_t k = 0; k < tile_; ++k) {
      const std::vector<double>& row = transforms_.back[static_cast<size_t>(k)];
      halves.push_back(in_lanes(
          kBack, {at(k), j, lane()}, combined(row, [&](int64_t each) {
            return load(kProducts, {at(Dim::symbol(kAcross) + each * side_), at(tile_in_block()), place});
          })));
      wholes.push_back(in_lanes(kResults, {i, at(k), lane()}, combined(row, [&](int64_t each) {
                                  return load(kBack, {i, at(each), lane()});
                                })));
    }
    body.emplace_back(make_loop(kAcross, side_, Mark::Unrolled, std::move(halves)));
    body.emplace_back(make_loop(kDown, tile_, Mark::Unrolled, std::move(wholes)));
    body.emplace_back(unrolled(kDown, tile_, make_loop(kAcross, tile_, Mark::Unrolled, store())));
    return body;
  }

  // The epilogue of one result of a tile, where it is within the image.
  std::vector<Statement> store() const {
    const Dim down = row_of_tiles() * tile_ + Dim::symbol(kDown),
              across = Dim::symbol(kColumn) * tile_ + Dim::symbol(kAcross);
    const std::map<std::string, Dim> places{
        {height_of(sum_).variable, down},
        {width_of(sum_).variable, across},
        {filters_of(sum_).variable,
         Dim::symbol(kFilters) * filters_ + Dim::symbol(kLanes) * lanes_ + Dim::symbol(kLane)}};
    const Scalar result = load(kResults, {at(Dim::symbol(kDown)), at(Dim::symbol(kAcross)), lane()});
    std::vector<Statement> stores;
    for (Assign& assign : build_epilogue(definitions_, outputs_, result,
                                         [&](const Scalar& scalar) { return scalar.substitute(places); }))
      stores.emplace_back(make_loop(kLane, lanes_, Mark::Vector, as_list(std::move(assign))));
    std::vector<Dim> conditions;
    if (blocks_.rows * blocks_.count * tile_ > sums_.height)
      conditions.push_back(sums_.height - 1 - down);
    if (blocks_.across * tile_ > sums_.width)
      conditions.push_back(sums_.width - 1 - across);
    return conditions.empty() ? std::move(stores) : as_list(Guard{std::move(conditions), std::move(stores)});
  }

  const std::vector<Definition>& definitions_;
  const std::set<std::string>& outputs_;
  const Definition& sum_;
  const WinogradTransforms& transforms_;
  const int64_t tile_, side_;  // of the results of a tile, and of what it sees
  const int64_t lanes_;
  const lowering::WinogradBlocks& blocks_;
  std::optional<Scalar> image_, weights_;
  std::vector<Axis> planes_;  // that a window sees
  Conv3x3 sums_;
  int64_t filters_ = 0;  // at once
  int64_t rows_ = 0;     // tiles that share what is read of the weights
};

}  // namespace

int64_t reach_of_tiles(int64_t size, int64_t tile) { return divide_up(size, tile) * tile + 2 - size; }

std::vector<Dim> winograd_sizes(const Conv3x3& sums, int64_t tile, const Target& target) {
  const int64_t at_once = filters_at_once(sums.filters, target);
  return {sums.filters / at_once, (tile + 2) * (tile + 2), sums.all_channels(), at_once};
}

Tensor winograd_weights(const Tensor& weights, int64_t tile, const Target& target, int threads) {
  return transformed_windows(weights, tile, filters_at_once(weights.extent(0), target), threads);
}

std::vector<Statement> build_winograd(const std::vector<Definition>& definitions,
                                      const std::set<std::string>& outputs, const WinogradPlan& plan,
                                      const Target& target) {
  return WinogradNest(definitions, outputs, plan, target).run();
}

}  // namespace tenon::schedule
