#include "schedule/choose_layouts.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "loops/arithmetic.h"
#include "loops/contraction.h"
#include "lowering/image_access.h"
#include "lowering/image_layout.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Function;
using loops::Scalar;
using lowering::BufferId;
using lowering::BufferTable;
using lowering::Excess;
using lowering::excess_of;
using lowering::ImageLayout;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::kFirstSpatial;
using lowering::layout_for;
using lowering::loads_of;
using lowering::mentions_any;
using lowering::padded_load;
using lowering::PaddedLoad;
using lowering::PermutedLayout;
using lowering::place_in;
using lowering::reads_image;
using lowering::sizes_in;

namespace {

class LayoutChooser {
 public:
  LayoutChooser(KernelGraph& graph, const Target& target)
      : graph_(graph), buffers_(graph.buffers), on_gpu_(target.gpu.has_value()) {
    const auto fix = [&](const auto& ids) {
      for (BufferId id : ids)
        fixed_.insert(buffers_[id].name());
    };
    fix(graph.inputs);
    fix(graph.outputs);
    for (const KernelNode& node : graph.nodes)
      if (!node.stage || node.stage->definition.results.size() != 1) {
        fix(node.writes);
        if (!node.stage)
          fix(node.reads);
      }
  }

  void run() {
    find_images();
    if (on_gpu_)
      drop_images_for_others();
    if (layouts_.empty())
      return;
    if (!on_gpu_)
      surround_images();
    copy_fixed_images();
    logical_ = buffers_;
    for (KernelNode& node : graph_.nodes)
      if (node.stage && touches_image(node.stage->definition))
        rewrite(node);
    order_constants();
    for (const auto& [buffer, layout] : layouts_)
      buffers_[buffers_.id_of(buffer)].layout = layout;
    if (on_gpu_)
      elide_copies();
  }

 private:
  // --- which buffers are images ---

  // The image that a stage convolves with constant weights; nothing where it does something else.
  std::optional<Scalar> convolved(const Definition& definition) const {
    const std::optional<loops::Contraction> contraction = match_contraction(definition);
    if (!contraction || contraction->product().function == Function::DotBf16x2)
      return std::nullopt;
    std::optional<Scalar> image;
    bool has_weights = false;
    for (const Scalar& load : loads_of(definition))
      if (graph_.is_constant(load.name()))
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
      if (!has_pixels(buffer))
        return;
      ImageLayout layout = layout_for(buffers_.at(buffer));
      if (!on_gpu_ || !std::ranges::is_sorted(layout.order))
        layouts_.emplace(buffer, std::move(layout));
    };
    // Threads of a GPU write in the order that is asked for, rather than that another kernel copies it.
    const auto add_result = [&](const Definition& definition) {
      if (const std::string& buffer = definition.results.front().name; !on_gpu_ || !fixed_.contains(buffer))
        add(buffer);
    };
    for (const KernelNode& node : graph_.nodes)
      if (node.stage)
        if (const std::optional<Scalar> image = convolved(node.stage->definition);
            image && has_many_channels(node.stage->definition)) {
          add(image->name());
          add_result(node.stage->definition);
        }
    // A pointwise function of images is one.
    for (const KernelNode& node : graph_.nodes)
      if (node.stage && node.stage->definition.results.size() == 1)
        for (const Scalar& load : loads_of(node.stage->definition))
          if (layouts_.contains(load.name()) && reads_channels(node.stage->definition, load))
            add_result(node.stage->definition);
  }

  // What nobody reads as an image is written as those want it who read it, and fuse with its maker.
  void drop_images_for_others() {
    const auto is_for_others = [&](const auto& image) {
      return std::ranges::none_of(graph_.nodes, [&](const KernelNode& node) {
        return node.stage && node.stage->definition.results.size() == 1 &&
               reads_as_image(node.stage->definition, image.first, image.second);
      });
    };
    while (std::erase_if(layouts_, is_for_others) > 0) {
    }
  }

  // To convolve it, to make another, or in the order in which it lies.
  bool reads_as_image(const Definition& definition, const std::string& buffer,
                      const ImageLayout& layout) const {
    const std::vector<Scalar> loads = loads_of(definition);
    const auto load = std::ranges::find_if(loads, [&](const Scalar& each) { return each.name() == buffer; });
    if (load == loads.end())
      return false;
    const std::optional<Scalar> image = convolved(definition);
    return (image && image->name() == buffer) || layouts_.contains(definition.results.front().name) ||
           place_in(layout, load->operands()) == definition.at;
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
    for (KernelNode& node : graph_.nodes)
      if (node.stage)
        if (const std::optional<Scalar> image = convolved(node.stage->definition);
            image && layouts_.contains(image->name()))
          surround(node.stage->definition, *image);
  }

