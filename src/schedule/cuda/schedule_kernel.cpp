#include "schedule/cuda/schedule_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "loops/parallel_regions.h"
#include "loops/uses.h"
#include "schedule/assign.h"
#include "schedule/cuda/attention.h"
#include "schedule/cuda/block_rows.h"
#include "schedule/cuda/blocks.h"
#include "schedule/cuda/gemv.h"
#include "schedule/cuda/reduce_columns.h"
#include "schedule/cuda/sliding_windows.h"
#include "schedule/cuda/tiled_contraction.h"
#include "schedule/cuda/transpose.h"
#include "schedule/pointwise.h"
#include "schedule/rows.h"
#include "schedule/start_kernel.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Definition;
using loops::Kernel;
using loops::Mark;
using loops::Scalar;
using loops::Statement;
using lowering::Group;
using lowering::Pattern;
using lowering::Stage;

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kThreadsOfRows = 128;  // where each thread computes a row
constexpr int64_t kBytesPerLoad = 16;
constexpr int64_t kLoadsInFlight = 4;        // of a thread, where each waits for another
constexpr int64_t kShortRow = 16;            // elements that a thread computes by itself
constexpr std::string_view kElement = "e0";  // the variable of flattened axes

int64_t widest_bytes(const Kernel& kernel) {
  int64_t widest = 1;
  for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (const Buffer& buffer : *buffers)
      widest = std::max<int64_t>(widest, info(buffer.dtype).bytes);
  return widest;
}

// Whether what is loaded says where something else is.
bool loads_indirectly(const std::vector<Statement>& body) {
  bool found = false;
  for (const Statement& statement : body) {
    loops::for_each_use(statement, [&](const loops::Use& use) {
      for (const Scalar& index : use.place.at)
        loops::for_each_load(index, [&](const Scalar&) { found = true; });
    });
    if (const std::vector<Statement>* inner = body_of(statement))
      found = found || loads_indirectly(*inner);
  }
  return found;
}

// Elements of a thread block: one load of each thread. Other blocks on the multiprocessor have theirs in
// flight meanwhile, and with more of them at once, stores begin earlier. Loads that wait for others come
// several at a time.
int64_t chunk_of(const Kernel& kernel, const PointwiseIteration& iteration) {
  const int64_t once = kThreads * std::max<int64_t>(kBytesPerLoad / widest_bytes(kernel), 1);
  return once * (loads_indirectly(iteration.body) ? kLoadsInFlight : 1);
}

void map(Kernel& kernel, const std::vector<Stage>& stages, const std::set<std::string>& outputs) {
  PointwiseIteration iteration = pointwise_iteration(stages, outputs);
  collapse_axes(iteration, kernel);
  if (iteration.axes.empty()) {
    kernel.body = as_list(over_blocks({}, kWarpThreads, std::move(iteration.body)));
    return;
  }
  if (transpose_tiles(kernel, iteration))
    return;
  const std::string variable(kElement);
  const FlatAxes flat = flatten(iteration.axes, variable);
  kernel.body = as_list(in_chunks(variable, flat.size, chunk_of(kernel, iteration), kThreads,
                                  substitute(iteration.body, flat.variables)));
}

// Each thread computes one row by itself: short ones, and each element of a contraction.
void rows_by_thread(Kernel& kernel, const std::vector<Stage>& stages, size_t shared,
                    const std::set<std::string>& outputs) {
  std::vector<Definition> definitions;
  for (size_t i = 0; i < stages.size(); ++i)
    definitions.push_back(renamed(stages[i].definition, shared, fmt::format("s{}", i)));
  const std::vector<Axis>& axes = definitions.front().axes;
  std::vector<Statement> row = do_row(definitions, shared, outputs);
  serialise(row);
  if (shared == 0) {
    kernel.body = as_list(over_blocks({}, kWarpThreads, std::move(row)));
    return;
  }
  const std::string variable(kElement);
  const FlatAxes flat = flatten({axes.begin(), axes.begin() + static_cast<int64_t>(shared)}, variable);
  kernel.body = as_list(
      in_chunks(variable, flat.size, kThreadsOfRows, kThreadsOfRows, substitute(row, flat.variables)));
}

