#include "schedule/cpu/choose_layouts.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "loops/arithmetic.h"
#include "lowering/image_access.h"
#include "lowering/image_layout.h"
#include "schedule/cpu/conv3x3.h"
#include "schedule/cpu/winograd.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;
using lowering::applies;
using lowering::buffers_read;
using lowering::choice_of;
using lowering::Excess;
using lowering::excess_of;
using lowering::ImageLayout;
using lowering::Item;
using lowering::kFirstSpatial;
using lowering::layout_for;
using lowering::loads_of;
using lowering::LoweredGraph;
using lowering::mentions_any;
using lowering::Opaque;
using lowering::padded_load;
using lowering::PaddedLoad;
using lowering::place_in;
using lowering::reads_image;
using lowering::sizes_in;
using lowering::Stage;
using lowering::TransformedWeights;

namespace {

class LayoutChooser {
 public:
  LayoutChooser(LoweredGraph& lowered, const std::set<std::string>& kept, NumericsBudget numerics,
                const Target& target)
      : lowered_(lowered), numerics_(numerics), target_(target), buffers_(lowered.buffers) {
    fixed_ = kept;
    for (const auto& [name, value] : lowered.values)
      if (value.is_input())
        fixed_.insert(name);
    for (const Item& item : lowered.items)
      if (!item.stage || item.stage->definition.results.size() != 1) {
        fixed_.insert(item.writes.begin(), item.writes.end());
        if (!item.stage)
          fixed_.insert(item.reads.begin(), item.reads.end());
      }
  }

  void run() {
    find_images();
    if (layouts_.empty())
      return;
    surround_images();
    copy_fixed_images();
    logical_ = buffers_;
    for (Item& item : lowered_.items)
      if (item.stage && touches_image(item.stage->definition))
        rewrite(item);
    order_constants();
  }

 private:
  // --- which buffers are images ---

  // The image that a stage convolves with constant weights; nothing where it does something else.
  std::optional<Scalar> convolved(const Definition& definition) const {
    if (definition.combine != "+" || definition.values.size() != 1 ||
        (!applies(definition.values.front(), Function::Multiply) &&
         !applies(definition.values.front(), Function::DotI8x4)))
      return std::nullopt;
    std::optional<Scalar> image;
    bool has_weights = false;
    for (const Scalar& load : loads_of(definition))
      if (lowered_.is_constant(load.name()))
        has_weights = true;
      else if (!image && reads_image(definition, load) && mentions_any(load, definition.reduced))
        image = load;
      else if (!image || !reads_other_channel(*image, load))
        return std::nullopt;
    return has_weights ? image : std::nullopt;
  }

  // Whether both loads are of one pixel.
  static bool reads_other_channel(const Scalar& image, const Scalar& load) {
    std::vector<Scalar> at = load.operands();
    if (load.name() != image.name() || at.size() != image.operands().size())
      return false;
    at[1] = image.operands()[1];
    return at == image.operands();
  }

  // Images of one pixel lie in memory in the same way with their channels last.
  bool has_pixels(const std::string& buffer) const {
    const std::vector<Dim>& sizes = buffers_.at(buffer).sizes;
    return sizes.size() > kFirstSpatial && std::any_of(sizes.begin() + kFirstSpatial, sizes.end(),
                                                       [](const Dim& dim) { return dim != Dim(1); });
  }

  void find_images() {
    const auto add = [&](const std::string& buffer) {
      if (has_pixels(buffer))
        layouts_.emplace(buffer, layout_for(buffers_.at(buffer)));
    };
    for (const Item& item : lowered_.items)
      if (item.stage)
        if (const std::optional<Scalar> image = convolved(item.stage->definition);
            image && has_many_channels(item.stage->definition)) {
          add(image->name());
          add(item.stage->definition.results.front().name);
        }
    // A pointwise function of images is one.
    for (const Item& item : lowered_.items)
      if (item.stage && item.stage->definition.results.size() == 1)
        for (const Scalar& load : loads_of(item.stage->definition))
          if (layouts_.contains(load.name()) && reads_channels(item.stage->definition, load))
            add(item.stage->definition.results.front().name);
  }

