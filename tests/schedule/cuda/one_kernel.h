// one_kernel.h — graphs that become one kernel on a GPU by name: how that is scheduled, and whether it
// computes what the nest does that nobody scheduled.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "fusion/fuse.h"
#include "ir/parse.h"
#include "loops/interpret.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"
#include "schedule/cpu/nest.h"
#include "schedule/cuda/schedule_kernel.h"
#include "schedule/cuda/select_contraction.h"
#include "target/named_targets.h"
#include "tensor/wide.h"

namespace tenon {

using Sizes = std::map<std::string, int64_t>;

// The only kernel of a graph.
struct OneKernel {
  lowering::KernelGraph graph;
  std::vector<lowering::Stage> stages;
  lowering::Group group;
  std::set<std::string> outputs;
  Target target;

  explicit OneKernel(std::string_view text, int multiprocessors = 132,
                     NumericsBudget numerics = NumericsBudget::Strict)
      : target(target_named("avx2")) {
    register_ops();
    source_ = parse(text);
    graph = lowering::lower_graph(*source_);
    target.gpu = gpu_named("sm_90");
    target.gpu->multiprocessors = multiprocessors;
    fusion::inline_stages(graph, target);
    schedule::cuda::select_contractions(graph, *target.gpu, numerics);
    const std::set<lowering::BufferId> kept(graph.outputs.begin(), graph.outputs.end());
    const std::vector<lowering::Group> groups =
        fusion::group_nodes(graph.nodes, graph.buffers, kept, target).groups;
    EXPECT_EQ(groups.size(), 1u) << text;
    group = groups.front();
    for (const size_t node : group.nodes)
      stages.push_back(*graph.nodes[node].stage);
    for (const lowering::BufferId output : graph.outputs)
      outputs.insert(graph.buffers[output].name());
  }

  loops::Kernel scheduled() const {
    return schedule::cuda::schedule_kernel(stages, group, outputs, graph.buffers, {target, 1});
  }
  loops::Kernel unscheduled() const {
    return schedule::unscheduled_nest("kernel", stages, group, outputs, graph.buffers, target);
  }

 private:
  std::unique_ptr<Graph> source_;
};

inline std::vector<Tensor> random_inputs(const loops::Kernel& kernel, const Sizes& sizes) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<Tensor> inputs;
  for (const loops::Buffer& input : kernel.inputs) {
    Extents extents;
    for (const Dim& size : input.sizes)
      extents.push_back(size.evaluate(sizes).value());
    std::vector<double> values(static_cast<size_t>(element_count(extents)));
    for (double& value : values)
      value = distribution(random);
    inputs.push_back(narrow<double>(input.dtype, extents, values));
  }
  return inputs;
}

// Checked and interpreted on random elements.
inline void expect_same_elements(const OneKernel& one, const Sizes& sizes = {}, double tolerance = 1e-5) {
  const loops::Kernel scheduled = one.scheduled(), unscheduled = one.unscheduled();
  EXPECT_EQ(loops::check(scheduled), std::vector<std::string>{});
  ASSERT_EQ(scheduled.inputs, unscheduled.inputs);
  const std::vector<Tensor> inputs = random_inputs(scheduled, sizes);
  const std::vector<Tensor> got = loops::interpret(scheduled, inputs, sizes),
                            wanted = loops::interpret(unscheduled, inputs, sizes);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].extents(), wanted[i].extents());
    const std::vector<double> ours = widen<double>(got[i]), theirs = widen<double>(wanted[i]);
    for (size_t j = 0; j < ours.size(); ++j)
      ASSERT_NEAR(ours[j], theirs[j], tolerance) << "element " << j << "\n" << print(scheduled);
  }
}

}  // namespace tenon
