// host_steps.cpp — the steps of a program that are no kernels: nodes that the op's eval runs, and control
// flow.
#include <cstring>

#include "runtime/cpu/thread_pool.h"
#include "runtime/executor_state.h"
#include "runtime/run_control.h"
#include "runtime/run_loop.h"
#include "tensor/byte_count.h"

namespace tenon::runtime {
namespace {

// An error says which node it is in.
template <class F>
Data with_node(const HostStep& step, F&& run) {
  try {
    return run();
  } catch (const ElementError& error) {  // of a nested graph
    throw ElementError(fmt::format("{}: {}", step.described, error.what()));
  } catch (...) {
    return with_context([&] { return step.described; }, []() -> Data { throw; });
  }
}

}  // namespace

// The same, without what it borrows from the arena, which may be gone before it is read.
Datum Executor::detached(Datum datum, const State& state) const {
  if (auto* sequence = std::get_if<Sequence>(&datum)) {
    for (Datum& element : sequence->elements)
      element = detached(std::move(element), state);
    return datum;
  }
  if (auto* optional = std::get_if<Optional>(&datum)) {
    if (optional->element)
      optional->element = std::make_shared<const Datum>(detached(*optional->element, state));
    return datum;
  }
  const Tensor& tensor = datum.tensor();
  if (tensor.dtype() == DType::String)
    return datum;
  const std::byte* begin = tensor.bytes().data();
  if (begin < state.arena.get() || begin >= state.arena.get() + state.arena_bytes)
    return datum;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::memcpy(copy.mutable_bytes().data(), begin, tensor.bytes().size());
  return copy;
}

Data Executor::operands_of(const HostStep& step, State& state) const {
  Data operands;
  for (size_t slot : step.reads) {
    const Slot& own = slots_[slot];
    if (own.type.is_tensor())
      operands.emplace_back(tensor_of(slot, state));
    else
      operands.push_back(own.home == Home::Input ? (*state.inputs)[static_cast<size_t>(own.number)]
                                                 : state.own[slot]);
  }
  return operands;
}

// Memory for a result of these sizes: that of its slot, where it is known and they fit.
Tensor Executor::place_result(size_t slot, DType dtype, const Extents& extents, State& state) const {
  if (slots_[slot].home == Home::Own || planner_.extents_of(slot, *state.layout) != extents)
    return {dtype, extents};
  const auto bytes = static_cast<size_t>(byte_count(dtype, extents));
  return {dtype, extents, nullptr, {prepare(slot, state), bytes}};
}

std::unique_ptr<LoopRun> Executor::start_loop(const HostStep& step, const Data& operands, int threads,
                                              State& state) const {
  const auto body = step.regions.find("body");
  if (!step.control || body == step.regions.end())
    return nullptr;
  return LoopRun::start(*step.control, operands, *regions_.at(body->second.get()),
                        {.threads = threads, .random = state.options.random},
                        [&](size_t result, DType dtype, const Extents& extents) {
                          return place_result(step.writes[result], dtype, extents, state);
                        });
}

Data Executor::results_of(const HostStep& step, const Data& operands, State& state) const {
  const auto region = [&](std::string_view name) -> const Executor& {
    return *regions_.at(step.regions.find(name)->second.get());
  };
  const RunOptions options{.threads = state.options.threads, .random = state.options.random};
  if (step.control) {
    if (const auto loop = start_loop(step, operands, state.options.threads, state))
      return loop->run();
    return run_control(*step.control, operands, region, options);
  }
  const Call::RunRegion run_region = [&](std::string_view name, const Data& inputs) {
    return region(name).run(inputs, options);
  };
  return step.call->eval(operands, *state.options.random, step.regions.empty() ? nullptr : &run_region);
}

void Executor::run_on_host(const HostStep& step, State& state) const {
  const Data operands = operands_of(step, state);
  store_results(step, with_node(step, [&] { return results_of(step, operands, state); }), state);
}

void Executor::run_loops(const LoopsStep& step, State& state) const {
  const int threads = state.options.threads;
  const auto run_sequentially = [&] {
    for (const HostStep& loop : step.loops)
      run_on_host(loop, state);
  };
  if (threads == 1)
    return run_sequentially();
  std::vector<Data> operands, results(step.loops.size());
  std::vector<std::unique_ptr<LoopRun>> runs;
  for (const HostStep& loop : step.loops) {
    operands.push_back(operands_of(loop, state));
    with_node(loop, [&] {
      runs.push_back(start_loop(loop, operands.back(), 1, state));
      return Data();
    });
  }
  if (!LoopRun::gain_beside_each_other(runs, threads)) {
    runs.clear();
    return run_sequentially();
  }
  shared_pool(threads).run(static_cast<int64_t>(runs.size()), [&](int64_t task, int) {
    const auto i = static_cast<size_t>(task);
    results[i] = with_node(step.loops[i], [&] { return runs[i]->run(); });
  });
  for (size_t i = 0; i < runs.size(); ++i)
    store_results(step.loops[i], std::move(results[i]), state);
}

void Executor::store_results(const HostStep& step, Data results, State& state) const {
  const bool has_regions = step.control || !step.call->node().regions().empty();
  const size_t known = state.bindings.size();
  for (size_t i = 0; i < step.writes.size(); ++i) {
    const size_t slot = step.writes[i];
    if (!fits(results[i], slots_[slot].type, state.bindings) &&
        (!has_regions || !resize_empty(results[i], slots_[slot].type, state.bindings)))
      throw user_error("{}: {}: result {} should be {}{}, but came out as {}", step.described, step.op, i,
                       slots_[slot].type, bindings_text(slots_[slot].type, state.bindings),
                       type_of(results[i]));
    if (slots_[slot].home == Home::Own) {
      state.own[slot] = detached(std::move(results[i]), state);
      continue;
    }
    const std::span<const std::byte> bytes = results[i].tensor().bytes();
    if (std::byte* memory = prepare(slot, state); memory != bytes.data())
      std::memcpy(memory, bytes.data(), bytes.size());
  }
  if (state.bindings.size() > known)  // kernels that come rely on them
    check_sizes(state.bindings);
}

}  // namespace tenon::runtime