  bool has_many_channels(const Definition& definition) const {
    const std::optional<size_t> channel = loops::axis_of(definition.axes, definition.at[1]);
    return channel && definition.axes[*channel].size.constant().value_or(0) >= kLeastChannels;
  }

  static bool reads_channels(const Definition& definition, const Scalar& load) {
    if (!reads_image(definition, load))
      return false;
    const std::optional<size_t> channel = loops::axis_of(definition.axes, definition.at[1]);
    return channel && loops::mentions(load.operands()[1], definition.axes[*channel].variable);
  }

  // --- padding ---

  void surround_images() {
    for (Item& item : lowered_.items)
      if (item.stage)
        if (const std::optional<Scalar> image = convolved(item.stage->definition);
            image && layouts_.contains(image->name()))
          surround(*item.stage, *image);
  }

  void surround(Stage& stage, const Scalar& image) {
    const Definition& definition = stage.definition;
    ImageLayout& layout = layouts_.at(image.name());
    const std::optional<Scalar> border = border_in(definition.values.front(), image.name());
    if (border && layout.border.value_or(*border) != *border)
      return;
    std::vector<Excess> excess(kFirstSpatial);
    const std::vector<Dim>& sizes = buffers_.at(image.name()).sizes;
    for (size_t dim = kFirstSpatial; dim < sizes.size(); ++dim) {
      const std::optional<Excess> own = excess_of(image.operands()[dim].index(), definition, sizes[dim]);
      if (!own)
        return;
      excess.push_back(*own);
    }
    if (const std::optional<Conv3x3> sums = winograd_conv(definition, image)) {
      stage.winograd_tile = choose_winograd_tile(*sums, target_, choice_of(stage));
      if (stage.contraction)
        stage.contraction->may_use_winograd = may_use_winograd(*sums, target_);
      if (stage.winograd_tile)
        for (size_t dim = sizes.size() - 2; dim < sizes.size(); ++dim)
          excess[dim].after =
              std::max(excess[dim].after, reach_past_last(definition, image, dim, *stage.winograd_tile));
    }
    if (border)
      layout.border = border;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      layout.before[dim] = std::max(layout.before[dim], excess[dim].before);
      layout.after[dim] = std::max(layout.after[dim], excess[dim].after);
    }
  }

  // The padding value that an expression assumes; nothing where it assumes none.
  std::optional<Scalar> border_in(const Scalar& scalar, const std::string& image) const {
    if (const std::optional<PaddedLoad> padded = padded_load(scalar, buffers_);
        padded && padded->load.name() == image)
      return padded->border;
    for (const Scalar& operand : scalar.operands())
      if (const std::optional<Scalar> border = border_in(operand, image))
        return border;
    return std::nullopt;
  }

  // --- Winograd ---

  std::optional<Conv3x3> winograd_conv(const Definition& definition, const Scalar& image) const {
    return numerics_ == NumericsBudget::Strict || !layouts_.contains(definition.results.front().name)
               ? std::nullopt
               : match_conv3x3(definition, image, find_weights(definition, lowered_), buffers_);
  }

