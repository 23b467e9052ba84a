#include "schedule/cuda/split_reductions.h"

#include <algorithm>

#include "fusion/cost.h"
#include "fusion/fused_attention.h"
#include "loops/contraction.h"
#include "schedule/cuda/block_rows.h"
#include "schedule/cuda/gemv.h"
#include "schedule/cuda/reductions.h"
#include "schedule/cuda/split_products.h"

namespace tenon::schedule::cuda {

using fusion::Missed;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Scalar;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Stage;

namespace {

constexpr int64_t kBlocksPerMultiprocessor = 4;  // that are wanted
constexpr int64_t kBlocksOfColumns = 2;          // that a multiprocessor needs to load at full speed
constexpr int64_t kLeastOfRow = 4096;            // elements that a block of a row reduces
constexpr int64_t kLeastOfColumn = 64;           // the same for each column
constexpr std::string_view kPart = "part0";      // the variable of parts

std::optional<int64_t> count(const std::vector<Axis>& axes) {
  Dim product = 1;
  for (const Axis& axis : axes)
    product = product * axis.size;
  return product.constant();
}

// The most parts of equal size, but no more than wanted.
int64_t divisor(int64_t size, int64_t wanted) {
  for (int64_t parts = std::min(size, wanted); parts > 1; --parts)
    if (size % parts == 0)
      return parts;
  return 1;
}

// Products of matrices are tiled, by other numbers.
bool is_product(const Definition& reduction) {
  const std::optional<loops::Product> product = loops::match_product(reduction.values.front());
  return product && product->multiplies() && reduction.axes.size() > 1;
}

std::string describe(const ProductSplit& split) {
  return fmt::format(
      "its sum is split into {} parts: {} thread blocks and about {:.1f} µs instead of {} and {:.1f} µs",
      split.parts, split.blocks_split, split.nanoseconds_split / 1e3, split.blocks_whole,
      split.nanoseconds_whole / 1e3);
}

class Splitter {
 public:
  Splitter(KernelGraph& graph, const Target& target, NumericsBudget numerics)
      : graph_(graph), gpu_(*target.gpu), numerics_(numerics) {
    const fusion::FoundAttention found =
        fusion::find_fused_attention(graph.nodes, graph.buffers, graph.kept(), target, numerics);
    for (const fusion::FusedAttention& attention : found.fused)
      in_attention_.insert(attention.nodes.begin(), attention.nodes.end());
  }

  std::vector<Missed> run() {
    std::vector<std::optional<Plan>> plans;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::optional<Stage>& stage = graph_.nodes[i].stage;
      plans.push_back(stage && !in_attention_.contains(i) ? plan_for(stage->definition) : std::nullopt);
    }
    std::vector<KernelNode> nodes;
    for (size_t i = 0; i < plans.size(); ++i) {
      KernelNode& node = graph_.nodes[i];
      if (const std::optional<Plan>& plan = plans[i]) {
        nodes.push_back(make_node(parts_of(*node.stage, *plan), graph_.buffers));
        node.stage->definition = whole_of(node.stage->definition, *plan);
        update_reads(node, graph_.buffers);
        if (!plan->reason.empty())
          missed_.push_back({graph_.buffers.id_of(plan->buffer.name), nodes.size(), plan->reason});
      }
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
    return std::move(missed_);
  }

 private:
  struct Plan {
    size_t axis;  // that is divided, among those reduced
    int64_t parts;
    Buffer buffer;
    std::string reason = {};
  };

  std::optional<Plan> plan_for(const Definition& definition) const {
    if (!definition.reduces() || !is_divisible(definition))
      return std::nullopt;
    std::vector<Buffer> read;
    loops::for_each_load(definition.values.front(),
                         [&](const Scalar& load) { read.push_back(graph_.buffers.at(load.name())); });
    if (is_gemv(definition, read))  // threads of a block share its sums
      return std::nullopt;
    return is_product(definition) ? plan_for_product(definition, read) : plan_for_reduction(definition);
  }

  std::optional<Plan> plan_for_product(const Definition& definition, const std::vector<Buffer>& read) const {
    const std::optional<ProductSplit> split = split_product(definition, read, gpu_, numerics_);
    if (!split)
      return std::nullopt;
    return Plan{.axis = split->axis,
                .parts = split->parts,
                .buffer = buffer_of_parts(definition, split->parts),
                .reason = describe(*split)};
  }

  static Buffer buffer_of_parts(const Definition& definition, int64_t parts) {
    const Buffer& result = definition.results.front();
    Buffer buffer{.name = result.name + "_parts", .dtype = result.dtype, .sizes = {parts}};
    for (const Axis& axis : definition.axes)
      buffer.sizes.push_back(axis.size);
    return buffer;
  }

