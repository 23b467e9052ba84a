#include "schedule/cpu/pack_a.h"

#include <algorithm>

#include "schedule/cpu/gemm_tile.h"

namespace tenon::schedule {

using loops::Buffer;
using loops::Definition;
using loops::Scalar;
using lowering::Item;
using lowering::LoweredGraph;
using lowering::Opaque;
using lowering::PackedA;
using lowering::Stage;

namespace {

class RowPacker {
 public:
  RowPacker(LoweredGraph& lowered, const Target& target) : lowered_(lowered), target_(target) {}

  void run() {
    for (size_t i = 0; i < lowered_.items.size(); ++i) {
      Item item = std::move(lowered_.items[i]);
      if (!item.stage)
        opaque_.emplace(items_.size(), std::move(lowered_.opaque.at(i)));
      else if (item.stage->packed_b)
        pack(item);
      items_.push_back(std::move(item));
    }
    lowered_.items = std::move(items_);
    lowered_.opaque = std::move(opaque_);
  }

 private:
  void pack(Item& item) {
    Stage& stage = *item.stage;
    const std::optional<PackedAChoice> choice =
        choose_packed_a(stage.definition, *stage.packed_b, target_, choice_of(stage));
    if (!choice)
      return;
    const Scalar& load = choice->load;
    const std::string name = name_of(*choice, stage.definition.reduced.front());
    if (!lowered_.buffers.contains(name))
      items_.push_back(moving_item(name, *choice, stage));
    const Scalar moved =
        Scalar::load(name, load.dtype(),
                     {Scalar::index(0), Scalar::index(Dim::symbol(stage.definition.reduced.front().variable)),
                      Scalar::index(Dim::symbol(choice->axis.variable))});
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(value, [&](const Scalar& each) { return each == load ? moved : each; });
    stage.packed_a = PackedA{.buffer = name, .rows = choice->rows};
    item.reads = buffers_read(stage);
  }

  // Another for each way to read the buffer.
  static std::string name_of(const PackedAChoice& choice, const loops::Axis& reduced) {
    const std::vector<Scalar>& indices = choice.load.operands();
    const auto dim = std::ranges::find_if(
        indices, [&](const Scalar& index) { return loops::axis_of({choice.axis}, index).has_value(); });
    return fmt::format("{}_rows{}_{}_{}_{}", choice.load.name(), choice.rows, dim - indices.begin(),
                       *choice.axis.size.constant(), *reduced.size.constant());
  }

  Item moving_item(const std::string& name, const PackedAChoice& choice, const Stage& product) {
    const loops::Axis &row = choice.axis, &reduced = product.definition.reduced.front();
    const Dim first = min(Dim::symbol("i0") * choice.rows, row.size - choice.rows);
    Definition definition;
    definition.axes = {{"i0", ceil_div(row.size, choice.rows)}, {"i1", reduced.size}, {"i2", choice.rows}};
    Buffer buffer{.name = name, .dtype = choice.load.dtype(), .sizes = {}};
    for (const loops::Axis& axis : definition.axes)
      buffer.sizes.push_back(axis.size);
    lowered_.buffers.emplace(name, buffer);
    definition.results = {std::move(buffer)};
    definition.at = loops::variables_of(definition.axes);
    definition.values = {choice.load.substitute(
        {{row.variable, first + Dim::symbol("i2")}, {reduced.variable, Dim::symbol("i1")}})};
    return {.stage = Stage{.definition = std::move(definition),
                           .sources = product.sources,
                           .contraction = product.contraction},
            .reads = {choice.load.name()},
            .writes = {name}};
  }

  LoweredGraph& lowered_;
  const Target& target_;
  std::vector<Item> items_;
  std::map<size_t, Opaque> opaque_;  // by item
};

}  // namespace

void pack_a(LoweredGraph& lowered, const Target& target) { RowPacker(lowered, target).run(); }

}  // namespace tenon::schedule
