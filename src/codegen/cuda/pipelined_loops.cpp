#include "codegen/cuda/pipelined_loops.h"

#include <algorithm>

#include "base/error.h"
#include "target/cluster.h"

namespace tenon::codegen::cuda {

using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Statement;

namespace {

constexpr int64_t kSlotsToOverlapProducts = 4;

}  // namespace

// In a cluster, each block has a part.
void PipelineText::set_shared(Storage& storage, const Local& local) const {
  storage.kind = Storage::Kind::Pointer;
  storage.is_swizzled = swizzled_.contains(storage.buffer.name);
  if (!team_.is_cluster())
    return;
  storage.kind = Storage::Kind::SpreadShared;
  storage.spread = layouts_->find_spread(local);
  if (storage.spread == nullptr)
    throw unsupported("kernel {}: no thread loop says which block of a cluster has what of '{}'",
                      kernel_.name, storage.buffer.name);
  storage.trip_stride = storage.spread->vector * kThreadsOfClusterBlock;
}

void PipelineText::declare_shared(const Storage& storage, const std::string& name, int64_t slots) {
  Dim start = shared_used_;
  shared_used_ = shared_used_ + shared_bytes_of(storage.buffer, team_, alignment_of(swizzled_)) * slots;
  std::string from = "shared";
  if (team_.per_block > 1)
    from += fmt::format(" + threadIdx.x / {} * {}", team_.threads,
                        indices_.text(shared_of_team_).at(Binding::Unary));
  if (start != Dim(0))
    from += " + " + indices_.text(start).at(Binding::Product);
  const std::string_view type = stored_type(storage.buffer.dtype);
  const std::string own = storage.kind != Storage::Kind::SpreadShared ? ""
                          : storage.spread->vector == 1
                              ? " + threadIdx.x"
                              : fmt::format(" + {} * threadIdx.x", storage.spread->vector);
  writer_.line("{0}* const {1} = ({0}*)({2}){3};", type, name, from, own);
}

void PipelineText::await_start() {
  if (awaits_start_ != nullptr)
    writer_.line("{}();", preamble_.use("wait_for_cluster"));
  awaits_start_ = nullptr;
}

void PipelineText::declare_slot(const Ring& ring, const std::string& slot) {
  const Dim bytes = shared_bytes_of(ring.storage.buffer, team_, alignment_of(swizzled_));
  const std::string_view type = stored_type(ring.storage.buffer.dtype);
  const Dim elements = floor_div(bytes, info(ring.storage.buffer.dtype).bytes);
  writer_.line("{}* const {} = {} + {} * {};", type, ring.storage.name, ring.name, slot,
               indices_.text(elements).at(Binding::Unary));
}

PipelineText::Counting PipelineText::counting_of(const Loop& loop, const Pipeline* pipeline) {
  const bool is_persistent = &loop == pipelined_->persistent();
  const Range begin = indices_.range_of(loop.begin), end = indices_.range_of(loop.end);
  const int64_t ahead = pipeline == nullptr ? 1 : pipeline->ahead;
  const int64_t beyond = is_persistent ? std::max<int64_t>(end.high, 0) : loop.step;
  const Range range = {begin.low, std::max(begin.low, end.high - 1)};
  const Range counted = {begin.low,
                         end.high > INT64_MAX / (ahead + 2) ? INT64_MAX : range.high + (ahead + 1) * beyond};
  const auto blocks = [&](const std::string& all) {
    return team_.is_cluster() ? fmt::format("{} / {}", all, team_.blocks) : all;
  };
  return {.type = IndexText::type_of(counted),
          .range = range,
          .begin = is_persistent ? blocks("blockIdx.x") : indices_.text(loop.begin).at(Binding::Sum),
          .end = indices_.text(loop.end).at(Binding::Sum),
          .step = is_persistent ? blocks("gridDim.x") : std::to_string(loop.step)};
}

// Whether each iteration does nothing but multiply what was copied, and there are slots enough to copy to
// while the products of two iterations are under way.
bool PipelineText::overlaps_products(const Loop& loop, const Pipeline& pipeline) const {
  const auto is_copied = [&](const Statement& statement) {
    return std::ranges::find(pipeline.copies, &statement) != pipeline.copies.end();
  };
  const auto is_product = [&](const Statement& statement) {
    const auto* tile = std::get_if<Loop>(&statement);
    return tile != nullptr && warpgroup_products_.contains(tile);
  };
  int thread_loops = 0;
  for (const Statement& statement : loop.body) {
    if (std::holds_alternative<Local>(statement) || is_copied(statement))
      continue;
    const auto* threads = std::get_if<Loop>(&statement);
    if (threads == nullptr || threads->mark != Mark::Thread ||
        !std::ranges::all_of(threads->body, is_product))
      return false;
    ++thread_loops;
  }
  return thread_loops == 1 && pipeline.slots >= kSlotsToOverlapProducts;
}

void PipelineText::run_pipelined(const Loop& loop, Pipeline pipeline) {
  writer_.open();
  in_flight_ = overlaps_products(loop, pipeline) ? 1 : 0;
  pipeline.ahead -= in_flight_;
  const Counting counting = counting_of(loop, &pipeline);
  const std::string& name = names_.of(loop.variable);
  std::string slot;
  if (pipeline.slots > 1)
    slot = names_.fresh("slot");
  declare_rings(loop, pipeline, slot);
  begin_first_copies(loop, pipeline, counting);
  await_start();
  if (pipeline.slots > 1)
    writer_.line("int {} = 0;", slot);
  writer_.write("#pragma unroll 1");
  writer_.open("for ({0} {1} = {2}; {1} < {3}; {4})", counting.type, name, counting.begin, counting.end,
               next_text(name, counting.step));
  indices_.set(loop.variable, {name}, counting.range);
  run_stage(loop, pipeline, counting, slot);
  if (pipeline.slots > 1)
    writer_.line("{0} = {0} == {1} ? 0 : {0} + 1;", slot, pipeline.slots - 1);
  writer_.close();
  if (std::exchange(in_flight_, 0) != 0)
    wait_for_products(0);
  for (const std::string& buffer : pipeline.buffers)
    rings_.erase(buffer);
  writer_.close();
}

void PipelineText::declare_rings(const Loop& loop, const Pipeline& pipeline, const std::string& slot) {
  for (const Statement& statement : loop.body)
    if (const auto* local = std::get_if<Local>(&statement);
        local != nullptr && pipeline.buffers.contains(local->buffer.name)) {
      Ring ring{.storage = {.kind = Storage::Kind::Pointer,
                            .name = names_.of(local->buffer.name),
                            .buffer = local->buffer},
                .slots = pipeline.slots,
                .name = names_.of(local->buffer.name),
                .slot = slot};
      set_shared(ring.storage, *local);
      if (ring.slots > 1)
        ring.name = names_.fresh(ring.name + "_slots");
      declare_shared(ring.storage, ring.name, ring.slots);
      rings_.insert_or_assign(local->buffer.name, std::move(ring));
    }
}

void PipelineText::run_stage(const Loop& loop, const Pipeline& pipeline, const Counting& counting,
                             const std::string& slot) {
  const auto storage = storage_;
  const auto begin_next = [&] {
    writer_.open();
    const std::string next = names_.fresh("next"), &name = names_.of(loop.variable);
    writer_.line("const {} {} = {} + {};", counting.type, next, name,
                 counting.times(std::to_string(pipeline.ahead)));
    begin_copies(loop, pipeline, counting, next,
                 pipeline.slots == 1 ? ""
                 : pipeline.ahead % pipeline.slots == 0
                     ? slot
                     : fmt::format("({} + {}) % {}", slot, pipeline.ahead % pipeline.slots, pipeline.slots));
    writer_.close();
    indices_.set(loop.variable, {name}, counting.range);
  };
  const auto wait_before_copies = [&] {
    if (barriers_.contains(pipeline.copies.front()))
      synchronise();
  };
  for (const Statement& statement : loop.body) {
    if (std::ranges::find(pipeline.copies, &statement) == pipeline.copies.end()) {
      run_statement(statement, true);
      if (&statement == pipeline.last_reader) {
        wait_before_copies();
        begin_next();
      }
    } else if (&statement == pipeline.copies.front()) {
      writer_.line("{}<{}>();", preamble_.use("wait_for_stage"), pipeline.ahead - 1);
      if (pipeline.last_reader != nullptr)
        continue;
      wait_before_copies();
      if (swizzled_.empty())
        begin_next();
      else
        overlapped_ = begin_next;
    }
  }
  if (auto begin = std::exchange(overlapped_, {}))  // nothing was multiplied
    begin();
  storage_ = storage;
}

void PipelineText::begin_first_copies(const Loop& loop, const Pipeline& pipeline, const Counting& counting) {
  if (pipeline.ahead == 1) {
    writer_.open();
    const std::string first = names_.fresh("first");
    writer_.line("const {} {} = {};", counting.type, first, counting.begin);
    begin_copies(loop, pipeline, counting, first, "0");
    writer_.close();
    return;
  }
  writer_.write("#pragma unroll");
  const std::string stage = writer_.open_loop("stage", "for (int {0} = 0; {0} < {1}; ++{0})", pipeline.ahead);
  const std::string first = names_.fresh("first");
  writer_.line("const {} {} = {}{};", counting.type, first,
               counting.begin == "0" ? "" : counting.begin + " + ", counting.times(stage));
  begin_copies(loop, pipeline, counting, first, stage);
  writer_.close();
}

// Those of an iteration, if there is one; in any case a stage ends.
void PipelineText::begin_copies(const Loop& loop, const Pipeline& pipeline, const Counting& counting,
                                const std::string& iteration, const std::string& slot) {
  indices_.set(loop.variable, {iteration}, counting.range);
  writer_.open("if ({} < {})", iteration, counting.end);
  const auto storage = storage_;
  for (const std::string& buffer : pipeline.buffers) {
    const Ring& ring = rings_.at(buffer);
    if (ring.slots > 1)
      declare_slot(ring, slot);
    storage_.insert_or_assign(buffer, ring.storage);
  }
  for (const Statement* statement : pipeline.copies)
    copy(std::get<Loop>(*statement));
  storage_ = storage;
  writer_.close();
  writer_.line("{}();", preamble_.use("end_stage"));
}

void PipelineText::copy(const Loop& loop) {
  copies_async_ = true;
  run_threads(loop, layouts_->vector_of(loop));
  copies_async_ = false;
}

std::string PipelineText::next_text(const std::string& name, const std::string& step) {
  return step == "1" ? "++" + name : fmt::format("{} += {}", name, step);
}

}  // namespace tenon::codegen::cuda