  std::optional<Plan> plan_for_reduction(const Definition& definition) const {
    const std::optional<int64_t> results = count(definition.axes), reduced = count(definition.reduced);
    if (!results || !reduced || *results == 0 || *reduced == 0)
      return std::nullopt;
    const bool consecutive = reduces_consecutive(definition);
    if (consecutive && *results >= fusion::kLeastRowsOfKernel && fits_cluster(*reduced, gpu_))
      return std::nullopt;
    const int64_t blocks = consecutive ? *results : (*results + kColumnsOfBlock - 1) / kColumnsOfBlock;
    const int64_t wanted = std::min(gpu_.multiprocessors * kBlocksPerMultiprocessor / blocks,
                                    *reduced / (consecutive ? kLeastOfRow : kLeastOfColumn));
    Plan best{.axis = 0, .parts = 1, .buffer = {}};
    for (size_t i = 0; i < definition.reduced.size(); ++i)
      if (const int64_t parts = divisor(*definition.reduced[i].size.constant(), wanted); parts > best.parts)
        best = {.axis = i, .parts = parts, .buffer = {}};
    if (best.parts == 1 || !pays(definition, *results, *reduced, blocks, best.parts))
      return std::nullopt;
    best.buffer = buffer_of_parts(definition, best.parts);
    return best;
  }

  // Whether multiprocessors that have nothing to do otherwise save more time than launches take: that of the
  // whole, and where rows would stay in registers for what reads them next, another one and reading them
  // again.
  bool pays(const Definition& definition, int64_t results, int64_t reduced, int64_t blocks,
            int64_t parts) const {
    const double bytes = static_cast<double>(results * reduced) *
                         static_cast<double>(fusion::cost_of(definition.values.front()).bytes);
    const bool consecutive = reduces_consecutive(definition);
    const int64_t enough = gpu_.multiprocessors * (consecutive ? 1 : kBlocksOfColumns);
    const auto nanoseconds = [&](int64_t busy) {
      const auto share = static_cast<double>(std::min(busy, enough));
      return bytes / gpu_.bytes_per_nanosecond * static_cast<double>(enough) / share;
    };
    double lost = kLaunchNanoseconds;
    if (consecutive && results >= fusion::kLeastRowsOfKernel && is_read_along_rows(definition))
      lost += kLaunchNanoseconds + nanoseconds(enough);
    return nanoseconds(blocks) - nanoseconds(blocks * parts) > lost;
  }

  // Whether a stage reads the result at every position of a row, as softmax does.
  bool is_read_along_rows(const Definition& definition) const {
    const std::string& result = definition.results.front().name;
    return std::ranges::any_of(graph_.nodes, [&](const KernelNode& node) {
      return node.stage && buffers_read(*node.stage).contains(result) &&
             node.stage->definition.axes.size() + node.stage->definition.reduced.size() >
                 definition.axes.size();
    });
  }

  Stage parts_of(const Stage& whole, const Plan& plan) {
    Stage stage = whole;
    Definition& definition = stage.definition;
    Axis& divided = definition.reduced[plan.axis];
    const Dim each = *divided.size.constant() / plan.parts;
    definition.values.front() = definition.values.front().substitute(
        {{divided.variable, Dim::symbol(std::string(kPart)) * each + Dim::symbol(divided.variable)}});
    divided.size = each;
    definition.axes.insert(definition.axes.begin(), {std::string(kPart), plan.parts});
    definition.at = loops::variables_of(definition.axes);
    definition.results = {plan.buffer};
    graph_.buffers.add({.elements = plan.buffer});
    return stage;
  }

  // Of a product, one expression, with which everything fuses that does with what is pointwise.
  static Definition whole_of(Definition definition, const Plan& plan) {
    const auto part = [&](const Dim& number) {
      std::vector<Scalar> at{Scalar::index(number)};
      for (const Scalar& variable : loops::variables_of(definition.axes))
        at.push_back(variable);
      return Scalar::load(plan.buffer.name, plan.buffer.dtype, std::move(at));
    };
    if (!is_product(definition)) {
      definition.reduced = {{std::string(kPart), plan.parts}};
      definition.values = {part(Dim::symbol(std::string(kPart)))};
      return definition;
    }
    Scalar sum = part(0);
    for (int64_t i = 1; i < plan.parts; ++i)
      sum = Scalar::apply(loops::Function::Add, {sum, part(i)});
    definition.values = {sum};
    definition.reduced.clear();
    definition.initial.clear();
    definition.combine.clear();
    return definition;
  }

  KernelGraph& graph_;
  const Gpu& gpu_;
  const NumericsBudget numerics_;
  std::set<size_t> in_attention_;  // nodes that become one kernel
  std::vector<Missed> missed_;
};

}  // namespace

std::vector<Missed> split_reductions(KernelGraph& graph, const Target& target, NumericsBudget numerics) {
  return Splitter(graph, target, numerics).run();
}

}  // namespace tenon::schedule::cuda
