#include "schedule/cuda/transpose.h"

#include <algorithm>

#include "schedule/assign.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/loads.h"

namespace tenon::schedule::cuda {

using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Guard;
using loops::Kernel;
using loops::Local;
using loops::mentions;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kSide = 32;      // of a tile
constexpr int64_t kThreads = 256;  // of a block
constexpr int64_t kLeastSize = kSide / 2;

class TileTransposer {
 public:
  TileTransposer(Kernel& kernel, const PointwiseIteration& iteration)
      : kernel_(kernel), body_(iteration.body), axes_(iteration.axes) {}

  bool run() {
    if (axes_.size() < 2 || !find_loads())
      return false;
    std::vector<Statement> block;
    for (size_t i = 0; i < loads_.size(); ++i)
      block.emplace_back(Local{tile(i)});
    block.push_back(over_threads("read0", kSide * kSide, fill()));
    block.push_back(over_threads("written0", kSide * kSide, compute()));
    std::vector<Axis> blocks;
    for (size_t i = 0; i + 1 < axes_.size(); ++i)
      if (i != across_)
        blocks.push_back(axes_[i]);
    blocks.push_back({"b_across0", ceil_div(across().size, kSide)});
    blocks.push_back({"b_along0", ceil_div(along().size, kSide)});
    kernel_.body = as_list(over_blocks(blocks, kThreads, std::move(block)));
    return true;
  }

 private:
  const Axis& along() const { return axes_.back(); }     // that is written
  const Axis& across() const { return axes_[across_]; }  // that is read

  static std::optional<size_t> axis_at_end(const Scalar& load, const std::vector<Axis>& axes) {
    return load.operands().empty() ? std::nullopt : loops::axis_of(axes, load.operands().back());
  }

  // Those along one axis that is not the last, which stands elsewhere in them.
  bool find_loads() {
    for (const Statement& statement : body_)
      for (const Scalar& value : std::get<Assign>(statement).values)
        for_each_certain_load(value, [&](const Scalar& load) {
          const std::optional<size_t> axis = axis_at_end(load, axes_);
          const bool is_transposed = axis && *axis + 1 < axes_.size() && mentions(load, along().variable) &&
                                     (loads_.empty() || *axis == across_) && is_large(axes_[*axis]) &&
                                     std::ranges::find(loads_, load) == loads_.end();
          if (!is_transposed)
            return;
          across_ = *axis;
          loads_.push_back(load);
        });
    return !loads_.empty() && is_large(along()) && loads_.size() <= kMostTiles && writes_along();
  }

  static bool is_large(const Axis& axis) { return axis.size.constant().value_or(kLeastSize) >= kLeastSize; }

  bool writes_along() const {
    return std::ranges::all_of(body_, [&](const Statement& statement) {
      return std::ranges::all_of(std::get<Assign>(statement).places, [&](const loops::Place& place) {
        return !place.at.empty() && place.at.back() == Scalar::index(Dim::symbol(along().variable));
      });
    });
  }

  // A column more than there are elements, so that those of a column are in different banks.
  Buffer tile(size_t load) const {
    return {fmt::format("tile{}", load), loads_[load].dtype(), {kSide, kSide + 1}, Space::Shared};
  }

  // The statements where the axes are at these places of the tile, if they are in range.
  std::vector<Statement> at(const Dim& across_at, const Dim& along_at,
                            const std::vector<Statement>& body) const {
    const Dim row = Dim::symbol("b_across0") * kSide + across_at,
              column = Dim::symbol("b_along0") * kSide + along_at;
    std::vector<Statement> placed = substitute(body, {{across().variable, row}, {along().variable, column}});
    std::vector<Dim> conditions;
    for (const auto& [axis, index] : {std::pair(&across(), &row), std::pair(&along(), &column)})
      if (axis->size.constant().value_or(1) % kSide != 0)
        conditions.push_back(axis->size - 1 - *index);
    return conditions.empty() ? placed : as_list(Guard{.conditions = conditions, .body = std::move(placed)});
  }

  std::vector<Statement> fill() const {
    const Dim thread = Dim::symbol("read0"), slow = floor_div(thread, kSide), fast = mod(thread, kSide);
    std::vector<Statement> copies;
    for (size_t i = 0; i < loads_.size(); ++i)
      copies.emplace_back(Assign{.places = {{tile(i).name, {Scalar::index(slow), Scalar::index(fast)}}},
                                 .combine = "",
                                 .values = {loads_[i]}});
    return at(fast, slow, copies);
  }

  std::vector<Statement> compute() const {
    const Dim thread = Dim::symbol("written0"), slow = floor_div(thread, kSide), fast = mod(thread, kSide);
    std::vector<Statement> body = body_;
    for (Statement& statement : body)
      for (Scalar& value : std::get<Assign>(statement).values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          const auto found = std::ranges::find(loads_, load);
          return found == loads_.end()
                     ? load
                     : Scalar::load(tile(static_cast<size_t>(found - loads_.begin())).name, load.dtype(),
                                    {Scalar::index(fast), Scalar::index(slow)});
        });
    return at(slow, fast, body);
  }

  static constexpr size_t kMostTiles = 4;

  Kernel& kernel_;
  const std::vector<Statement>& body_;
  const std::vector<Axis>& axes_;
  size_t across_ = 0;
  std::vector<Scalar> loads_;
};

}  // namespace

bool transpose_tiles(Kernel& kernel, const PointwiseIteration& iteration) {
  return TileTransposer(kernel, iteration).run();
}

}  // namespace tenon::schedule::cuda
