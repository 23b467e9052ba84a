#include "schedule/cpu/nest.h"

#include <algorithm>

#include "base/error.h"
#include "fusion/cost.h"
#include "schedule/assign.h"
#include "schedule/cpu/borders.h"
#include "schedule/cpu/fused_attention.h"
#include "schedule/cpu/gemm.h"
#include "schedule/cpu/order_loops.h"
#include "schedule/cpu/partition_loops.h"
#include "schedule/cpu/prefetch_rows.h"
#include "schedule/cpu/unroll_and_jam.h"
#include "schedule/cpu/winograd.h"
#include "schedule/pointwise.h"
#include "schedule/rows.h"
#include "schedule/start_kernel.h"

namespace tenon::schedule {

using fusion::size_of;
using loops::Assign;
using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Scalar;
using loops::Statement;
using lowering::ContractionPlan;
using lowering::Group;
using lowering::Pattern;
using lowering::Stage;

namespace {

constexpr int64_t kElementsPerIteration = 8192;  // of a loop that is chunked for threads
// In bytes: larger outputs use non-temporal stores. Caches would fetch every line only to overwrite it, and
// evict it before it is read.
constexpr int64_t kLeastStreamed = 32 << 20;
constexpr int64_t kLeastRowStreamed = 64;  // elements: in shorter rows, aligning to cache lines takes longer

class NestBuilder {
 public:
  NestBuilder(const std::string& name, const std::vector<Stage>& stages, const Group& group,
              const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
              const Context& context)
      : stages_(stages),
        group_(group),
        outputs_(outputs),
        context_(context),
        target_(context.target),
        kernel_(start_kernel(name, stages, outputs, buffers)) {}

  Kernel run() {
    std::vector<Statement> borders = fill_borders(stages_, outputs_);
    has_borders_ = !borders.empty();
    if (group_.pattern == Pattern::Map || group_.pattern == Pattern::Rows)
      stream_outputs();
    switch (group_.pattern) {
      case Pattern::Map:
        map();
        break;
      case Pattern::Rows:
        rows(static_cast<size_t>(group_.rows));
        break;
      case Pattern::Contract:
        contract();
        break;
      case Pattern::FusedAttention:
        kernel_.body =
            build_fused_attention(definitions(), static_cast<size_t>(group_.rows), outputs_, context_);
        break;
    }
    kernel_.body.insert(kernel_.body.begin(), std::make_move_iterator(borders.begin()),
                        std::make_move_iterator(borders.end()));
    return std::move(kernel_);
  }

  Kernel plain() {
    for (const Stage& stage : stages_) {
      const Definition each = renamed(stage.definition, stage.definition.axes.size(), "");
      for (const Buffer& buffer : each.results)
        if (!outputs_.contains(buffer.name))
          kernel_.body.emplace_back(Local{buffer});
      std::vector<Statement> iteration;
      if (each.reduces())
        iteration.emplace_back(start(each));
      append(iteration, around(each.reduced, Mark::Serial, as_list(assign(each, places_of(each)))));
      append(kernel_.body, around(each.axes, Mark::Serial, std::move(iteration)));
    }
    return std::move(kernel_);
  }

 private:
  std::vector<Definition> definitions() const {
    std::vector<Definition> all;
    for (const Stage& stage : stages_)
      all.push_back(stage.definition);
    return all;
  }

  void stream_outputs() {
    for (Buffer& output : kernel_.outputs) {
      const bool read_again = std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
        return buffers_read(stage).contains(output.name);
      });
      if (size_of(output).constant().value_or(0) >= kLeastStreamed && !read_again)
        output.space = loops::Space::Streamed;
    }
  }

  static bool is_streamed(const Buffer& buffer) { return buffer.space == loops::Space::Streamed; }

  // --- every stage on its own axes ---

  void map() {
    PointwiseIteration iteration = pointwise_iteration(stages_, outputs_);
    if (!has_borders_)  // which are those of a result with all its dimensions
      collapse_axes(iteration, kernel_);
    auto& [axes, body] = iteration;
    if (axes.empty()) {
      kernel_.body = std::move(body);
      return;
    }
    if (axes.size() == 1) {
      kernel_.body = {cut(axes.front(), std::move(body))};
      return;
    }
    if (axes.back().size.constant().value_or(INT64_MAX) < kLeastRowStreamed)
      for (Buffer& output : kernel_.outputs)
        output.space = loops::Space::Memory;
    kernel_.body = order_loops(std::move(axes), std::move(body));
    partition_loops(kernel_.body, target_);
  }

  // One loop, chunked for threads.
  static Statement cut(const Axis& axis, std::vector<Statement> body) {
    const std::string outer = "o" + axis.variable;
    const Dim begin = Dim::symbol(outer) * kElementsPerIteration;
    Loop inner{.variable = axis.variable,
               .begin = begin,
               .end = min(axis.size, begin + kElementsPerIteration),
               .step = 1,
               .mark = Mark::Vector,
               .body = std::move(body)};
    std::vector<Statement> iterations;
    iterations.emplace_back(std::move(inner));
    return loop_over({outer, ceil_div(axis.size, kElementsPerIteration)}, Mark::Parallel,
                     std::move(iterations));
  }

  // --- row by row ---

  void rows(size_t shared) {
    std::vector<Definition> definitions;
    for (size_t i = 0; i < stages_.size(); ++i)
      definitions.push_back(renamed(stages_[i].definition, shared, fmt::format("s{}", i)));
    const std::vector<Axis>& axes = definitions.front().axes;
    std::vector<Statement> row = do_row(definitions, shared, outputs_);
    if (shared > 0 && std::ranges::all_of(kernel_.outputs, is_streamed))
      prefetch_next_row(row, definitions, shared, kernel_.inputs, target_);
    kernel_.body =
        around({axes.begin(), axes.begin() + static_cast<int64_t>(shared)}, Mark::Parallel, std::move(row));
  }

