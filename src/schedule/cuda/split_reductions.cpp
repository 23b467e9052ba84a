#include "schedule/cuda/split_reductions.h"

#include <algorithm>

#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "loops/contraction.h"
#include "schedule/cuda/block_rows.h"
#include "schedule/cuda/reductions.h"

namespace tenon::schedule::cuda {

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
constexpr double kLaunchNanoseconds = 1200;      // that a kernel more takes in a CUDA graph
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

// Products of matrices are tiled instead.
bool is_product(const Definition& reduction) {
  const std::optional<loops::Product> product = loops::match_product(reduction.values.front());
  return product && product->multiplies() && reduction.axes.size() > 1;
}

class Splitter {
 public:
  Splitter(KernelGraph& graph, const Gpu& gpu) : graph_(graph), gpu_(gpu) {}

  void run() {
    std::vector<std::optional<Plan>> plans;
    for (const KernelNode& node : graph_.nodes)
      plans.push_back(node.stage ? plan_for(node.stage->definition) : std::nullopt);
    std::vector<KernelNode> nodes;
    for (size_t i = 0; i < plans.size(); ++i) {
      KernelNode& node = graph_.nodes[i];
      if (const std::optional<Plan>& plan = plans[i]) {
        nodes.push_back(make_node(parts_of(*node.stage, *plan), graph_.buffers));
        node.stage->definition = whole_of(node.stage->definition, *plan);
        update_reads(node, graph_.buffers);
      }
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  struct Plan {
    size_t axis;  // that is divided, among those reduced
    int64_t parts;
    Buffer buffer;
  };

  std::optional<Plan> plan_for(const Definition& definition) const {
    if (!definition.reduces() || !is_divisible(definition) || is_product(definition))
      return std::nullopt;
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
    best.buffer = {.name = definition.results.front().name + "_parts",
                   .dtype = definition.results.front().dtype,
                   .sizes = {best.parts}};
    for (const Axis& axis : definition.axes)
      best.buffer.sizes.push_back(axis.size);
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

  static Definition whole_of(Definition definition, const Plan& plan) {
    std::vector<Scalar> at{Scalar::index(Dim::symbol(std::string(kPart)))};
    for (const Scalar& variable : loops::variables_of(definition.axes))
      at.push_back(variable);
    definition.reduced = {{std::string(kPart), plan.parts}};
    definition.values = {Scalar::load(plan.buffer.name, plan.buffer.dtype, std::move(at))};
    return definition;
  }

  KernelGraph& graph_;
  const Gpu& gpu_;
};

}  // namespace

void split_reductions(KernelGraph& graph, const Gpu& gpu) { Splitter(graph, gpu).run(); }

}  // namespace tenon::schedule::cuda
