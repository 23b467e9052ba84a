// launch_graphs.cpp — runs of kernel steps that a device launches as one, from the second run of a layout on.
#include <algorithm>

#include "runtime/executor_state.h"

namespace tenon::runtime {
namespace {

constexpr size_t kMostGraphs = 16;    // layouts whose graphs are kept
constexpr size_t kLeastLaunches = 2;  // that are worth a graph

}  // namespace

std::map<size_t, size_t> Executor::find_segments() const {
  const auto joins = [&](size_t number) {
    bool is_placed = std::holds_alternative<KernelStep>(steps_[number]) ||
                     std::holds_alternative<AliasStep>(steps_[number]);
    for_each_slot(steps_[number], [&](size_t slot) { is_placed &= slots_[slot].home != Home::Own; });
    return is_placed &&
           (!std::holds_alternative<KernelStep>(steps_[number]) || planner_.knows_launch(number));
  };
  std::map<size_t, size_t> segments;
  for (size_t first = 0; first < steps_.size(); ++first) {
    size_t kernels = 0, last = first;
    for (size_t step = first; step < steps_.size() && joins(step); ++step)
      if (std::holds_alternative<KernelStep>(steps_[step])) {
        ++kernels;
        last = step;
      }
    if (kernels >= kLeastLaunches)
      segments.emplace(first, last);
    first = last;
  }
  return segments;
}

LayoutGraphs* Executor::graphs_for(State& state) const {
  if (state.options.before_steps != nullptr || state.options.after_step != nullptr)
    return nullptr;
  std::vector<LayoutGraphs>& all = state.graphs;
  auto found = std::ranges::find(all, state.layout, &LayoutGraphs::layout);
  if (found == all.end()) {
    if (all.size() == kMostGraphs)
      all.erase(all.begin());
    found = all.insert(all.end(), LayoutGraphs{.layout = state.layout});
  }
  if (++found->runs == 1)
    return nullptr;
  if (found->runs == 2)
    for (const auto& [first, last] : segments_)
      found->segments.emplace(first, make_segment(first, last, state));
  return &*found;
}

GraphSegment Executor::make_segment(size_t first, size_t last, State& state) const {
  std::vector<RepeatedLaunch> launches;
  GraphSegment segment{.last = last, .graph = nullptr, .moving = {}};
  for (size_t number = first; number <= last; ++number) {
    const auto* step = std::get_if<KernelStep>(&steps_[number]);
    if (step == nullptr)
      continue;
    RepeatedLaunch launch{.kernel = kernels_[step->code].get(),
                          .step = step,
                          .launch = *planner_.launch_of(number, *state.layout),
                          .buffers = {},
                          .bytes = {},
                          .number = number};
    for (const std::vector<size_t>* slots : {&step->reads, &step->writes})
      for (size_t slot : *slots) {
        size_t viewed = slot;
        while (slots_[viewed].alias)
          viewed = *slots_[viewed].alias;
        if (const Home home = slots_[viewed].home; home == Home::Input || home == Home::Output)
          segment.moving.push_back({launches.size(), launch.buffers.size(), slot});
        launch.buffers.push_back(device_pointer(slot, state));
        launch.bytes.push_back(bytes_of(slot, state));
      }
    launches.push_back(std::move(launch));
  }
  segment.graph = device_memory_->make_graph(launches, *state.workspace);
  return segment;
}

bool Executor::launch_segment(LayoutGraphs& graphs, State& state) const {
  const auto found = graphs.segments.find(state.step);
  if (found == graphs.segments.end())
    return false;
  GraphSegment& segment = found->second;
  for (const GraphSegment::Moving& moving : segment.moving)
    segment.graph->set_buffer(moving.launch, moving.buffer, device_pointer(moving.slot, state));
  segment.graph->launch(*state.workspace);
  state.step = segment.last;
  return true;
}

}  // namespace tenon::runtime