  // --- contractions ---

  void contract() {
    std::vector<Definition> definitions;
    for (const Stage& stage : stages_)
      definitions.push_back(renamed(stage.definition, stage.definition.axes.size(), ""));
    const Stage& sum_stage = stages_.front();
    CHECK(sum_stage.plan, "nothing was selected for {}", sum_stage.definition.results.front().name);
    const ContractionPlan& plan = *sum_stage.plan;
    if (plan.winograd) {
      kernel_.body = build_winograd(definitions, outputs_, *plan.winograd, target_);
      return;
    }
    if (plan.tile) {
      kernel_.body = build_gemm(definitions, outputs_, plan, target_, sum_stage.packed_b, sum_stage.packed_a);
      unroll_and_jam(kernel_.body, context_);
      return;
    }
    const Definition& sum = definitions.front();
    if (sums_along_memory(sum)) {
      rows(sum.axes.size());
      return;
    }
    std::vector<Axis> axes = sum.axes;
    std::vector<Statement> body;
    for (const Definition& definition : definitions)
      for (const Buffer& buffer : definition.results)
        if (!outputs_.contains(buffer.name)) {
          // One element is alive at a time, in each lane.
          locals_.emplace(buffer.name, buffer);
        }
    const size_t last = axes.empty() ? 0 : axes.size() - 1;
    // The last kept axis is vectorised.
    std::vector<Statement> within{start(sum)};
    const std::optional<Parts> parts = parts_of(sum);
    if (parts)
      locals_.emplace(part_of(sum).name, part_of(sum));
    for (Statement& statement : sum_up(sum, Mark::Serial, parts, part_of(sum)))
      within.push_back(std::move(statement));
    for (size_t i = 1; i < definitions.size(); ++i)
      within.emplace_back(assign(definitions[i], places_of(definitions[i])));
    if (axes.empty()) {
      for (const auto& [name, buffer] : locals_)
        within.insert(within.begin(),
                      Statement(Local{{.name = name, .dtype = buffer.dtype, .sizes = buffer.sizes}}));
      kernel_.body = std::move(within);
      return;
    }
    const Axis lane = axes[last];
    axes.pop_back();
    // Results that are the kernel's own: one tile of the last axis.
    const std::string outer = "o" + lane.variable;
    constexpr int64_t tile = 64;
    const Dim begin = Dim::symbol(outer) * tile;
    for (const auto& [name, buffer] : locals_) {
      body.emplace_back(Local{{.name = name, .dtype = buffer.dtype, .sizes = {Dim(tile)}}});
    }
    std::map<std::string, DType> own;
    for (const auto& [name, buffer] : locals_)
      own.emplace(name, buffer.dtype);
    const std::vector<Scalar> place{Scalar::index(Dim::symbol(lane.variable) - begin)};
    redirect(within, own, place);
    body.emplace_back(Loop{.variable = lane.variable,
                           .begin = begin,
                           .end = min(lane.size, begin + tile),
                           .step = 1,
                           .mark = Mark::Vector,
                           .body = std::move(within)});
    axes.push_back({outer, ceil_div(lane.size, tile)});
    kernel_.body = around(axes, Mark::Parallel, std::move(body));
  }

  // Whether the reduction is contiguous in memory and results are not, as in non-overlapping windows.
  bool sums_along_memory(const Definition& sum) const {
    if (sum.axes.empty() || sum.reduced.empty())
      return false;
    const Axis &lane = sum.axes.back(), &iteration = sum.reduced.back();
    const int64_t bytes = iteration.size.constant().value_or(0) * info(sum.results.front().dtype).bytes;
    bool all = bytes >= target_.vector_bytes, any = false;
    loops::for_each_load(sum.values.front(), [&](const Scalar& load) {
      const auto moves_by = [&](const Axis& axis, const Dim& step) {
        if (load.operands().empty() || load.operands().back().kind() != Scalar::Kind::Index)
          return false;
        const Dim& last = load.operands().back().index();
        return last.substitute({{axis.variable, Dim::symbol(axis.variable) + 1}}) - last == step;
      };
      any = true;
      all = all && moves_by(iteration, 1) && !moves_by(lane, 1) && !moves_by(lane, 0);
    });
    return all && any;
  }

  static void redirect(std::vector<Statement>& body, const std::map<std::string, DType>& own,
                       const std::vector<Scalar>& at) {
    for (Statement& statement : body) {
      if (auto* each = std::get_if<Assign>(&statement)) {
        for (Place& place : each->places)
          if (own.contains(place.buffer))
            place.at = at;
        for (Scalar& value : each->values)
          value = loops::replace_loads(value, [&](const Scalar& load) {
            return own.contains(load.name()) ? Scalar::load(load.name(), load.dtype(), at) : load;
          });
      }
      if (auto* inner = body_of(statement))
        redirect(*inner, own, at);
    }
  }

  const std::vector<Stage>& stages_;
  const Group& group_;
  const std::set<std::string>& outputs_;
  const Context& context_;
  const Target& target_;
  bool has_borders_ = false;
  Kernel kernel_;
  std::map<std::string, Buffer> locals_;
};

}  // namespace

Kernel unscheduled_nest(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                        const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                        const Target& target) {
  return NestBuilder(name, stages, group, outputs, buffers, {target, 1}).plain();
}

Kernel build_nest(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                  const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                  const Context& context) {
  return NestBuilder(name, stages, group, outputs, buffers, context).run();
}

}  // namespace tenon::schedule