  // How far whole tiles read beyond the last element of the image.
  int64_t reach_past_last(const Definition& definition, const Scalar& image, size_t dim, int64_t tile) const {
    const Axis& axis = definition.axes[*loops::axis_of(definition.axes, definition.at[dim])];
    std::map<std::string, Dim> first;
    for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduced})
      for (const Axis& each : *axes)
        first.emplace(each.variable, 0);
    const Dim begin = image.operands()[dim].index().substitute(first),
              end = begin + axis.size + reach_of_tiles(*axis.size.constant(), tile);
    const std::optional<int64_t> reach = (end - buffers_.at(image.name()).sizes[dim]).constant();
    CHECK(reach, "windows of {} reach past its end, but how far is not known", image.name());
    return *reach;
  }

  void use_transformed_weights(Item& item) {
    Stage& stage = *item.stage;
    const Scalar weights = *find_weights(stage.definition, lowered_);
    const std::vector<Dim>& sizes = logical_.at(weights.name()).sizes;
    const std::string name = fmt::format("{}_tiles{}", weights.name(), *stage.winograd_tile);
    Dim planes = 1, channel = 0;
    for (size_t dim = kFirstSpatial; dim + 2 < sizes.size(); ++dim) {
      planes = planes * sizes[dim];
      channel = channel * sizes[dim] + weights.operands()[dim].index();
    }
    channel = channel * sizes[1] + weights.operands()[1].index();
    const Conv3x3 sums{.height = 0,
                       .width = 0,
                       .channels = *sizes[1].constant(),
                       .filters = *sizes[0].constant(),
                       .planes = *planes.constant()};
    lowered_.transformed.emplace(name, TransformedWeights{weights.name(), *stage.winograd_tile});
    buffers_.emplace(name,
                     Buffer{.name = name, .sizes = winograd_sizes(sums, *stage.winograd_tile, target_)});
    stage.as_written = stage.definition;
    Scalar& value = stage.definition.values.front();
    const Scalar zero = Scalar::index(0);
    value = loops::replace_loads(value, [&](const Scalar& load) {
      return load.name() == weights.name()
                 ? Scalar::load(name, load.dtype(), {zero, zero, Scalar::index(channel), load.operands()[0]})
                 : load;
    });
    item.reads = buffers_read(stage);
  }

  // --- copies in the layout of the graph ---

  void copy_fixed_images() {
    std::vector<Item> items;
    std::map<size_t, Opaque> opaque;
    std::map<std::string, std::string> copies;  // by what they are copies of
    const auto add_copies_of_inputs = [&](const Item& item) {
      for (const std::string& buffer : item.reads)
        if (item.stage && layouts_.contains(buffer) && fixed_.contains(buffer) && !copies.contains(buffer)) {
          copies.emplace(buffer, add_copy_of(buffer));
          items.push_back(copying_item(copies.at(buffer), buffer, item.stage->sources));
        }
    };
    for (size_t i = 0; i < lowered_.items.size(); ++i) {
      Item item = std::move(lowered_.items[i]);
      add_copies_of_inputs(item);
      if (!item.stage) {
        opaque.emplace(items.size(), std::move(lowered_.opaque.at(i)));
        items.push_back(std::move(item));
        continue;
      }
      const std::string result = item.stage->definition.results.front().name;
      const bool is_copied =
          layouts_.contains(result) && fixed_.contains(result) && item.stage->definition.results.size() == 1;
      if (is_copied) {
        copies.emplace(result, add_copy_of(result));
        item.stage->definition.results.front().name = copies.at(result);
        item.writes = {copies.at(result)};
      }
      for (Scalar& value : item.stage->definition.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          const auto copy = copies.find(load.name());
          return copy == copies.end() ? load : Scalar::load(copy->second, load.dtype(), load.operands());
        });
      item.reads = buffers_read(*item.stage);
      const std::vector<std::string> sources = item.stage->sources;
      items.push_back(std::move(item));
      if (is_copied)
        items.push_back(copying_item(result, copies.at(result), sources));
    }
    for (const auto& [buffer, copy] : copies) {
      layouts_.emplace(copy, layouts_.at(buffer));
      layouts_.erase(buffer);
    }
    lowered_.items = std::move(items);
    lowered_.opaque = std::move(opaque);
  }

  std::string add_copy_of(const std::string& buffer) {
    Buffer copy = buffers_.at(buffer);
    copy.name = buffer + "_image";
    buffers_.emplace(copy.name, copy);
    return copy.name;
  }

  Item copying_item(const std::string& to, const std::string& from,
                    const std::vector<std::string>& sources) const {
    Definition definition;
    definition.results = {buffers_.at(to)};
    const std::vector<Dim>& sizes = buffers_.at(to).sizes;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      definition.axes.push_back({fmt::format("i{}", dim), sizes[dim]});
    definition.at = loops::variables_of(definition.axes);
    definition.values = {Scalar::load(from, buffers_.at(from).dtype, definition.at)};
    return {.stage = Stage{loops::without_unit_axes(std::move(definition)), sources},
            .reads = {from},
            .writes = {to}};
  }

  // --- stages in the layout of their images ---

  bool touches_image(const Definition& definition) const {
    const std::vector<Scalar> loads = loads_of(definition);
    return layouts_.contains(definition.results.front().name) ||
           std::any_of(loads.begin(), loads.end(),
                       [&](const Scalar& load) { return layouts_.contains(load.name()); });
  }

  void rewrite(Item& item) {
    Definition& definition = item.stage->definition;
    order_reduced_axes(definition);
    for (Scalar& value : definition.values)
      value = rewritten(value, definition);
    Buffer& result = definition.results.front();
    if (const auto layout = layouts_.find(result.name); layout != layouts_.end()) {
      definition.at = place_in(layout->second, definition.at);
      result.sizes = sizes_in(layout->second, result.sizes);
      buffers_.at(result.name).sizes = result.sizes;
      item.stage->border = layout->second.border;
      order_axes(definition);
    }
    if (item.stage->winograd_tile)
      use_transformed_weights(item);
    rewritten_.push_back(&item);
  }

  // In the order of their variables in the place of the result.
  static void order_axes(Definition& definition) {
    std::vector<Axis> ordered;
    for (const Scalar& index : definition.at)
      for (const Axis& axis : definition.axes)
        if (loops::mentions(index, axis.variable))
          ordered.push_back(axis);
    definition.axes = std::move(ordered);
  }

  // In the layout of the image that is read.
  void order_reduced_axes(Definition& definition) const {
    for (const Scalar& load : loads_of(definition)) {
      const auto layout = layouts_.find(load.name());
      if (layout == layouts_.end())
        continue;
      const std::vector<Scalar> at = place_in(layout->second, load.operands());
      const auto place_of = [&](const Axis& axis) {
        return std::find_if(at.begin(), at.end(),
                            [&](const Scalar& index) { return loops::mentions(index, axis.variable); }) -
               at.begin();
      };
      std::stable_sort(definition.reduced.begin(), definition.reduced.end(),
                       [&](const Axis& a, const Axis& b) { return place_of(a) < place_of(b); });
      return;
    }
  }

  Scalar rewritten(const Scalar& scalar, const Definition& definition) const {
    if (scalar.kind() == Scalar::Kind::Load) {
      std::vector<Scalar> at;
      for (const Scalar& index : scalar.operands())
        at.push_back(rewritten(index, definition));
      const auto layout = layouts_.find(scalar.name());
      return Scalar::load(scalar.name(), scalar.dtype(),
                          layout == layouts_.end() ? at : place_in(layout->second, at));
    }
    if (scalar.kind() != Scalar::Kind::Apply)
      return scalar;
    if (const std::optional<PaddedLoad> padded = padded_load(scalar, logical_);
        padded && is_surrounded(*padded, definition))
      return rewritten(scalar.operands()[1], definition);
    if (scalar.function() == Function::Cast)
      return Scalar::cast(scalar.dtype(), rewritten(scalar.operands()[0], definition));
    std::vector<Scalar> operands;
    for (const Scalar& operand : scalar.operands())
      operands.push_back(rewritten(operand, definition));
    return Scalar::apply(scalar.function(), std::move(operands));
  }

  // Whether the image has the padding that the load needs.
  bool is_surrounded(const PaddedLoad& padded, const Definition& definition) const {
    const Scalar& load = padded.load;
    const auto layout = layouts_.find(load.name());
    if (layout == layouts_.end() ||
        layout->second.border.value_or(Scalar::zero(load.dtype())) != padded.border)
      return false;
    const std::vector<Dim>& sizes = logical_.at(load.name()).sizes;
    for (size_t dim = kFirstSpatial; dim < sizes.size(); ++dim) {
      const Scalar& index = load.operands()[dim];
      const std::optional<Excess> excess = index.kind() == Scalar::Kind::Index
                                               ? excess_of(index.index(), definition, sizes[dim])
                                               : std::nullopt;
      if (!excess || excess->before > layout->second.before[dim] || excess->after > layout->second.after[dim])
        return false;
    }
    return true;
  }

  // --- weights ---

  // In loop order: the axes of the results but the last, the reduced axes, and last the lanes.
  std::optional<std::vector<size_t>> order_for(const Definition& definition, const Scalar& load) const {
    std::vector<Axis> loops(definition.axes.begin(), definition.axes.end());
    if (definition.reduces() && !loops.empty())
      loops.insert(layouts_.contains(definition.results.front().name) ? loops.end() - 1 : loops.end(),
                   definition.reduced.begin(), definition.reduced.end());
    std::vector<size_t> order(load.operands().size());
    std::vector<int64_t> places(order.size(), -1);
    for (size_t dim = 0; dim < order.size(); ++dim) {
      const Scalar& index = load.operands()[dim];
      if (const std::optional<size_t> axis = loops::axis_of(loops, index))
        places[dim] = static_cast<int64_t>(*axis);
      else if (index != Scalar::index(0))
        return std::nullopt;
    }
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
    return order;
  }

  void order_constants() {
    std::map<std::string, std::optional<std::vector<size_t>>> orders;  // nothing where readers differ
    for (const Item& item : lowered_.items)
      for (const std::string& buffer : item.reads)
        if (lowered_.is_constant(buffer) &&
            std::find(rewritten_.begin(), rewritten_.end(), &item) == rewritten_.end())
          orders[buffer] = std::nullopt;
    for (const Item* item : rewritten_)
      for (const Scalar& load : loads_of(item->stage->definition))
        if (lowered_.is_constant(load.name()) && !fixed_.contains(load.name())) {
          const std::optional<std::vector<size_t>> order = order_for(item->stage->definition, load);
          const auto [it, fresh] = orders.emplace(load.name(), order);
          if (!fresh && it->second != order)
            it->second = std::nullopt;
        }
    for (const auto& [buffer, order] : orders)
      if (order && !std::is_sorted(order->begin(), order->end()))
        reorder(buffer, *order);
    for (Item* item : rewritten_)
      for (Scalar& value : item->stage->definition.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          const auto order = lowered_.orders.find(load.name());
          return order == lowered_.orders.end()
                     ? load
                     : Scalar::load(load.name(), load.dtype(), in_order(order->second, load.operands()));
        });
  }

  template <class T>
  static std::vector<T> in_order(const std::vector<size_t>& order, const std::vector<T>& elements) {
    std::vector<T> ordered;
    for (size_t each : order)
      ordered.push_back(elements[each]);
    return ordered;
  }

  void reorder(const std::string& buffer, const std::vector<size_t>& order) {
    lowered_.orders.emplace(buffer, order);
    std::vector<Dim>& sizes = buffers_.at(buffer).sizes;
    sizes = in_order(order, sizes);
  }

  LoweredGraph& lowered_;
  const NumericsBudget numerics_;
  const Target& target_;
  std::map<std::string, Buffer>& buffers_;
  std::set<std::string> fixed_;                 // buffers that keep their layout
  std::map<std::string, ImageLayout> layouts_;  // of images
  std::map<std::string, Buffer> logical_;       // buffers as the graph has them
  std::vector<Item*> rewritten_;
};

}  // namespace

void choose_layouts(LoweredGraph& lowered, const std::set<std::string>& kept, NumericsBudget numerics,
                    const Target& target) {
  LayoutChooser(lowered, kept, numerics, target).run();
}

}  // namespace tenon::schedule
