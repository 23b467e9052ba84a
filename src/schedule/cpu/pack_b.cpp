#include "schedule/cpu/pack_b.h"

#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "schedule/cpu/gemm_tile.h"

namespace tenon::schedule {

using loops::Definition;
using loops::Scalar;
using lowering::Item;
using lowering::LoweredGraph;
using lowering::PackedB;
using lowering::PackedWeights;
using lowering::Stage;

namespace {

// The dimensions of a load, as PackedB has them: batch dimensions, that of the lanes, and the reduced ones.
std::vector<size_t> order_in_packed_b(const Definition& sum, const Scalar& load) {
  std::vector<size_t> order;
  const auto add_where = [&](const auto& fits) {
    for (size_t dim = 0; dim < load.operands().size(); ++dim)
      if (fits(load.operands()[dim]))
        order.push_back(dim);
  };
  const auto is = [](const loops::Axis& axis) {
    return [&](const Scalar& index) { return loops::axis_of({axis}, index).has_value(); };
  };
  const loops::Axis& lane = sum.axes.back();
  add_where([&](const Scalar& index) { return !is(lane)(index) && !loops::axis_of(sum.reduced, index); });
  add_where(is(lane));
  for (const loops::Axis& axis : sum.reduced)
    add_where(is(axis));
  CHECK(order.size() == load.operands().size(), "{} has dimensions of no axis", load.name());
  return order;
}

class Packer {
 public:
  Packer(LoweredGraph& lowered, const Target& target) : lowered_(lowered), target_(target) {}

  void pack(Item& item) {
    Stage& stage = *item.stage;
    const std::optional<PackedBChoice> choice = choose_packed_b(
        stage.definition, target_, [&](const std::string& buffer) { return lowered_.is_constant(buffer); },
        lowered_.buffers, choice_of(stage));
    if (!choice)
      return;
    const Scalar& load = choice->load;
    const std::vector<size_t> order = order_in_packed_b(stage.definition, load);
    const size_t reduced = stage.definition.reduced.size();
    const std::string name = fmt::format("{}_panels{}x{}_{}_{}", load.name(), choice->packed_b.groups,
                                         choice->packed_b.lanes, reduced, fmt::join(order, "_"));
    add_packed_b(name, load.name(), order, reduced, choice->packed_b);
    std::vector<Scalar> place;
    for (size_t dim : order)
      place.push_back(load.operands()[dim]);
    const auto lane = place.end() - 1 - static_cast<int64_t>(reduced);
    place.push_back(std::exchange(*lane, Scalar::index(0)));
    stage.as_written = stage.definition;
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(value, [&](const Scalar& each) {
      return each == load ? Scalar::load(name, load.dtype(), place) : each;
    });
    stage.packed_b = choice->packed_b;
    stage.packed_b->buffer = name;
    item.reads = buffers_read(stage);
  }

 private:
  void add_packed_b(const std::string& name, const std::string& weights, const std::vector<size_t>& order,
                    size_t reduced, const PackedB& packed_b) {
    loops::Buffer buffer = lowered_.buffers.at(weights);
    const std::vector<Dim> before = std::exchange(buffer.sizes, {});
    buffer.name = name;
    PackedWeights packed{
        weights, {.order = {}, .reduced = reduced, .lanes = packed_b.lanes, .groups = packed_b.groups}};
    const auto reordered = lowered_.orders.find(weights);
    for (size_t dim : order) {
      buffer.sizes.push_back(before[dim]);
      packed.order.order.push_back(reordered == lowered_.orders.end() ? dim : reordered->second[dim]);
    }
    Dim& lane_size = *(buffer.sizes.end() - 1 - static_cast<int64_t>(reduced));
    lane_size = ceil_div(floor_div(lane_size, packed_b.groups), packed_b.lanes) * packed_b.groups;
    buffer.sizes.emplace_back(packed_b.lanes);
    lowered_.packed.emplace(name, std::move(packed));
    lowered_.buffers.emplace(name, std::move(buffer));
  }

  LoweredGraph& lowered_;
  const Target& target_;
};

}  // namespace

void pack_b(LoweredGraph& lowered, const Target& target) {
  Packer packer(lowered, target);
  for (Item& item : lowered.items)
    if (item.stage && !item.stage->winograd_tile)
      packer.pack(item);
}

}  // namespace tenon::schedule