  void surround(const Definition& definition, const Scalar& image) {
    ImageLayout& layout = layouts_.at(image.name());
    const std::optional<Scalar> border = border_in(definition.values.front(), image.name());
    if (border && border_of(image.name()).value_or(*border) != *border)
      return;
    std::vector<Excess> excess(kFirstSpatial);
    const std::vector<Dim>& sizes = buffers_.at(image.name()).sizes;
    for (size_t dim = kFirstSpatial; dim < sizes.size(); ++dim) {
      const std::optional<Excess> own = excess_of(image.operands()[dim].index(), definition, sizes[dim]);
      if (!own)
        return;
      excess.push_back(*own);
    }
    if (border)
      borders_.emplace(image.name(), *border);
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      layout.before[dim] = std::max(layout.before[dim], excess[dim].before);
      layout.after[dim] = std::max(layout.after[dim], excess[dim].after);
    }
  }

  // The padding value of an image; nothing where none is needed, and it is 0.
  std::optional<Scalar> border_of(const std::string& image) const {
    const auto border = borders_.find(image);
    return border == borders_.end() ? std::nullopt : std::optional(border->second);
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

  // --- copies in the layout of the graph ---

  void copy_fixed_images() {
    std::vector<KernelNode> nodes;
    std::map<std::string, std::string> copies;  // by what they are copies of
    const auto add_copies_of_inputs = [&](const KernelNode& node) {
      for (BufferId id : node.reads)
        if (const std::string buffer = buffers_[id].name();
            node.stage && layouts_.contains(buffer) && fixed_.contains(buffer) && !copies.contains(buffer)) {
          copies.emplace(buffer, add_copy_of(buffer));
          nodes.push_back(copying_node(copies.at(buffer), buffer, node.stage->sources));
        }
    };
    for (KernelNode& each : graph_.nodes) {
      KernelNode node = std::move(each);
      add_copies_of_inputs(node);
      if (!node.stage) {
        nodes.push_back(std::move(node));
        continue;
      }
      const std::string result = node.stage->definition.results.front().name;
      const bool is_copied =
          layouts_.contains(result) && fixed_.contains(result) && node.stage->definition.results.size() == 1;
      if (is_copied) {
        copies.emplace(result, add_copy_of(result));
        node.stage->definition.results.front().name = copies.at(result);
        node.writes = {buffers_.id_of(copies.at(result))};
      }
      for (Scalar& value : node.stage->definition.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          const auto copy = copies.find(load.name());
          return copy == copies.end() ? load : Scalar::load(copy->second, load.dtype(), load.operands());
        });
      update_reads(node, buffers_);
      const std::vector<std::string> sources = node.stage->sources;
      nodes.push_back(std::move(node));
      if (is_copied)
        nodes.push_back(copying_node(result, copies.at(result), sources));
    }
    for (const auto& [buffer, copy] : copies) {
      layouts_.emplace(copy, layouts_.at(buffer));
      layouts_.erase(buffer);
      if (const std::optional<Scalar> border = border_of(buffer))
        borders_.emplace(copy, *border);
    }
    graph_.nodes = std::move(nodes);
  }

  std::string add_copy_of(const std::string& buffer) {
    Buffer copy = buffers_.at(buffer);
    copy.name = buffer + "_image";
    buffers_.add({.elements = copy});
    return copy.name;
  }

  KernelNode copying_node(const std::string& to, const std::string& from,
                          const std::vector<std::string>& sources) const {
    Definition definition;
    definition.results = {buffers_.at(to)};
    const std::vector<Dim>& sizes = buffers_.at(to).sizes;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      definition.axes.push_back({fmt::format("i{}", dim), sizes[dim]});
    definition.at = loops::variables_of(definition.axes);
    definition.values = {Scalar::load(from, buffers_.at(from).dtype, definition.at)};
    return make_node({loops::without_unit_axes(std::move(definition)), sources}, buffers_);
  }

  // Stages that copy what is in memory in the order of the copy already.
  void elide_copies() {
    std::map<std::string, std::string> originals;  // of copies
    std::vector<KernelNode> nodes;
    for (KernelNode& node : graph_.nodes) {
      if (!node.stage) {
        nodes.push_back(std::move(node));
        continue;
      }
      Definition& definition = node.stage->definition;
      for (Scalar& value : definition.values)
        value = loops::replace_loads(value, [&](const Scalar& load) {
          const auto original = originals.find(load.name());
          return original == originals.end() ? load
                                             : Scalar::load(original->second, load.dtype(), load.operands());
        });
      update_reads(node, buffers_);
      if (copies_as_it_is(definition))
        originals.emplace(definition.results.front().name, definition.values.front().name());
      else
        nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

  bool copies_as_it_is(const Definition& definition) const {
    const Buffer& result = definition.results.front();
    const Scalar& value = definition.values.front();
    return !definition.reduces() && definition.results.size() == 1 && !fixed_.contains(result.name) &&
           value.kind() == Scalar::Kind::Load && value.operands() == definition.at &&
           buffers_.at(value.name()).sizes == result.sizes && !graph_.is_constant(value.name());
  }

  // --- stages in the layout of their images ---

  bool touches_image(const Definition& definition) const {
    const std::vector<Scalar> loads = loads_of(definition);
    return layouts_.contains(definition.results.front().name) ||
           std::any_of(loads.begin(), loads.end(),
                       [&](const Scalar& load) { return layouts_.contains(load.name()); });
  }

  void rewrite(KernelNode& node) {
    Definition& definition = node.stage->definition;
    order_reduced_axes(definition);
    for (Scalar& value : definition.values)
      value = rewritten(value, definition);
    Buffer& result = definition.results.front();
    if (const auto layout = layouts_.find(result.name); layout != layouts_.end()) {
      definition.at = place_in(layout->second, definition.at);
      result.sizes = sizes_in(layout->second, result.sizes);
      buffers_.at(result.name).sizes = result.sizes;
      node.stage->border = border_of(result.name);
      order_axes(definition);
    }
    rewritten_.push_back(&node);
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
        border_of(load.name()).value_or(Scalar::zero(load.dtype())) != padded.border)
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
    for (const KernelNode& node : graph_.nodes)
      for (BufferId id : node.reads)
        if (const std::string& buffer = buffers_[id].name();
            graph_.is_constant(buffer) &&
            std::find(rewritten_.begin(), rewritten_.end(), &node) == rewritten_.end())
          orders[buffer] = std::nullopt;
    for (const KernelNode* node : rewritten_)
      for (const Scalar& load : loads_of(node->stage->definition))
        if (graph_.is_constant(load.name()) && !fixed_.contains(load.name())) {
          const std::optional<std::vector<size_t>> order = order_for(node->stage->definition, load);
          const auto [it, fresh] = orders.emplace(load.name(), order);
          if (!fresh && it->second != order)
            it->second = std::nullopt;
        }
    for (const auto& [buffer, order] : orders)
      if (order && !std::is_sorted(order->begin(), order->end()))
        reorder(buffer, *order);
    for (KernelNode* node : rewritten_)
      follow_order(node->stage->definition);
  }

  void follow_order(Definition& definition) const {
    for (Scalar& value : definition.values)
      value = loops::replace_loads(value, [&](const Scalar& load) {
        const auto* permuted = std::get_if<PermutedLayout>(&buffers_[buffers_.id_of(load.name())].layout);
        return permuted == nullptr
                   ? load
                   : Scalar::load(load.name(), load.dtype(), in_order(permuted->order, load.operands()));
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
    buffers_[buffers_.id_of(buffer)].layout = PermutedLayout{order};
    std::vector<Dim>& sizes = buffers_.at(buffer).sizes;
    sizes = in_order(order, sizes);
  }

  KernelGraph& graph_;
  BufferTable& buffers_;
  std::set<std::string> fixed_;                 // buffers that keep their layout
  std::map<std::string, ImageLayout> layouts_;  // of images
  std::map<std::string, Scalar> borders_;       // of images, where needed
  BufferTable logical_;                         // buffers as the graph has them
  std::vector<KernelNode*> rewritten_;
  const bool on_gpu_;
};

}  // namespace

void choose_layouts(KernelGraph& graph, const Target& target) { LayoutChooser(graph, target).run(); }

}  // namespace tenon::schedule
