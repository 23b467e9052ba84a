#include "schedule/cpu/use_winograd.h"

#include <algorithm>

#include "base/error.h"
#include "lowering/image_access.h"
#include "schedule/cpu/conv3x3.h"
#include "schedule/cpu/winograd.h"

namespace tenon::schedule {

using loops::Scalar;
using lowering::BufferId;
using lowering::Home;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::kFirstSpatial;
using lowering::PermutedLayout;
using lowering::Stage;
using lowering::TransformedWeights;

namespace {

class WinogradUser {
 public:
  WinogradUser(KernelGraph& graph, const Target& target) : graph_(graph), target_(target) {}

  void apply(KernelNode& node) {
    Stage& stage = *node.stage;
    const std::optional<MatchedConv3x3> matched = match_conv3x3(stage.definition, graph_);
    CHECK(matched, "{} is no 3 x 3 convolution", stage.definition.results.front().name);
    stage.winograd_tile = stage.plan->winograd->tile;
    pad_image(stage, *matched);
    use_transformed_weights(stage, *matched);
    update_reads(node, graph_.buffers);
    weights_.insert(graph_.buffers.id_of(matched->weights.name()));
  }

  // Weights that nothing reads but what transforms them get the layout of the graph back.
  void restore_layouts() {
    for (BufferId id : weights_) {
      lowering::KernelBuffer& buffer = graph_.buffers[id];
      const auto* permuted = std::get_if<PermutedLayout>(&buffer.layout);
      if (permuted == nullptr ||
          std::ranges::any_of(graph_.nodes, [&](const KernelNode& node) { return node.reads.contains(id); }))
        continue;
      for (KernelNode& node : graph_.nodes)
        if (node.stage && node.stage->winograd_tile)
          unpermute(node.stage->as_written->values.front(), buffer.name(), permuted->order);
      buffer.elements.sizes = buffer.value.shape().dims();
      buffer.layout = lowering::PlainLayout();
    }
  }

 private:
  static void unpermute(Scalar& value, const std::string& weights, const std::vector<size_t>& order) {
    value = loops::replace_loads(value, [&](const Scalar& load) {
      if (load.name() != weights)
        return load;
      std::vector<Scalar> indices = load.operands();
      for (size_t i = 0; i < order.size(); ++i)
        indices[order[i]] = load.operands()[i];
      return Scalar::load(weights, load.dtype(), indices);
    });
  }

  // Along height and width, as far as whole tiles read.
  void pad_image(const Stage& stage, const MatchedConv3x3& matched) {
    const loops::Definition& sum = stage.definition;
    std::vector<Dim> sizes = graph_.buffers.at(matched.image.name()).sizes;
    const size_t dims = sizes.size();
    for (const auto& [dim, size] :
         {std::pair(dims - 3, matched.conv.height), {dims - 2, matched.conv.width}}) {
      const std::optional<int64_t> end = end_of_tiles(sum, matched, dim, size, *stage.winograd_tile),
                                   there = sizes[dim].constant();
      CHECK(end && there, "how far tiles of {} reach is not known", matched.image.name());
      sizes[dim] = std::max(*end, *there);
    }
    resize(matched.image.name(), sizes);
  }

  // The end of what tiles read along a dimension of the image.
  static std::optional<int64_t> end_of_tiles(const loops::Definition& sum, const MatchedConv3x3& matched,
                                             size_t dim, int64_t size, int64_t tile) {
    std::map<std::string, Dim> first;
    for (const std::vector<loops::Axis>* axes : {&sum.axes, &sum.reduced})
      for (const loops::Axis& axis : *axes)
        first.emplace(axis.variable, 0);
    return (matched.image.operands()[dim].index().substitute(first) + size + reach_of_tiles(size, tile))
        .constant();
  }

  void resize(const std::string& image, const std::vector<Dim>& sizes) {
    const BufferId id = graph_.buffers.id_of(image);
    graph_.buffers[id].elements.sizes = sizes;
    for (KernelNode& node : graph_.nodes)
      if (node.stage && node.writes.contains(id)) {
        node.stage->definition.results.front().sizes = sizes;
        if (node.stage->as_written)
          node.stage->as_written->results.front().sizes = sizes;
      }
  }

  void use_transformed_weights(Stage& stage, const MatchedConv3x3& matched) {
    const std::string name = fmt::format("{}_tiles{}", matched.weights.name(), *stage.winograd_tile);
    Dim channel = 0;
    for (size_t dim = kFirstSpatial; dim + 2 < matched.of_weights.size(); ++dim) {
      const std::optional<size_t> plane = loops::axis_of(stage.definition.reduced, matched.of_weights[dim]);
      channel = channel * (plane ? stage.definition.reduced[*plane].size : Dim(1)) +
                matched.of_weights[dim].index();
    }
    channel = channel * matched.conv.channels + matched.of_weights[1].index();
    if (!graph_.buffers.contains(name))
      graph_.buffers.add(
          {.elements = {.name = name, .sizes = winograd_sizes(matched.conv, *stage.winograd_tile, target_)},
           .home = Home::Constant,
           .layout = TransformedWeights{graph_.buffers.id_of(matched.weights.name()), *stage.winograd_tile}});
    stage.as_written = stage.definition;
    const Scalar zero = Scalar::index(0),
                 transformed = Scalar::load(name, matched.weights.dtype(),
                                            {zero, zero, Scalar::index(channel), matched.of_weights[0]});
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(
        value, [&](const Scalar& load) { return load == matched.weights ? transformed : load; });
  }

  KernelGraph& graph_;
  const Target& target_;
  std::set<BufferId> weights_;  // that are transformed
};

}  // namespace

void use_winograd(KernelGraph& graph, const Target& target) {
  WinogradUser user(graph, target);
  for (KernelNode& node : graph.nodes)
    if (node.stage && node.stage->plan && node.stage->plan->winograd)
      user.apply(node);
  user.restore_layouts();
}

}  // namespace tenon::schedule