// Of the longest stage; nothing where it is not known.
std::optional<int64_t> row_length(const std::vector<Stage>& stages, size_t shared) {
  int64_t longest = 1;
  for (const Stage& stage : stages) {
    Dim length = 1;
    for (size_t i = shared; i < stage.definition.axes.size(); ++i)
      length = length * stage.definition.axes[i].size;
    for (const Axis& axis : stage.definition.reduced)
      length = length * axis.size;
    if (!length.constant())
      return std::nullopt;
    longest = std::max(longest, *length.constant());
  }
  return longest;
}

// Whether a kernel graph pass has scheduled it already.
bool has_blocks(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body, [](const Statement& statement) {
    const auto* loop = std::get_if<loops::Loop>(&statement);
    return loop != nullptr && loop->mark == Mark::Block;
  });
}

}  // namespace

bool is_sum_with_epilogue(const std::vector<Stage>& stages, size_t rows) {
  return stages.front().definition.reduces() &&
         std::all_of(stages.begin() + 1, stages.end(), [&](const Stage& stage) {
           return !stage.definition.reduces() && stage.definition.axes.size() == rows;
         });
}

Kernel schedule_kernel(const std::vector<Stage>& stages, const Group& group,
                       const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                       const Context& context) {
  CHECK(context.target.gpu, "a kernel is scheduled for a GPU, but the target has none");
  Kernel kernel = start_kernel("kernel", stages, outputs, buffers);
  const auto shared = static_cast<size_t>(group.rows);
  switch (group.pattern) {
    case Pattern::Map:
      map(kernel, stages, outputs);
      break;
    case Pattern::Rows:
      if (is_sum_with_epilogue(stages, shared) &&
          (gemv(kernel, stages, outputs, *context.target.gpu) ||
           tile_contraction(kernel, stages, outputs, *context.target.gpu)))
        break;
      if (row_length(stages, shared).value_or(kShortRow + 1) <= kShortRow)
        rows_by_thread(kernel, stages, shared, outputs);
      else
        block_rows(kernel, stages, shared, outputs, row_length(stages, shared), *context.target.gpu);
      break;
    case Pattern::Contract:
      if (!gemv(kernel, stages, outputs, *context.target.gpu) &&
          !tile_contraction(kernel, stages, outputs, *context.target.gpu) &&
          !(has_overlapping_windows(stages.front().definition) &&
            slide_windows(kernel, stages, outputs, *context.target.gpu)) &&
          !reduce_columns(kernel, stages, outputs) &&
          !slide_windows(kernel, stages, outputs, *context.target.gpu))
        rows_by_thread(kernel, stages, stages.front().definition.axes.size(), outputs);
      break;
    case Pattern::FusedAttention:
      fuse_attention(kernel, stages, shared, outputs, *context.target.gpu);
      break;
  }
  return kernel;
}

Kernel schedule_nest(const Kernel& nest) {
  if (has_blocks(nest))
    return nest;
  Kernel kernel = nest;
  kernel.body.clear();
  for (const loops::ParallelRegion& region : loops::parallel_regions_of(nest)) {
    std::vector<Statement> body = region.body;
    serialise(body);
    if (region.parallel.empty()) {
      append(kernel.body, std::move(body));
      continue;
    }
    std::vector<Axis> axes;
    std::map<std::string, Dim> begins;
    for (const loops::Loop& loop : region.parallel) {
      axes.push_back({loop.variable, loops::iterations_of(loop)});
      begins.emplace(loop.variable, loop.begin + Dim::symbol(loop.variable) * loop.step);
    }
    const std::string variable(kElement);
    const FlatAxes flat = flatten(axes, variable);
    kernel.body.push_back(in_chunks(variable, flat.size, kThreadsOfRows, kThreadsOfRows,
                                    substitute(substitute(body, begins), flat.variables)));
  }
  return kernel;
}

}  // namespace tenon::schedule::cuda
